#ifndef MD_GEMM_CUDA_WMMA_CUH
#define MD_GEMM_CUDA_WMMA_CUH

/* WMMA fragments by input type: 16 x 16 tiles of C in fp32, row-major A and B, 16 deep for 16-bit
 * inputs and 8 for TF32. */
#include "gemm/cuda/workspace.cuh"
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

namespace md {

enum : unsigned { TENSOR_INPUTS = 1u << MD_GEMM_HALF | 1u << MD_GEMM_BF16 | 1u << MD_GEMM_TF32 };

template <class T> struct Fragments {
  static constexpr bool tf32 = std::is_same<T, nvcuda::wmma::precision::tf32>::value;
  static constexpr int DEPTH = tf32 ? 8 : 16;
  using Storage = typename std::conditional<tf32, float, T>::type;
  using A =
      nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 16, 16, DEPTH, T, nvcuda::wmma::row_major>;
  using B =
      nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, 16, 16, DEPTH, T, nvcuda::wmma::row_major>;
  using Sum = nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, DEPTH, float>;

  /* TF32 operands are rounded here; the hardware would cut them off. */
  template <class Fragment>
  static __device__ void load(Fragment &fragment, const Storage *from, int ld) {
    nvcuda::wmma::load_matrix_sync(fragment, from, ld);
    if constexpr (tf32)
      for (int e = 0; e < fragment.num_elements; e++)
        fragment.x[e] = nvcuda::wmma::__float_to_tf32(fragment.x[e]);
  }
};

} // namespace md

#endif
