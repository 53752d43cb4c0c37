#include "dirac/cuda/hop_spins.cuh"

template int hop_spins_any<__nv_bfloat16>(const md_stencil *, const md_hop_call *);
