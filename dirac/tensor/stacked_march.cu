#include "dirac/tensor/stacked_finish.cuh"

/* Packing `stacked` as a march along t. A block owns a column of x*y*z output sites a time slice.
 * Shared memory holds the column's own rows of the time slices t-1, t, t+1 (`centre`) and the rows
 * that surround it in slice t (`rim`), and the same for `depth` steps ahead. One warp feeds: it
 * copies rows, which are contiguous in memory, with the bulk copy engine while the others compute.
 * Each source site is thus fetched 1 + 1/x + 2/y + 2/z times instead of eight. */
namespace stacked {

/* Column and time slice after time slice, as one block walks them: whole columns while there is
 * one for every block, then an equal share of what is left. Blocks walk neighbouring columns at
 * the same time, so that rims come from L2. */
struct walk {
  int full, column, t, last; /* last: final slice of the segment in work */
  int round, segment_first;
  int64_t low, high;
  __device__ walk(const md_march_plan &plan, int slices) {
    const int columns = plan.columns[0] * plan.columns[1] * plan.columns[2];
    full = columns / plan.blocks, round = 0, column = t = last = segment_first = 0;
    const int64_t rest = static_cast<int64_t>(columns - full * plan.blocks) * slices;
    low = rest * blockIdx.x / plan.blocks, high = rest * (blockIdx.x + 1) / plan.blocks;
  }
  /* The next segment; false at the end. */
  __device__ bool next(const md_march_plan &plan, int slices) {
    if (round < full) {
      column = round++ * plan.blocks + blockIdx.x, t = 0, last = slices - 1;
    } else if (low < high) {
      column = full * plan.blocks + static_cast<int>(low / slices);
      t = static_cast<int>(low % slices);
      last = static_cast<int>(min(static_cast<int64_t>(slices), t + high - low)) - 1;
      low += last + 1 - t;
    } else {
      return false;
    }
    segment_first = t;
    return true;
  }
};

/* First site of a column in units of sites along x. */
struct corner {
  int x, y, z;
  __device__ corner(const md_march_plan &plan, int column) {
    const int in_band = plan.columns[0] * plan.band, layer = in_band * plan.columns[2];
    const int band = column / layer, r = column % layer;
    x = r % plan.columns[0] * plan.x;
    y = (band * plan.band + r / plan.columns[0] % plan.band) * plan.y;
    z = r / in_band * plan.z;
  }
};

__device__ inline uint32_t shared_address(const void *p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}
__device__ inline void barrier_init(uint64_t *b, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(b)), "r"(count));
}
__device__ inline void barrier_arrive(uint64_t *b) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(b)) : "memory");
}
__device__ inline void barrier_expect(uint64_t *b, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(b)),
               "r"(bytes)
               : "memory");
}
__device__ inline void barrier_wait(uint64_t *b, uint32_t parity) {
  asm volatile("{\n .reg .pred done;\n"
               "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
               "@!done bra again;\n}" ::"r"(shared_address(b)),
               "r"(parity)
               : "memory");
}
__device__ inline void copy_bulk(void *to, const void *from, int bytes, uint64_t *b) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
               "[%0], [%1], %2, [%3];" ::"r"(shared_address(to)),
               "l"(from), "r"(bytes), "r"(shared_address(b))
               : "memory");
}
__device__ inline void copy_float(void *to, const float *from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(to)), "l"(from)
               : "memory");
}
/* Arrives once this thread's copy_float are done. */
__device__ inline void barrier_arrive_copies(uint64_t *b) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(b))
               : "memory");
}

/* Shared memory of a block. Centre rows hold x+1 sites: the row of an output site of odd x offset
 * starts at place 0 and ends with the neighbour beyond, that of even offset starts with the
 * neighbour before; rim rows hold x. The row (y, z) of the centre slice number c starts at
 * 32 ((y + 2z + 3c) mod 4) bytes past a multiple of 128, so that the four lanes t of a fragment
 * load read different banks. */
