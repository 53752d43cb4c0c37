#include "dirac/cuda/hop.cuh"

extern "C" const md_stencil_kernels md_stencil_single = kernels_of<float>();
