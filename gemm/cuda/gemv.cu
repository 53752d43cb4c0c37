/* y <- A x, integers and floats: six ways to sum a row. */
#include "gemm/cuda/launch.cuh"
#include "gemm/gemv.h"

using namespace md;

namespace {

constexpr int BLOCK = 256;

template <class T> struct Vectors {
  int64_t rows, columns;
  const T *a, *x;
  T *y;
};

/* A thread per row: neighbours read `columns` elements apart, a sector each. */
template <class T> __global__ void thread_row(Vectors<T> v, T *) {
  const int64_t i = blockIdx.x * (int64_t)BLOCK + threadIdx.x;
  if (i >= v.rows) return;
  T sum = 0;
  for (int64_t j = 0; j < v.columns; j++) sum += v.a[i * v.columns + j] * v.x[j];
  v.y[i] = sum;
}

/* First phase: all products, as many elements as A. */
template <class T> __global__ void products(Vectors<T> v, T *scratch) {
  for (int64_t j = threadIdx.x; j < v.columns; j += BLOCK)
    scratch[blockIdx.x * v.columns + j] = v.a[blockIdx.x * v.columns + j] * v.x[j];
}

/* Second phase: a block per row, a tree over its threads. */
template <class T> __global__ void tree(Vectors<T> v, const T *scratch) {
  __shared__ T part[BLOCK];
  T sum = 0;
  for (int64_t j = threadIdx.x; j < v.columns; j += BLOCK)
    sum += scratch[blockIdx.x * v.columns + j];
  part[threadIdx.x] = sum;
  for (int width = BLOCK / 2; width > 0; width /= 2) {
    __syncthreads();
    if (threadIdx.x < width) part[threadIdx.x] += part[threadIdx.x + width];
  }
  if (threadIdx.x == 0) v.y[blockIdx.x] = part[0];
}

template <class T> __device__ inline T partial(const Vectors<T> &v) {
  T sum = 0;
  for (int64_t j = threadIdx.x; j < v.columns; j += BLOCK)
    sum += v.a[blockIdx.x * v.columns + j] * v.x[j];
  return sum;
}

/* A block per row; its partial sums meet in shared memory and one thread adds them up. */
template <class T> __global__ void block_serial(Vectors<T> v, T *) {
  __shared__ T part[BLOCK];
  part[threadIdx.x] = partial(v);
  __syncthreads();
  if (threadIdx.x != 0) return;
  T sum = 0;
  for (int i = 0; i < BLOCK; i++) sum += part[i];
  v.y[blockIdx.x] = sum;
}

/* A block per row; all its threads add to one word of shared memory. */
template <class T> __global__ void block_atomic(Vectors<T> v, T *) {
  __shared__ T sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, partial(v));
  __syncthreads();
  if (threadIdx.x == 0) v.y[blockIdx.x] = sum;
}

/* A warp per row: lanes read neighbours, the sum stays in registers. */
template <class T> __global__ void warp_shuffle(Vectors<T> v, T *) {
  const int64_t i = (blockIdx.x * (int64_t)BLOCK + threadIdx.x) / 32;
  if (i >= v.rows) return;
  T sum = 0;
#pragma unroll 8
  for (int64_t j = threadIdx.x % 32; j < v.columns; j += 32) sum += v.a[i * v.columns + j] * v.x[j];
  for (int width = 16; width > 0; width /= 2) sum += __shfl_down_sync(0xffffffffu, sum, width);
  if (threadIdx.x % 32 == 0) v.y[i] = sum;
}

enum Method { THREAD_ROW, TWO_PHASE, BLOCK_SERIAL, BLOCK_ATOMIC, WARP_SHUFFLE };

template <Method method, class T>
void launch(const md_gemv_problem *p, cudaStream_t stream, void *state, const void *a,
            const void *x, void *y) {
  const Vectors<T> v = {p->rows, p->columns, (const T *)a, (const T *)x, (T *)y};
  T *scratch = (T *)state;
  const unsigned rows = (unsigned)p->rows;
  if (method == THREAD_ROW)
    thread_row<<<(rows + BLOCK - 1) / BLOCK, BLOCK, 0, stream>>>(v, scratch);
  if (method == TWO_PHASE) {
    products<<<rows, BLOCK, 0, stream>>>(v, scratch);
    tree<<<rows, BLOCK, 0, stream>>>(v, scratch);
  }
  if (method == BLOCK_SERIAL) block_serial<<<rows, BLOCK, 0, stream>>>(v, scratch);
  if (method == BLOCK_ATOMIC) block_atomic<<<rows, BLOCK, 0, stream>>>(v, scratch);
  if (method == WARP_SHUFFLE)
    warp_shuffle<<<(rows + BLOCK / 32 - 1) / (BLOCK / 32), BLOCK, 0, stream>>>(v, scratch);
}

template <Method method>
md_status run(md_context *context, const md_gemv_problem *p, void *stream, void *state,
              const void *a, const void *x, void *y) {
  if (p->rows > INT_MAX - BLOCK)
    return md_fail(context, MD_INPUT, "device kernels take fewer than 2^31 rows, got %lld",
                   (long long)p->rows);
  if (p->type == MD_SMALL_INTEGER)
    launch<method, int>(p, (cudaStream_t)stream, state, a, x, y);
  else
    launch<method, float>(p, (cudaStream_t)stream, state, a, x, y);
  return md_cuda_launched(context, "gemv");
}

md_status open_scratch(md_context *context, const md_gemv_problem *p, void *, void **state) {
  return md_device_allocate(context, (size_t)p->rows * p->columns * 4,
                            "the products of a matrix-vector product", state);
}

void close_scratch(void *state) {
  md_device_free(state);
}

constexpr unsigned BOTH = 1u << MD_SMALL_INTEGER | 1u << MD_SMALL_SINGLE;

constexpr md_gemv_kernel entry(const char *name, const char *idea,
                               decltype(md_gemv_kernel::run) run) {
  return {name, idea, MD_GEMM_DEVICE, BOTH, nullptr, nullptr, nullptr, run};
}

} // namespace

const md_gemv_kernel md_gemv_thread_row = entry("thread_row", "a thread per row", run<THREAD_ROW>);
const md_gemv_kernel md_gemv_two_phase = {
    "two_phase",    "all products into device memory, then a tree per row",
    MD_GEMM_DEVICE, BOTH,
    nullptr,        open_scratch,
    close_scratch,  run<TWO_PHASE>};
const md_gemv_kernel md_gemv_block_serial =
    entry("block_serial", "a block per row, one thread adds up", run<BLOCK_SERIAL>);
const md_gemv_kernel md_gemv_block_atomic =
    entry("block_atomic", "a block per row, atomics on shared memory", run<BLOCK_ATOMIC>);
const md_gemv_kernel md_gemv_warp_shuffle =
    entry("warp_shuffle", "a warp per row, shuffles", run<WARP_SHUFFLE>);
