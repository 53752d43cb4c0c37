/* out[x, y] = in[x, y] + in[x + 4, y]. Direct: two loads per thread; a warp's shifted load starts
 * 16 bytes into a 32-byte sector and takes one sector more, most of which the caches hold already.
 * Shared: the block reads each element of its rows once, and four more. */
#include "gemm/cuda/launch.cuh"
#include "gemm/shift.h"

using namespace md;

template <class T>
static __global__ void direct(md_shift_problem p, const T *in, T *out, int64_t across) {
  const int64_t x = blockIdx.x % across * blockDim.x + threadIdx.x;
  const int64_t y = blockIdx.x / across * blockDim.y + threadIdx.y;
  if (x >= p.width || y >= p.height) return;
  const T *from = in + y * p.in_ld + x;
  out[y * p.out_ld + x] = from[0] + from[MD_SHIFT];
}

template <class T>
static __global__ void shared_rows(md_shift_problem p, const T *in, T *out, int64_t across) {
  extern __shared__ __align__(16) char memory[]; /* one declaration for both types */
  const int ld = blockDim.x + MD_SHIFT;
  T *row = (T *)memory + threadIdx.y * ld;
  const int64_t x0 = blockIdx.x % across * blockDim.x;
  const int64_t y = blockIdx.x / across * blockDim.y + threadIdx.y;
  if (y < p.height)
    for (int x = threadIdx.x; x < ld; x += blockDim.x)
      if (x0 + x < p.width + MD_SHIFT) row[x] = in[y * p.in_ld + x0 + x];
  __syncthreads();
  if (y < p.height && x0 + threadIdx.x < p.width)
    out[y * p.out_ld + x0 + threadIdx.x] = row[threadIdx.x] + row[threadIdx.x + MD_SHIFT];
}

template <bool shared, class T>
static md_status run_type(md_context *context, const md_shift_problem *p, const T *in, T *out,
                          void *stream) {
  const int64_t across = (p->width + p->block_x - 1) / p->block_x;
  const int64_t blocks = across * ((p->height + p->block_y - 1) / p->block_y);
  if (blocks > INT_MAX)
    return md_fail(context, MD_INPUT,
                   "a grid has at most 2^31 - 1 blocks, this one %lld; take larger blocks",
                   (long long)blocks);
  const dim3 block(p->block_x, p->block_y);
  if (shared)
    shared_rows<<<(unsigned)blocks, block, (p->block_x + MD_SHIFT) * p->block_y * sizeof(T),
                  (cudaStream_t)stream>>>(*p, in, out, across);
  else
    direct<<<(unsigned)blocks, block, 0, (cudaStream_t)stream>>>(*p, in, out, across);
  return md_cuda_launched(context, "shift");
}

template <bool shared>
static md_status run(md_context *context, const md_shift_problem *p, const void *in, void *out,
                     void *stream) {
  return p->type == MD_SMALL_INTEGER
             ? run_type<shared>(context, p, (const int *)in, (int *)out, stream)
             : run_type<shared>(context, p, (const float *)in, (float *)out, stream);
}

const md_shift_kernel md_shift_direct = {"direct", "two loads per thread, caches hold the overlap",
                                         MD_GEMM_DEVICE, nullptr, run<false>};
const md_shift_kernel md_shift_shared = {"shared", "rows in shared memory, each element read once",
                                         MD_GEMM_DEVICE, nullptr, run<true>};
