#include "dirac/cuda/hop.cuh"

extern "C" const md_stencil_kernels md_stencil_half = kernels_of<__half>();
