#include "dirac/tensor/stacked_finish.cuh"

/* Packing `stacked` as a march along t. A block owns a column of x*y*z output sites a time slice.
 * Shared memory holds the column's own rows of the time slices t-1, t, t+1 (`centre`, four slots)
 * and the rows that surround it in slice t (`rim`, two slots). One warp feeds: it copies rows,
 * which are contiguous in memory, with the bulk copy engine while the others compute the step
 * before. Each source site is thus fetched 1 + 1/x + 2/y + 2/z times instead of eight. */
namespace stacked {

enum { CENTRE_SLOTS = 4, RIM_SLOTS = 2 };

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

/* Shared memory of a block. Rows of x+1 sites: the row of an output site of odd x offset starts at
 * place 0 and ends with the neighbour beyond, that of even offset starts with the neighbour
 * before. Each row is shifted by 32 bytes * ((y + 2z + 3t) mod 4), so that the four lanes t of a
 * fragment load read different banks. */
struct stage {
  char *base;
  const md_march_plan &plan;
  uint64_t *filled, *emptied; /* one for either parity of the step */
  __device__ stage(char *memory, const md_march_plan &p)
      : base(memory + 64), plan(p), filled(reinterpret_cast<uint64_t *>(memory)),
        emptied(reinterpret_cast<uint64_t *>(memory) + 2) {}
  __device__ int centre_rows() const { return plan.y * plan.z; }
  __device__ int rim_rows() const { return 2 * (plan.y + plan.z); }
  /* Number of a row among all of shared memory. centre is a running number of slices. */
  __device__ int centre_row(int centre, int y, int z) const {
    return centre % CENTRE_SLOTS * centre_rows() + z * plan.y + y;
  }
  __device__ int rim_row(int step, int r) const {
    return CENTRE_SLOTS * centre_rows() + step % RIM_SLOTS * rim_rows() + r;
  }
  __device__ static int shift(int centre, int y, int z) { return 32 * ((y + 2 * z + 3 * centre) & 3); }
  __device__ int row_at(int row, int shift_bytes) const { return row * plan.row_bytes + shift_bytes; }
  __device__ float *scales() const {
    return reinterpret_cast<float *>(
        base + (CENTRE_SLOTS * centre_rows() + RIM_SLOTS * rim_rows()) * plan.row_bytes);
  }
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

/* The warp that feeds. */
template <bool SCALED> struct feeder {
  const md_stacked_call &call;
  const md_march_plan &plan;
  const stage &memory;
  int id; /* lane */

  __device__ int64_t site(int x, int y, int z, int t) const {
    return ((static_cast<int64_t>(t) * call.local[2] + z) * call.local[1] + y) *
               (call.local[0] / 2) + x;
  }
  __device__ int64_t neighbour(int direction, int64_t of) const {
    return call.neighbour[direction * call.sites + of];
  }
  __device__ void copy(int row, int shift, int place, int64_t from, int count, uint64_t *b) const {
    copy_bulk(memory.base + memory.row_at(row, shift) + place * plan.site_bytes,
              static_cast<const char *>(call.source) + from * plan.site_bytes,
              count * plan.site_bytes, b);
    if constexpr (SCALED)
      for (int i = 0; i < count; i++)
        copy_float(memory.scales() + row * (plan.x + 1) + place + i, call.source_scale + from + i);
  }
  /* The column's rows of slice t, -1 and T included, and the neighbours at their ends where the
   * slice is one of this rank's. */
  __device__ void centre(const corner &at, int t, int number, uint64_t *b) const {
    const int last = call.local[3] - 1, half = call.local[0] / 2;
    for (int r = id; r < memory.centre_rows(); r += 32) {
      const int y = r % plan.y, z = r / plan.y;
      const int odd = (at.y + y + at.z + z + t + call.parity) & 1;
      const int row = memory.centre_row(number, y, z), shift = memory.shift(number, y, z);
      const int64_t inside = site(at.x, at.y + y, at.z + z, min(max(t, 0), last));
      if (t < 0 || t > last) {
        copy(row, shift, 1 - odd, neighbour(t < 0 ? 7 : 3, inside), plan.x, b);
        continue;
      }
      const bool wraps = odd ? at.x + plan.x == half : at.x == 0;
      copy(row, shift, wraps ? 1 - odd : 0, inside - (wraps || odd ? 0 : 1),
           wraps ? plan.x : plan.x + 1, b);
      if (wraps)
        copy(row, shift, odd ? plan.x : 0,
             odd ? neighbour(0, inside + plan.x - 1) : neighbour(4, inside), 1, b);
    }
  }
  __device__ void rim(const corner &at, int t, int number, int step, uint64_t *b) const {
    for (int r = id; r < memory.rim_rows(); r += 32) {
      const rim_place place(plan, r);
      const int y = min(max(place.y, 0), plan.y - 1), z = min(max(place.z, 0), plan.z - 1);
      /* seen from the output row (y, z) at the column's edge */
      const int odd = (at.y + y + at.z + z + t + call.parity) & 1;
      copy(memory.rim_row(step, r), memory.shift(number, place.y, place.z), odd,
           neighbour(place.direction, site(at.x, at.y + y, at.z + z, t)), plan.x, b);
    }
  }
  /* Bytes that one slice t brings: centre with its ends, or without outside of this rank. */
  __device__ int centre_bytes(int t) const {
    const bool inside = t >= 0 && t < call.local[3];
    return memory.centre_rows() * (plan.x + (inside ? 1 : 0)) * plan.site_bytes;
  }

  __device__ void run() const {
    const int rim_bytes = memory.rim_rows() * plan.x * plan.site_bytes;
    walk w(plan, call.local[3]);
    int step = 0, number = 0; /* steps and centre slices so far */
    while (w.next(plan, call.local[3])) {
      const corner at(plan, w.column);
      for (int t = w.t; t <= w.last; t++, step++) {
        const bool first = t == w.segment_first;
        /* The slots that this step overwrites were read last two steps ago; a new segment also
         * takes those of the step before. */
        if (step > 1) barrier_wait(&memory.emptied[step % 2], (step / 2 - 1) & 1);
        if (first && step > 0)
          barrier_wait(&memory.emptied[(step - 1) % 2], ((step - 1) / 2) & 1);
        uint64_t *b = &memory.filled[step % 2];
        if (id == 0) {
          int bytes = rim_bytes + centre_bytes(t + 1);
          if (first) bytes += centre_bytes(t) + centre_bytes(t - 1);
          barrier_expect(b, bytes);
        }
        __syncwarp();
        if (first) {
          centre(at, t - 1, number, b);
          centre(at, t, number + 1, b);
          number += 2;
        }
        centre(at, t + 1, number, b);
        rim(at, t, number - 1, step, b);
        number++;
        if constexpr (SCALED) barrier_arrive_copies(b);
      }
    }
  }
};

/* Where a computing lane reads the sources of its two directions: either a row of a centre slice
 * (slice: -1, 0, 1 relative to t) or of the rim. */
struct source_row {
  int row, shift, slice; /* row: within its slot; shift: y + 2z */
  bool rim;
  __device__ source_row(const md_march_plan &plan, int y, int z, int direction) {
    const int sign = direction < 4 ? 1 : -1, mu = direction % 4;
    const int ny = y + (mu == 1 ? sign : 0), nz = z + (mu == 2 ? sign : 0);
    slice = mu == 3 ? sign : 0, shift = ny + 2 * nz, rim = true;
    if (ny < 0) row = z;
    else if (ny == plan.y) row = plan.z + z;
    else if (nz < 0) row = 2 * plan.z + y;
    else if (nz == plan.z) row = 2 * plan.z + plan.y + y;
    else row = nz * plan.y + ny, rim = false;
  }
  /* Row number among all of shared memory and its shift in bytes. */
  __device__ int at(const stage &memory, int centre, int step, int *shift_bytes) const {
    *shift_bytes = 32 * ((shift + 3 * (centre + slice)) & 3);
    return rim ? memory.rim_row(step, row)
               : (centre + slice) % CENTRE_SLOTS * memory.centre_rows() + row;
  }
};

template <typename T, int RHS, int SITES, bool EPILOGUE>
__device__ inline void compute(const md_stacked_call &call, const md_march_plan &plan,
                               const stage &memory) {
  using number = typename storage<T>::number;
  constexpr int site_bytes = RHS * 3 * sizeof(number), colour_bytes = RHS * sizeof(number);
  constexpr int64_t link_bytes = 72 * sizeof(number);
  const lane at;
  const int first = threadIdx.x / 32 * SITES, x0 = first % plan.x, row = first / plan.x;
  const int y = row % plan.y, z = row / plan.y;
  const source_row ahead(plan, y, z, at.t), behind(plan, y, z, at.t + 4);
  const int64_t slice_sites = static_cast<int64_t>(call.local[0] / 2) * call.local[1] * call.local[2];
  const auto first_site = [&](const walk &w) {
    const corner c(plan, w.column);
    return (static_cast<int64_t>(c.z + z) * call.local[1] + c.y + y) * (call.local[0] / 2) + c.x +
           x0 + w.t * slice_sites;
  };
  walk w(plan, call.local[3]);
  if (!w.next(plan, call.local[3])) return;
  int64_t site = first_site(w);
  const char *link_base = static_cast<const char *>(call.links);
  typename storage<T>::links links[SITES];
#pragma unroll
  for (int n = 0; n < SITES; n++)
    links[n] = storage<T>::load_links(link_base + (site + n) * link_bytes, at.slot);

  for (int step = 0, centre = 1;; step++, centre++) {
    const corner c(plan, w.column);
    const int odd = (c.y + y + c.z + z + w.t + call.parity) & 1;
    const int64_t here = site;
    /* Where the next step is: its links are loaded while this one computes. */
    bool more = true;
    int skipped = 0;
    if (w.t < w.last) {
      w.t++, site += slice_sites;
    } else {
      more = w.next(plan, call.local[3]);
      if (more) site = first_site(w);
      skipped = 2;
    }
    int shift_ahead, shift_behind;
    const int row_ahead = ahead.at(memory, centre, step, &shift_ahead);
    const int row_behind = behind.at(memory, centre, step, &shift_behind);
    /* x: both ways in the own row, see stage; else the same x, `odd` places in. */
    const int place_ahead = x0 + (at.t == 0 ? 1 : odd), place_behind = x0 + (at.t == 0 ? 0 : odd);
    const char *forward =
        memory.base + memory.row_at(row_ahead, shift_ahead) + place_ahead * site_bytes;
    const char *backward =
        memory.base + memory.row_at(row_behind, shift_behind) + place_behind * site_bytes;

    barrier_wait(&memory.filled[step % 2], (step / 2) & 1);
    uint32_t ratios = 0;
    int unit = 127;
    if constexpr (storage<T>::scaled) {
      const float *scales = memory.scales();
      const int n = at.g % SITES;
      ratios = ratios_of(scales[row_ahead * (plan.x + 1) + place_ahead + n],
                         scales[row_behind * (plan.x + 1) + place_behind + n], &unit);
    }
#pragma unroll
    for (int n = 0; n < SITES; n++) {
      factors f = {};
      if constexpr (storage<T>::scaled)
        f = factors_of(__shfl_sync(0xffffffffu, ratios, 4 * n + at.t), at.g);
      typename storage<T>::accumulator sum[4];
      product<T, RHS, true>(sum, links[n], forward + n * site_bytes, backward + n * site_bytes,
                            colour_bytes, RHS, f, at);
      if (more) links[n] = storage<T>::load_links(link_base + (site + n) * link_bytes, at.slot);
      const int64_t mine = (here + n) * site_bytes + min(at.t, 2) * colour_bytes;
      const int common = combine<T, RHS, true, EPILOGUE>(
          sum, call, here + n, static_cast<const char *>(call.x) + mine,
          storage<T>::scaled ? __shfl_sync(0xffffffffu, unit, 4 * n) : 127, RHS, at);
      float factor = 1.0f;
      if constexpr (storage<T>::scaled) {
        const float scale = scale_of(largest_of(sum, at), common, &factor);
        if (at.g == 0 && at.t == 0) call.out_scale[here + n] = scale;
      }
      if (at.t < 3)
        store_rows<T, RHS, true>(static_cast<char *>(call.out) + mine,
                                 narrow(T{}, sum[0] * factor, sum[1] * factor),
                                 narrow(T{}, sum[2] * factor, sum[3] * factor), RHS, at);
    }
    __syncwarp();
    if (at.g == 0 && at.t == 0) barrier_arrive(&memory.emptied[step % 2]);
    if (!more) return;
    centre += skipped;
  }
}

template <typename T, int RHS, int SITES, bool EPILOGUE>
__global__ void __launch_bounds__(544)
    march(const __grid_constant__ md_stacked_call call, const __grid_constant__ md_march_plan plan) {
  extern __shared__ __align__(128) char shared[];
  const stage memory(shared, plan);
  if (threadIdx.x == 0)
    for (int i = 0; i < 2; i++) {
      barrier_init(&memory.filled[i], storage<T>::scaled ? 33 : 1);
      barrier_init(&memory.emptied[i], plan.warps);
    }
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  __syncthreads();
  if (threadIdx.x / 32 == plan.warps)
    feeder<storage<T>::scaled>{call, plan, memory, static_cast<int>(threadIdx.x % 32)}.run();
  else
    compute<T, RHS, SITES, EPILOGUE>(call, plan, memory);
}

template <typename T, int RHS, int SITES, bool EPILOGUE>
cudaError_t launch_march(const md_stacked_call *call, const md_march_plan *plan,
                         cudaStream_t stream) {
  const auto kernel = march<T, RHS, SITES, EPILOGUE>;
  const cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, plan->shared_bytes);
  if (error != cudaSuccess) return error;
  kernel<<<plan->blocks, 32 * (plan->warps + 1), plan->shared_bytes, stream>>>(*call, *plan);
  return cudaGetLastError();
}

template <typename T, int RHS, int SITES>
cudaError_t march_epilogue(const md_stacked_call *call, const md_march_plan *plan,
                           cudaStream_t stream) {
  return call->x ? launch_march<T, RHS, SITES, true>(call, plan, stream)
                 : launch_march<T, RHS, SITES, false>(call, plan, stream);
}

template <typename T>
cudaError_t march_16bit(const md_stacked_call *call, const md_march_plan *plan,
                        cudaStream_t stream) {
  if (call->n_rhs == 8)
    return plan->warp_sites == 8 ? march_epilogue<T, 8, 8>(call, plan, stream)
                                 : march_epilogue<T, 8, 4>(call, plan, stream);
  return plan->warp_sites == 8 ? march_epilogue<T, 16, 8>(call, plan, stream)
                               : march_epilogue<T, 16, 4>(call, plan, stream);
}

cudaError_t march_double(const md_stacked_call *call, const md_march_plan *plan,
                         cudaStream_t stream) {
  return call->n_rhs == 8 ? march_epilogue<double, 8, 2>(call, plan, stream)
                          : march_epilogue<double, 16, 2>(call, plan, stream);
}

} // namespace stacked

cudaError_t md_stacked_march(md_precision precision, const md_stacked_call *call,
                             const md_march_plan *plan, cudaStream_t stream) {
  switch (precision) {
  case MD_DOUBLE: return stacked::march_double(call, plan, stream);
  case MD_HALF: return stacked::march_16bit<__half>(call, plan, stream);
  default: return stacked::march_16bit<__nv_bfloat16>(call, plan, stream);
  }
}