struct stage {
  const md_march_plan &plan;
  uint64_t *filled, *emptied; /* rings of depth + 1 */
  char *centre_base, *rim_base;
  float *centre_scales, *rim_scales;
  int ring, centre_rows, rim_rows;
  __device__ stage(char *memory, const md_march_plan &p)
      : plan(p), filled(reinterpret_cast<uint64_t *>(memory)), emptied(filled + 4),
        centre_base(memory + 128), rim_base(centre_base + p.centre_bytes),
        centre_scales(reinterpret_cast<float *>(rim_base + p.rim_bytes)),
        ring(p.depth + 1), centre_rows(p.y * p.z), rim_rows(2 * (p.y + p.z)) {
    rim_scales = centre_scales + (p.depth + 3) * centre_rows * (p.x + 1);
  }
  /* A row among all slots of its kind: of centre slice number c, of the rim of a step. */
  __device__ int centre_row(int c, int row) const {
    return c % (plan.depth + 3) * centre_rows + row;
  }
  __device__ int rim_row(int step, int row) const { return step % ring * rim_rows + row; }
  __device__ static char *shifted(char *base, int at, int shift) {
    return base + at + (32 * shift - at & 127);
  }
  /* shift: y + 2z + 3c */
  __device__ char *centre(int row, int shift) const {
    return shifted(centre_base, row * (plan.rim_row_bytes + plan.site_bytes), shift);
  }
  __device__ char *rim(int row, int shift) const {
    return shifted(rim_base, row * plan.rim_row_bytes, shift);
  }
  __device__ float *centre_scale(int row) const { return centre_scales + row * (plan.x + 1); }
  __device__ float *rim_scale(int row) const { return rim_scales + row * plan.x; }
};

/* A rim row: its place (y, z) relative to the column's corner and the direction that leads there
 * from the edge of the column. */
struct rim_place {
  int y, z, direction;
  __device__ rim_place(const md_march_plan &plan, int r) {
    if (r < 2 * plan.z) {
      z = r % plan.z;
      y = r < plan.z ? -1 : plan.y;
      direction = r < plan.z ? 5 : 1;
    } else {
      const int q = r - 2 * plan.z;
      y = q % plan.y;
      z = q < plan.y ? -1 : plan.z;
      direction = q < plan.y ? 6 : 2;
    }
  }
};

/* The warp that feeds. Lane r copies row r of the centre and row r of the rim. Where they lie is
 * looked up a step ahead, so that only the copies themselves follow on a freed slot. */
