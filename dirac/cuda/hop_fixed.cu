#include "dirac/cuda/hop.cuh"

extern "C" const md_stencil_kernels md_stencil_fixed = kernels_of<fixed16>();
