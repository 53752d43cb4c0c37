#pragma once

/* WMMA fragments by input type: 16 x 16 tiles of C in fp32, row-major A and B, 16 deep for 16-bit
 * inputs and 8 for TF32. */
#include "base/shared_copy.cuh"
#include "gemm/cuda/workspace.cuh"
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

namespace md {

enum : unsigned { TENSOR_INPUTS = 1u << MD_GEMM_HALF | 1u << MD_GEMM_BF16 | 1u << MD_GEMM_TF32 };

/* Fragments from shared memory. For fp16 the compiler turns load_matrix_sync into LDSM, but for
 * bf16 and TF32 it emits generic loads of single words; the PTX instruction that names the address
 * space does not. Registers are those of the fragment's storage. */
#define MD_WMMA_LOAD(operand, shape, type)                                                         \
  asm volatile("wmma.load." operand ".sync.aligned.row." shape ".shared." type                     \
               " {%0, %1, %2, %3}, [%4], %5;"                                                      \
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])                                    \
               : "r"(shared_address(from)), "r"(ld))

template <class Use, int K, class T>
__device__ inline void
load_shared(nvcuda::wmma::fragment<Use, 16, 16, K, T, nvcuda::wmma::row_major> &fragment,
            const void *from, int ld) {
  constexpr bool a = std::is_same<Use, nvcuda::wmma::matrix_a>::value;
  uint32_t *x = (uint32_t *)fragment.x;
  if constexpr (std::is_same<T, __half>::value)
    nvcuda::wmma::load_matrix_sync(fragment, (const __half *)from, ld);
  else if constexpr (std::is_same<T, __nv_bfloat16>::value && a)
    MD_WMMA_LOAD("a", "m16n16k16", "bf16");
  else if constexpr (std::is_same<T, __nv_bfloat16>::value)
    MD_WMMA_LOAD("b", "m16n16k16", "bf16");
  else if constexpr (a)
    MD_WMMA_LOAD("a", "m16n16k8", "tf32");
  else
    MD_WMMA_LOAD("b", "m16n16k8", "tf32");
}
#undef MD_WMMA_LOAD

/* TF32 operands are rounded; the hardware would cut them off. */
template <class Fragment> __device__ inline void round_tf32(Fragment &fragment) {
#pragma unroll
  for (int e = 0; e < fragment.num_elements; e++)
    fragment.x[e] = nvcuda::wmma::__float_to_tf32(fragment.x[e]);
}

template <class T> struct Fragments {
  static constexpr bool tf32 = std::is_same<T, nvcuda::wmma::precision::tf32>::value;
  static constexpr int DEPTH = tf32 ? 8 : 16;
  using Storage = typename std::conditional<tf32, float, T>::type;
  using A =
      nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 16, 16, DEPTH, T, nvcuda::wmma::row_major>;
  using B =
      nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, 16, 16, DEPTH, T, nvcuda::wmma::row_major>;
  using Sum = nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, DEPTH, float>;

  template <class Fragment>
  static __device__ void load(Fragment &fragment, const Storage *from, int ld) {
    nvcuda::wmma::load_matrix_sync(fragment, from, ld);
    if constexpr (tf32) round_tf32(fragment);
  }
  template <class Fragment>
  static __device__ void load_from_shared(Fragment &fragment, const Storage *from, int ld) {
    load_shared(fragment, from, ld);
    if constexpr (tf32) round_tf32(fragment);
  }
};

using Run = decltype(md_gemm_kernel::run);

/* md_gemm_kernel.run by the type of the inputs. */
template <Run of_half, Run of_bf16, Run of_tf32>
md_status run_inputs(md_context *context, const md_gemm_problem *p, const md_gemm_launch *launch,
                     void *state, const void *a, const void *b, void *c) {
  const Run run = p->precision == MD_GEMM_HALF   ? of_half
                  : p->precision == MD_GEMM_BF16 ? of_bf16
                                                 : of_tf32;
  return run(context, p, launch, state, a, b, c);
}

} // namespace md