template <bool SCALED> struct feeder {
  const md_tensor_call &call;
  const md_march_plan &plan;
  const stage &memory;
  int id; /* lane */

  /* A row to be copied: `count` sites from site `from` on to place `place`, and for a centre row
   * that ends at the edge of the lattice the one neighbour beyond. */
  struct job {
    int from, place, count, end_from, end_place;
  };

  __device__ int site(int x, int y, int z, int t) const {
    return ((t * call.local[2] + z) * call.local[1] + y) * (call.local[0] / 2) + x;
  }
  __device__ int neighbour(int direction, int of) const {
    return call.neighbour[direction * call.sites + of];
  }
  __device__ int odd(const corner &at, int y, int z, int t) const {
    return (at.y + y + at.z + z + t + call.parity) & 1;
  }
  /* The column's row of slice t, -1 and T included, and the neighbour at its end where the slice
   * is one of this rank's. */
  __device__ job centre_job(const corner &at, int t) const {
    const int last = call.local[3] - 1, half = call.local[0] / 2;
    const int y = id % plan.y, z = id / plan.y;
    if (id >= memory.centre_rows) return {0, 0, 0, -1, 0};
    const int o = odd(at, y, z, t);
    const int inside = site(at.x, at.y + y, at.z + z, min(max(t, 0), last));
    if (t < 0 || t > last) return {neighbour(t < 0 ? 7 : 3, inside), 1 - o, plan.x, -1, 0};
    if (!(o ? at.x + plan.x == half : at.x == 0)) return {inside - (1 - o), 0, plan.x + 1, -1, 0};
    return {inside, 1 - o, plan.x, o ? neighbour(0, inside + plan.x - 1) : neighbour(4, inside),
            o ? plan.x : 0};
  }
  __device__ job rim_job(const corner &at, int t) const {
    if (id >= memory.rim_rows) return {0, 0, 0, -1, 0};
    const rim_place place(plan, id);
    const int y = min(max(place.y, 0), plan.y - 1), z = min(max(place.z, 0), plan.z - 1);
    return {neighbour(place.direction, site(at.x, at.y + y, at.z + z, t)), 0, plan.x, -1, 0};
  }
  __device__ void copy(char *to, float *scale_to, int from, int count, uint64_t *b) const {
    copy_bulk(to,
              static_cast<const char *>(call.source) + static_cast<int64_t>(from) * plan.site_bytes,
              count * plan.site_bytes, b);
    if constexpr (SCALED)
      for (int i = 0; i < count; i++) copy_float(scale_to + i, call.source_scale + from + i);
  }
  __device__ void centre(const job &j, int number, uint64_t *b) const {
    const int row = memory.centre_row(number, id), y = id % plan.y, z = id / plan.y;
    char *to = memory.centre(row, y + 2 * z + 3 * number);
    float *scale_to = memory.centre_scale(row);
    if (j.count)
      copy(to + j.place * plan.site_bytes, scale_to + j.place, j.from, j.count, b);
    if (j.end_from >= 0)
      copy(to + j.end_place * plan.site_bytes, scale_to + j.end_place, j.end_from, 1, b);
  }
  __device__ void rim(const job &j, int number, int step, uint64_t *b) const {
    const int row = memory.rim_row(step, id);
    const rim_place place(plan, id);
    if (j.count)
      copy(memory.rim(row, place.y + 2 * place.z + 3 * number), memory.rim_scale(row), j.from,
           j.count, b);
  }
  /* Bytes that slice t brings: centre with its ends, or without outside of this rank. */
  __device__ int centre_bytes(int t) const {
    const bool inside = t >= 0 && t < call.local[3];
    return memory.centre_rows * (plan.x + (inside ? 1 : 0)) * plan.site_bytes;
  }

  __device__ void run() const {
    const int rim_bytes = memory.rim_rows * plan.x * plan.site_bytes;
    walk w(plan, call.local[3]);
    int step = 0, number = 0; /* steps and centre slices so far */
    while (w.next(plan, call.local[3])) {
      const corner at(plan, w.column);
      for (int t = w.t; t <= w.last; t++, step++) {
        const bool first = t == w.segment_first;
        const job ahead = centre_job(at, t + 1), around = rim_job(at, t);
        job before = {}, here = {};
        if (first) before = centre_job(at, t - 1), here = centre_job(at, t);
        /* The slots that this step overwrites were read last a ring of steps ago; a new segment
         * also takes those of the step before. */
        const int ring = memory.ring;
        if (step >= ring) barrier_wait(&memory.emptied[step % ring], (step / ring - 1) & 1);
        if (first && step > 0)
          barrier_wait(&memory.emptied[(step - 1) % ring], ((step - 1) / ring) & 1);
        uint64_t *b = &memory.filled[step % ring];
        if (id == 0)
          barrier_expect(b, rim_bytes + centre_bytes(t + 1) +
                                (first ? centre_bytes(t) + centre_bytes(t - 1) : 0));
        __syncwarp();
        if (first) {
          centre(before, number++, b);
          centre(here, number++, b);
        }
        centre(ahead, number, b);
        rim(around, number - 1, step, b);
        number++;
        if constexpr (SCALED) barrier_arrive_copies(b);
      }
    }
  }
};

/* Where a computing lane reads the sources of one of its directions: a row of a centre slice
 * (slice: -1, 0, 1 relative to t) or of the rim. */
