#include "lattice/fields/cuda/linear_device.cuh"

extern "C" const md_linear_table md_linear_device[MD_PRECISIONS] = {
    linear_table_of<double>(), linear_table_of<float>(), linear_table_of<__half>(),
    linear_table_of<__nv_bfloat16>(), linear_table_of<fixed16>()};
