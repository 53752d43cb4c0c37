#ifndef MD_DIRAC_CUDA_MANY_LINKS_CUH
#define MD_DIRAC_CUDA_MANY_LINKS_CUH

#include "dirac/cuda/hop_one.cuh"

/* The links of a site as matrices, for its many right-hand sides. */

/* Copies the links of the block's sites, SITE_REALS each, from `slot` on, to shared memory and
 * waits for them. */
template <class S, int SITE_REALS>
static __device__ inline void fetch_links(const S *links, int slot, int sites, char *shared) {
  constexpr unsigned site_bytes = SITE_REALS * sizeof(S);
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900 /* no copy engine that a block may use */
  constexpr int words = site_bytes / 16;
  const int thread = threadIdx.y * blockDim.x + threadIdx.x;
  for (int w = thread; w < sites * words; w += blockDim.x * blockDim.y) {
    const uint4 *from = (const uint4 *)(links + (int64_t)(slot + w / words) * SITE_REALS);
    ((uint4 *)shared)[w] = from[w % words];
  }
  __syncthreads();
#else
  __shared__ alignas(8) uint64_t barrier;
  const unsigned flag = (unsigned)__cvta_generic_to_shared(&barrier);
  const unsigned target = (unsigned)__cvta_generic_to_shared(shared);
  if (threadIdx.y == 0 && threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(flag));
    asm volatile("fence.mbarrier_init.release.cluster;");
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(flag),
                 "r"(sites * site_bytes));
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(target),
                 "l"(links + (int64_t)slot * SITE_REALS), "r"(sites * site_bytes), "r"(flag)
                 : "memory");
  }
  __syncthreads();
  asm volatile("{\n.reg .pred done;\nwait:\n"
               "mbarrier.try_wait.parity.shared.b64 done, [%0], 0;\n"
               "@!done bra wait;\n}" ::"r"(flag)
               : "memory");
#endif
}

/* The stored reals of one direction, from the site's links in shared memory or from a slot's in
 * device memory, where the chunks of 32 slots take turns. */
template <class S, int R, bool STAGED>
static __device__ inline void load_link(const void *links, int direction, uint64_t policy,
                                        real_of<S> u[R]) {
  using chunk = chunk_of<link_piece<S, R, 1>>;
  constexpr int reals = sizeof(chunk) / sizeof(S), chunks = 2 * R / reals, step = STAGED ? 1 : 32;
  const int side = direction % 2;
  const chunk *p = (const chunk *)links + direction / 2 * chunks * step;
#pragma unroll
  for (int c = 0; c < chunks; c++) {
    if ((c + 1) * reals <= side * R || c * reals >= (side + 1) * R) continue;
    alignas(16) S raw[reals];
    *reinterpret_cast<chunk *>(raw) = STAGED ? p[c] : load_once(p + c * step, policy);
#pragma unroll
    for (int e = 0; e < reals; e++) {
      const int r = c * reals + e - side * R;
      if (r >= 0 && r < R) u[r] = load_real(raw[e]);
    }
  }
  unpack_link<S, R>(u);
}

/* The matrix of a link with a phase, times that, `factor`, and the sign. */
template <class S, int R>
static __device__ inline void load_phased(const void *links, int direction, uint64_t policy,
                                          real_of<S> factor, bool minus, real_of<S> u[18]) {
  using T = real_of<S>;
  T stored[R];
  load_link<S, R, false>(links, direction, policy, stored);
  full_link<R>(stored, u);
  const complex_of<T> z = phase_of(stored[R - 1]);
  if (minus) factor = -factor;
#pragma unroll
  for (int row = 0; row < 3; row++)
    turn_vector(complex_of<T>{factor * z.re, factor * z.im}, u + 6 * row);
}

#endif
