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

/* The entry points of storage type S. */
template <class S> constexpr md_stencil_kernels kernels_of() {
  return {pack_any<S>, hop_one_any<S>, hop_many_any<S>};
}

#endif
