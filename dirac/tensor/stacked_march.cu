#include "dirac/tensor/march_feeder.cuh"

/* Packing `stacked` as a march along t. A block owns a column of x*y*z output sites a time slice.
 * Shared memory holds the column's own rows of the time slices t-1, t, t+1 (`centre`) and the rows
 * that surround it in slice t (`rim`), and the same for `depth` steps ahead. Four warps feed: they
 * copy rows, which are contiguous in memory, with the bulk copy engine while the others compute.
 * Each source site is thus fetched 1 + 1/x + 2/y + 2/z times instead of eight. */
namespace stacked {

/* Where a computing lane reads the sources of one of its directions: a row of a centre slice
 * (slice: -1, 0, 1 relative to t) or of the rim. */
struct source_row {
  int row, shift, slice, mu, sign;
  bool rim;
  __device__ source_row(const md_march_plan &plan, int y, int z, int direction)
      : mu(direction % 4), sign(direction < 4 ? 1 : -1) {
    const int ny = y + (mu == 1 ? sign : 0), nz = z + (mu == 2 ? sign : 0);
    slice = mu == 3 ? sign : 0, shift = ny + 2 * nz, rim = true;
    if (ny < 0)
      row = z;
    else if (ny == plan.y)
      row = plan.z + z;
    else if (nz < 0)
      row = 2 * plan.z + y;
    else if (nz == plan.z)
      row = 2 * plan.z + plan.y + y;
    else
      row = nz * plan.y + ny, rim = false;
  }
  /* The neighbour of the site x0 of the tile's row: along x both lie in the own row, see stage;
   * else it is the same x, `odd` places into a centre row. */
  __device__ const char *find(const stage &memory, int centre, int step, int x0, int odd,
                              const float **scale) const {
    const int number = centre + slice, moved = shift + 3 * number;
    const int along = mu == 0 ? (sign > 0 ? odd : odd - 1) : 0; /* to the neighbour's x/2 */
    if (rim) {
      const int at = memory.rim_row(step, row);
      *scale = memory.rim_scale(at) + 4 + x0;
      return memory.rim(at, moved) + x0 * memory.plan.site_bytes;
    }
    const int at = memory.centre_row(number, row), place = x0 + (mu == 0 ? sign > 0 : odd);
    *scale = memory.centre_scale(at) + 4 + x0 + along;
    return memory.centre(at, moved) + place * memory.plan.site_bytes;
  }
};

/* A computing warp: plan.warp_sites neighbouring sites of one row a step, batch after batch, the
 * links of the next batch under way. */
template <typename T, int RHS, bool EPILOGUE> struct computer {
  using number = typename storage<T>::number;
  using link_set = typename storage<T>::links;
  static constexpr int site_bytes = RHS * 3 * sizeof(number), colour_bytes = RHS * sizeof(number);
  static constexpr int64_t link_bytes = 72 * sizeof(number);
  const md_tensor_call &call;
  const md_march_plan &plan;
  const stage &memory;
  const lane at;
  link_set links[batch<T>];

  __device__ link_set load(int64_t site) const {
    return storage<T>::load_links(static_cast<const char *>(call.links) + site * link_bytes,
                                  at.slot);
  }
  /* A batch of sites from `site` on; then the links of as many from `next` on are asked for. */
  __device__ void some(int64_t site, int64_t next, const char *forward, const char *backward,
                       const float *forward_scale, const float *backward_scale) {
    const int mine = at.g % batch<T>;
    uint32_t ratios = 0;
    int unit = 127;
    if constexpr (storage<T>::scaled)
      ratios = ratios_of(forward_scale[mine], backward_scale[mine], &unit);
    sums<T> c;
#pragma unroll
    for (int n = 0; n < batch<T>; n++) {
      factors f = {};
      if constexpr (storage<T>::scaled)
        f = factors_of(__shfl_sync(0xffffffffu, ratios, 4 * n + at.t), at.g);
      product<T, RHS, true>(c[n], links[n], forward + n * site_bytes, backward + n * site_bytes,
                            colour_bytes, RHS, f, at);
    }
#pragma unroll
    for (int n = 0; n < batch<T>; n++) links[n] = load(next + n);
    const int64_t start = site * site_bytes + min(at.t, 2) * colour_bytes;
    const auto place = [&](int n) { return start + n * site_bytes; };
    const int common = combine<T, RHS, true, EPILOGUE>(c, call, site + mine, unit, place, RHS, at);
    float factor = 1.0f;
    if constexpr (storage<T>::scaled) {
      const float scale = scale_of(largest_of<T>(c, at), common, &factor);
      if (at.t == 0 && at.g < batch<T>) call.out_scale[site + mine] = scale;
    }
    store<T, RHS, true>(c, call, factor, place, batch<T>, RHS, at);
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
    for (int n = 0; n < batch<T>; n++) links[n] = load(site + n);
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
      for (int n = 0; n < plan.warp_sites; n += batch<T>)
        some(site + n, n + batch<T> < plan.warp_sites ? site + n + batch<T> : next,
             forward + n * site_bytes, backward + n * site_bytes, ahead_scale + n,
             behind_scale + n);
      __syncwarp();
      if (threadIdx.x % 32 == 0) barrier_arrive(&memory.emptied[step % ring]);
      site = next;
    }
  }
};

