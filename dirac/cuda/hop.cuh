#ifndef MD_DIRAC_CUDA_HOP_CUH
#define MD_DIRAC_CUDA_HOP_CUH

#include <math_constants.h>
#include <type_traits>

extern "C" {
#include "dirac/cuda/stencil.h"
}
#include "dirac/cuda/hop_many.cuh"
#include "dirac/cuda/hop_one.cuh"
#include "dirac/cuda/pack.cuh"

template <class S> static size_t chunk_bytes(int reals, int sites_per_slot) {
  const size_t bytes = 2 * (size_t)reals * (size_t)sites_per_slot * sizeof(S);
  return bytes % 16 == 0 ? 16 : bytes % 8 == 0 ? 8 : 4;
}

/* The entry points of storage type S. */
template <class S> constexpr md_stencil_kernels kernels_of() {
  return {chunk_bytes<S>, pack_any<S>, hop_one_any<S>, hop_many_any<S>};
}

#endif
