#ifndef MD_GEMM_CUDA_WORKSPACE_CUH
#define MD_GEMM_CUDA_WORKSPACE_CUH

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
  cudaFree(w->data);
  *w = {};
  if (cudaMalloc(&w->data, bytes) != cudaSuccess) {
    cudaGetLastError();
    return md_fail_memory(context, bytes, "padded copies of A and B on the device");
  }
  w->bytes = bytes;
  return MD_OK;
}

inline md_status open_workspace(md_context *context, const md_gemm_problem *,
                                const md_gemm_launch *, void **state) {
  *state = new (std::nothrow) Workspace;
  return *state ? MD_OK : md_fail_memory(context, sizeof(Workspace), "a GEMM plan");
}

inline void close_workspace(void *state) {
  if (state) cudaFree(((Workspace *)state)->data);
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

__device__ inline float round_to_tf32(float x) {
  uint32_t bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return __uint_as_float(bits);
}

/* to <- from (rows x columns), or its transpose, rounded to TF32. Blocks of 32 x 8 take a tile of
 * 32 x 32. */
template <bool transposed>
__global__ void round_copy(float *to, int64_t ld_to, const float *from, int64_t ld, int rows,
                           int columns) {
  __shared__ float tile[32][33];
  const int across = (columns + 31) / 32;
  const int i0 = blockIdx.x / across * 32, j0 = blockIdx.x % across * 32;
  for (int y = threadIdx.y; y < 32; y += 8)
    tile[y][threadIdx.x] =
        round_to_tf32(at(from, ld, rows, columns, i0 + y, j0 + (int)threadIdx.x));
  __syncthreads();
  for (int y = threadIdx.y; y < 32; y += 8) {
    const int i = transposed ? i0 + threadIdx.x : i0 + y;
    const int j = transposed ? j0 + y : j0 + threadIdx.x;
    if (i < rows && j < columns)
      to[transposed ? j * ld_to + i : i * ld_to + j] =
          transposed ? tile[threadIdx.x][y] : tile[y][threadIdx.x];
  }
}

/* Replaces A by a rounded copy and B by a rounded transpose, rows on 16 bytes. */
inline md_status tf32_operands(md_context *context, Workspace *w, cudaStream_t stream,
                               Operands<float> *g) {
  const int64_t ld = (g->k + 3) / 4 * 4;
  MD_TRY(reserve(context, w, (g->m + (int64_t)g->n) * ld * sizeof(float)));
  float *a = (float *)w->data, *b = a + g->m * ld;
  const auto tiles = [](int64_t rows, int64_t columns) {
    return (unsigned)((rows + 31) / 32 * ((columns + 31) / 32));
  };
  round_copy<false><<<tiles(g->m, g->k), dim3(32, 8), 0, stream>>>(a, ld, g->a, g->lda, g->m, g->k);
  round_copy<true><<<tiles(g->k, g->n), dim3(32, 8), 0, stream>>>(b, ld, g->b, g->ldb, g->k, g->n);
  g->a = a, g->lda = ld, g->b = b, g->ldb = ld;
  return MD_OK;
}

} // namespace md

#endif