template <typename T, int RHS, bool EPILOGUE>
__global__ void __launch_bounds__(32 * (MARCH_WARPS + MARCH_FEEDERS))
    march(const __grid_constant__ md_tensor_call call, const __grid_constant__ md_march_plan plan) {
  extern __shared__ __align__(128) char shared[];
  const stage memory(shared, plan);
  if (threadIdx.x == 0)
    for (int i = 0; i < memory.ring; i++) {
      barrier_init(&memory.filled[i], storage<T>::scaled ? 1 + 32 * MARCH_FEEDERS : 1);
      barrier_init(&memory.emptied[i], plan.warps);
    }
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  __syncthreads();
  const int warp = threadIdx.x / 32, feeding = warp - plan.warps;
  if (feeding >= 0) /* the rows are dealt out to the warps in turn */
    feeder<storage<T>::scaled>{call, plan, memory,
                               static_cast<int>(threadIdx.x % 32) * MARCH_FEEDERS + feeding}
        .run();
  else
    computer<T, RHS, EPILOGUE>{call, plan, memory, lane(), {}}.run();
}

template <typename T, int RHS, bool EPILOGUE>
cudaError_t launch_march(const md_tensor_call *call, const md_march_plan *plan) {
  const auto kernel = march<T, RHS, EPILOGUE>;
  const cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, plan->shared_bytes);
  if (error != cudaSuccess) return error;
  kernel<<<plan->blocks, 32 * (plan->warps + MARCH_FEEDERS), plan->shared_bytes, md_stream()>>>(
      *call, *plan);
  return cudaGetLastError();
}

template <typename T, int RHS>
cudaError_t march_epilogue(const md_tensor_call *call, const md_march_plan *plan) {
  return call->x ? launch_march<T, RHS, true>(call, plan) : launch_march<T, RHS, false>(call, plan);
}

template <typename T> cudaError_t march_rhs(const md_tensor_call *call, const md_march_plan *plan) {
  return call->n_rhs == 8 ? march_epilogue<T, 8>(call, plan) : march_epilogue<T, 16>(call, plan);
}

} // namespace stacked

md_status md_tensor_march(md_context *context, const md_tensor_call *call,
                          const md_march_plan *plan) {
  cudaError_t error;
  switch (call->precision) {
  case MD_DOUBLE:
    error = stacked::march_rhs<double>(call, plan);
    break;
  case MD_HALF:
    error = stacked::march_rhs<__half>(call, plan);
    break;
  default:
    error = stacked::march_rhs<__nv_bfloat16>(call, plan);
    break;
  }
  return md_cuda_status(context, error, "stacked kernel");
}

int md_tensor_multiprocessors(void) {
  int device = 0, count = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
  return count;
}
