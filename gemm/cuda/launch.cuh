#pragma once

/* What every device GEMM shares: operands with their types, the map from block number to tile,
 * guarded loads, the store of alpha x + beta c, and padded copies of operands for kernels that can
 * only read rows on 16-byte boundaries. */
#include "base/device.cuh"
#include "gemm/gemm.h"
#include <climits>
#include <new>

namespace md {

/* T: type of A and B, R: of C and of the scalars. */
template <class T, class R = T> struct Operands {
  int m, n, k;
  int64_t lda, ldb, ldc;
  R alpha, beta;
  const T *a, *b;
  R *c;
};

template <class T, class R = T> Operands<T, R> operands(const md_gemm_call *call) {
  const md_gemm_problem *p = call->problem;
  return {
      (int)p->m,  (int)p->n,          (int)p->k,          p->lda,      p->ldb, p->ldc, (R)p->alpha,
      (R)p->beta, (const T *)call->a, (const T *)call->b, (R *)call->c};
}

inline cudaStream_t stream_of(const md_gemm_call *call) {
  return (cudaStream_t)call->launch->stream;
}

/* Tile counts are products of two ints: the grid is one-dimensional, 2^31 - 1 blocks at most. */
inline md_status grid_for(md_context *context, const md_gemm_problem *p, int rows, int columns,
                          unsigned *blocks) {
  *blocks = 0;
  const int64_t count = ((p->m + rows - 1) / rows) * ((p->n + columns - 1) / columns);
  if (p->m > INT_MAX - 1024 || p->n > INT_MAX - 1024 || p->k > INT_MAX - 1024 || count > INT_MAX)
    return md_fail(
        context, MD_INPUT,
        "device kernels take sizes and tile counts below 2^31, got %lldx%lldx%lld; split "
        "the product",
        (long long)p->m, (long long)p->n, (long long)p->k);
  *blocks = (unsigned)count;
  return MD_OK;
}

inline bool aligned(const void *pointer, int64_t ld, int element_bytes, int bytes) {
  return (uintptr_t)pointer % bytes == 0 && ld * element_bytes % bytes == 0;
}

struct Tile {
  int row, column; /* in tiles */
};

/* Blocks run down bands of `band` tile rows, so that those in flight share rows of A and columns
 * of B in L2. */
__device__ inline Tile tile_of(int block, int m, int n, int tile_rows, int tile_columns, int band) {
  const int rows = (m + tile_rows - 1) / tile_rows;
  const int columns = (n + tile_columns - 1) / tile_columns;
  const int first = block / (band * columns) * band;
  const int height = min(band, rows - first);
  const int rest = block - first * columns;
  return {first + rest % height, rest / height};
}

/* Element (i, j) of a rows x columns matrix, 0 outside. */
template <class T>
__device__ inline T at(const T *x, int64_t ld, int rows, int columns, int i, int j) {
  return i < rows && j < columns ? x[i * ld + j] : T(0);
}

/* C is read only when beta is not 0: it may hold NaN before. */
template <class R> __device__ inline void store(R *c, R value, R alpha, R beta) {
  *c = beta == R(0) ? alpha * value : alpha * value + beta * *c;
}

/* Four neighbours (row i, columns j .. j+3), as one 16-byte access where that is possible. */
template <bool vector, class T>
__device__ inline void store4(const Operands<T, float> &g, int i, int j, const float *v) {
  if (i >= g.m || j >= g.n) return;
  float *c = g.c + i * g.ldc + j;
  if (vector && j + 4 <= g.n) {
    float4 r = {g.alpha * v[0], g.alpha * v[1], g.alpha * v[2], g.alpha * v[3]};
    if (g.beta != 0.0f) {
      const float4 old = *(const float4 *)c;
      r.x += g.beta * old.x, r.y += g.beta * old.y, r.z += g.beta * old.z, r.w += g.beta * old.w;
    }
    *(float4 *)c = r;
    return;
  }
  for (int q = 0; q < 4; q++)
    if (j + q < g.n) store(c + q, v[q], g.alpha, g.beta);
}

/* md_gemm_kernel.run of step k0, k1, ... of the ladder, which keeps no state: one launch, in which
 * a block of X x Y threads computes ROWS x COLUMNS elements of C from T. */
template <int STEP, class T, auto kernel, int ROWS, int COLUMNS, int X, int Y = 1>
md_status run_step(md_context *context, const md_gemm_call *call) {
  char what[] = "GEMM kernel k0";
  unsigned blocks;
  what[sizeof what - 2] += STEP;
  MD_TRY(grid_for(context, call->problem, ROWS, COLUMNS, &blocks));
  kernel<<<blocks, dim3(X, Y), 0, stream_of(call)>>>(operands<T>(call));
  return md_cuda_launched(context, what);
}

/* The table entry of a kernel of the device; without open it keeps no state. */
constexpr md_gemm_kernel entry(const char *name, unsigned precisions,
                               decltype(md_gemm_kernel::run) run,
                               const char *const *variants = nullptr,
                               decltype(md_gemm_kernel::open) open = nullptr,
                               decltype(md_gemm_kernel::close) close = nullptr,
                               decltype(md_gemm_kernel::serves) serves = nullptr) {
  return {name, MD_GEMM_DEVICE, precisions, variants, nullptr, serves,
          open, close,          run,        nullptr,  nullptr};
}

enum : unsigned { SINGLE = 1u << MD_GEMM_SINGLE, DOUBLE = 1u << MD_GEMM_DOUBLE };

/* Device memory of a plan; it grows when a run asks for more. */
struct Workspace {
  void *data = nullptr;
  size_t bytes = 0;
};

inline md_status reserve(md_context *context, Workspace *w, size_t bytes) {
  if (bytes <= w->bytes) return MD_OK;
  md_device_free(w->data);
  *w = {};
  MD_TRY(md_device_allocate(context, bytes, "a padded copy of A and B", &w->data));
  w->bytes = bytes;
  return MD_OK;
}

inline md_status open_workspace(md_context *context, const md_gemm_problem *,
                                const md_gemm_launch *, void **state) {
  *state = new (std::nothrow) Workspace;
  return *state ? MD_OK : md_fail_memory(context, sizeof(Workspace), "a GEMM plan");
}

inline void close_workspace(void *state) {
  if (state) md_device_free(((Workspace *)state)->data);
  delete (Workspace *)state;
}

/* to (rows_to x ld_to, packed) <- from (rows x columns), zeros around it. */
template <class T>
__global__ void pad(T *to, int64_t ld_to, int64_t rows_to, const T *from, int64_t ld, int rows,
                    int columns) {
  for (int64_t e = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; e < rows_to * ld_to;
       e += (int64_t)gridDim.x * blockDim.x) {
    const int64_t i = e / ld_to, j = e % ld_to;
    to[e] = i < rows && j < columns ? from[i * ld + j] : T(0);
  }
}

/* Replaces A and B by copies whose rows and columns are rounded up to `round` (a multiple of 16
 * bytes), unless rows start on 16 bytes and the whole on 32 (WMMA asks for it) and, with `whole`,
 * sizes are multiples of it. */
template <class T, class R>
md_status pad_operands(md_context *context, Workspace *w, cudaStream_t stream, int round,
                       bool whole, Operands<T, R> *g) {
  const auto up = [round](int64_t x) { return (x + round - 1) / round * round; };
  const bool even = !whole || (g->m % round == 0 && g->n % round == 0 && g->k % round == 0);
  const auto fits = [even](const T *x, int64_t ld) {
    return even && aligned(x, ld, sizeof(T), 16) && (uintptr_t)x % 32 == 0;
  };
  const bool a_fits = fits(g->a, g->lda), b_fits = fits(g->b, g->ldb);
  const int64_t a_count = a_fits ? 0 : up(g->m) * up(g->k);
  const int64_t b_count = b_fits ? 0 : up(g->k) * up(g->n);
  if (a_fits && b_fits) return MD_OK;
  MD_TRY(reserve(context, w, (a_count + b_count) * sizeof(T)));
  if (!a_fits) {
    T *copy = (T *)w->data;
    pad<<<2048, 256, 0, stream>>>(copy, up(g->k), up(g->m), g->a, g->lda, g->m, g->k);
    g->a = copy, g->lda = up(g->k);
  }
  if (!b_fits) {
    T *copy = (T *)w->data + a_count;
    pad<<<2048, 256, 0, stream>>>(copy, up(g->n), up(g->k), g->b, g->ldb, g->k, g->n);
    g->b = copy, g->ldb = up(g->n);
  }
  return MD_OK;
}

} // namespace md