struct source_row {
  int row, shift, slice, mu, sign;
  bool rim;
  __device__ source_row(const md_march_plan &plan, int y, int z, int direction)
      : mu(direction % 4), sign(direction < 4 ? 1 : -1) {
    const int ny = y + (mu == 1 ? sign : 0), nz = z + (mu == 2 ? sign : 0);
    slice = mu == 3 ? sign : 0, shift = ny + 2 * nz, rim = true;
    if (ny < 0) row = z;
    else if (ny == plan.y) row = plan.z + z;
    else if (nz < 0) row = 2 * plan.z + y;
    else if (nz == plan.z) row = 2 * plan.z + plan.y + y;
    else row = nz * plan.y + ny, rim = false;
  }
  /* The neighbour of the site x0 of the tile's row: along x both lie in the own row, see stage;
   * else it is the same x, `odd` places into a centre row. */
  __device__ const char *find(const stage &memory, int centre, int step, int x0, int odd,
                              const float **scale) const {
    const int number = centre + slice, moved = shift + 3 * number;
    if (rim) {
      const int at = memory.rim_row(step, row);
      *scale = memory.rim_scale(at) + x0;
      return memory.rim(at, moved) + x0 * memory.plan.site_bytes;
    }
    const int at = memory.centre_row(number, row), place = x0 + (mu == 0 ? sign > 0 : odd);
    *scale = memory.centre_scale(at) + place;
    return memory.centre(at, moved) + place * memory.plan.site_bytes;
  }
};

/* A computing warp: plan.warp_sites neighbouring sites of one row a step, the links of the next
 * AHEAD of them under way. */
template <typename T, int RHS, int AHEAD, bool EPILOGUE> struct computer {
  using number = typename storage<T>::number;
  using link_set = typename storage<T>::links;
  static constexpr int site_bytes = RHS * 3 * sizeof(number), colour_bytes = RHS * sizeof(number);
  static constexpr int64_t link_bytes = 72 * sizeof(number);
  const md_tensor_call &call;
  const md_march_plan &plan;
  const stage &memory;
  const lane at;
  link_set links[AHEAD];

  __device__ link_set load(int64_t site) const {
    return storage<T>::load_links(static_cast<const char *>(call.links) + site * link_bytes,
                                  at.slot);
  }
  __device__ void one(int64_t site, const link_set &l, const char *forward, const char *backward,
                      uint32_t ratios, int unit) const {
    factors f = {};
    if constexpr (storage<T>::scaled) f = factors_of(ratios, at.g);
    typename storage<T>::accumulator sum[4];
    product<T, RHS, true>(sum, l, forward, backward, colour_bytes, RHS, f, at);
    const int64_t mine = site * site_bytes + min(at.t, 2) * colour_bytes;
    const int common = combine<T, RHS, true, EPILOGUE>(
        sum, call, site, static_cast<const char *>(call.x) + mine, unit, RHS, at);
    float factor = 1.0f;
    if constexpr (storage<T>::scaled) {
      const float scale = scale_of(largest_of(sum, at), common, &factor);
      if (at.g == 0 && at.t == 0) call.out_scale[site] = scale;
    }
    if (at.t < 3)
      store_rows<T, RHS, true>(static_cast<char *>(call.out) + mine,
                               narrow(T{}, sum[0] * factor, sum[1] * factor),
                               narrow(T{}, sum[2] * factor, sum[3] * factor), RHS, at);
  }
  /* AHEAD sites from `site` on; then the links of as many from `next` on are asked for. */
  __device__ void some(int64_t site, int64_t next, const char *forward, const char *backward,
                       const float *forward_scale, const float *backward_scale) {
    uint32_t ratios = 0;
    int unit = 127;
    if constexpr (storage<T>::scaled)
      ratios = ratios_of(forward_scale[at.g % AHEAD], backward_scale[at.g % AHEAD], &unit);
#pragma unroll
    for (int n = 0; n < AHEAD; n++) {
      uint32_t r = 0;
      int u = 127;
      if constexpr (storage<T>::scaled) {
        r = __shfl_sync(0xffffffffu, ratios, 4 * n + at.t);
        u = __shfl_sync(0xffffffffu, unit, 4 * n);
      }
      one(site + n, links[n], forward + n * site_bytes, backward + n * site_bytes, r, u);
      links[n] = load(next + n);
    }
  }
  __device__ void run() {
    const int first = threadIdx.x / 32 * plan.warp_sites, x0 = first % plan.x;
    const int y = first / plan.x % plan.y, z = first / plan.x / plan.y;
    const source_row ahead(plan, y, z, at.t), behind(plan, y, z, at.t + 4);
    const int slice = call.local[0] / 2 * call.local[1] * call.local[2];
    const auto first_site = [&](const corner &c, int t) {
      return ((c.z + z) * call.local[1] + c.y + y) * (call.local[0] / 2) + c.x + x0 + t * slice;
    };
    walk w(plan, call.local[3]);
    bool more = w.next(plan, call.local[3]);
    if (!more) return;
    corner c(plan, w.column);
    int64_t site = first_site(c, w.t);
#pragma unroll
    for (int n = 0; n < AHEAD; n++) links[n] = load(site + n);
    for (int step = 0, centre = 1; more; step++, centre++) {
      const int odd = (c.y + y + c.z + z + w.t + call.parity) & 1, ring = memory.ring;
      const float *ahead_scale, *behind_scale;
      const char *forward = ahead.find(memory, centre, step, x0, odd, &ahead_scale);
      const char *backward = behind.find(memory, centre, step, x0, odd, &behind_scale);
      int64_t next = site + slice;
      if (w.t < w.last) {
        w.t++;
      } else {
        more = w.next(plan, call.local[3]), centre += 2;
        if (more) c = corner(plan, w.column);
        next = more ? first_site(c, w.t) : site; /* at the end: anything that may be read */
      }
      barrier_wait(&memory.filled[step % ring], (step / ring) & 1);
      for (int n = 0; n < plan.warp_sites; n += AHEAD)
        some(site + n, n + AHEAD < plan.warp_sites ? site + n + AHEAD : next,
             forward + n * site_bytes, backward + n * site_bytes, ahead_scale + n,
             behind_scale + n);
      __syncwarp();
      if (threadIdx.x % 32 == 0) barrier_arrive(&memory.emptied[step % ring]);
      site = next;
    }
  }
};

