#pragma once

/* Padded copies of operands for kernels that can only read rows on 16-byte boundaries. */
#include "gemm/cuda/launch.cuh"
#include <new>

namespace md {

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
