#include "dirac/cuda/hop.cuh"

extern "C" const md_stencil_kernels md_stencil_bf16 = kernels_of<__nv_bfloat16>();