template <typename T, int RHS, int AHEAD, bool EPILOGUE>
__global__ void __launch_bounds__(544)
    march(const __grid_constant__ md_tensor_call call, const __grid_constant__ md_march_plan plan) {
  extern __shared__ __align__(128) char shared[];
  const stage memory(shared, plan);
  if (threadIdx.x == 0)
    for (int i = 0; i < memory.ring; i++) {
      barrier_init(&memory.filled[i], storage<T>::scaled ? 33 : 1);
      barrier_init(&memory.emptied[i], plan.warps);
    }
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  __syncthreads();
  if (threadIdx.x / 32 == plan.warps)
    feeder<storage<T>::scaled>{call, plan, memory, static_cast<int>(threadIdx.x % 32)}.run();
  else
    computer<T, RHS, AHEAD, EPILOGUE>{call, plan, memory, lane(), {}}.run();
}

template <typename T, int RHS, int AHEAD, bool EPILOGUE>
cudaError_t launch_march(const md_tensor_call *call, const md_march_plan *plan) {
  const auto kernel = march<T, RHS, AHEAD, EPILOGUE>;
  const cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, plan->shared_bytes);
  if (error != cudaSuccess) return error;
  kernel<<<plan->blocks, 32 * (plan->warps + 1), plan->shared_bytes, md_stream()>>>(*call, *plan);
  return cudaGetLastError();
}

template <typename T, int RHS, int AHEAD>
cudaError_t march_epilogue(const md_tensor_call *call, const md_march_plan *plan) {
  return call->x ? launch_march<T, RHS, AHEAD, true>(call, plan)
                 : launch_march<T, RHS, AHEAD, false>(call, plan);
}

template <typename T, int AHEAD>
cudaError_t march_rhs(const md_tensor_call *call, const md_march_plan *plan) {
  return call->n_rhs == 8 ? march_epilogue<T, 8, AHEAD>(call, plan)
                          : march_epilogue<T, 16, AHEAD>(call, plan);
}

} // namespace stacked

md_status md_tensor_march(md_context *context, const md_tensor_call *call,
                          const md_march_plan *plan) {
  cudaError_t error;
  switch (call->precision) {
  case MD_DOUBLE: error = stacked::march_rhs<double, 1>(call, plan); break;
  case MD_HALF: error = stacked::march_rhs<__half, 4>(call, plan); break;
  default: error = stacked::march_rhs<__nv_bfloat16, 4>(call, plan); break;
  }
  return md_cuda_status(context, error, "stacked kernel");
}

int md_tensor_multiprocessors(void) {
  int device = 0, count = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
  return count;
}
