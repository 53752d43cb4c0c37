#include "lattice/fields/cuda/linear_device.cuh"

extern "C" const md_linear_table md_linear_device_double = linear_table_of<double>();
extern "C" const md_linear_table md_linear_device_single = linear_table_of<float>();
extern "C" const md_linear_table md_linear_device_half = linear_table_of<__half>();
extern "C" const md_linear_table md_linear_device_bf16 = linear_table_of<__nv_bfloat16>();
extern "C" const md_linear_table md_linear_device_fixed = linear_table_of<fixed16>();
