#ifndef MD_GEMM_CUDA_TENSOR_MAP_CUH
#define MD_GEMM_CUDA_TENSOR_MAP_CUH

/* Tensor maps: how the copy engine (TMA) is told of a row-major matrix. */
#include "gemm/cuda/launch.cuh"
#include <cuda.h>
#include <cuda_fp16.h>
#include <type_traits>

namespace md {

/* The driver's encoder, found at run time: the program needs no libcuda to start. */
inline decltype(&cuTensorMapEncodeTiled) encoder() {
  void *function = nullptr;
  cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 12050
  const cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function,
                                                             12000, cudaEnableDefault, &found);
#else
  const cudaError_t error =
      cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &found);
#endif
  if (error != cudaSuccess || found != cudaDriverEntryPointSuccess) return nullptr;
  return (decltype(&cuTensorMapEncodeTiled))function;
}

template <class T> constexpr CUtensorMapDataType map_type() {
  return std::is_same<T, double>::value   ? CU_TENSOR_MAP_DATA_TYPE_FLOAT64
         : std::is_same<T, float>::value  ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32
         : std::is_same<T, __half>::value ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                          : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
}

/* For boxes of box_rows rows of 128 bytes, swizzled. */
template <class T>
md_status tensor_map(md_context *context, CUtensorMap *map, const T *x, int rows, int columns,
                     int64_t ld, int box_rows) {
  const auto encode = encoder();
  if (!encode)
    return md_fail(context, MD_ENVIRONMENT,
                   "tensor copies need a driver with cuTensorMapEncodeTiled (CUDA 12), found none");
  const cuuint64_t size[2] = {(cuuint64_t)columns, (cuuint64_t)rows}, pitch[1] = {ld * sizeof(T)};
  const cuuint32_t box[2] = {128 / sizeof(T), (cuuint32_t)box_rows}, step[2] = {1, 1};
  const CUresult result =
      encode(map, map_type<T>(), 2, (void *)x, size, pitch, box, step,
             CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result == CUDA_SUCCESS) return MD_OK;
  return md_fail(context, MD_ENVIRONMENT, "cuTensorMapEncodeTiled refused a %d x %d matrix: %d",
                 rows, columns, (int)result);
}

/* For md_gemm_kernel's `missing`: these kernels are built for sm_90a. */
inline const char *needs_hopper() {
  int device = 0, major = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  return major == 9 ? nullptr : "it needs a Hopper GPU (compute capability 9.0)";
}

} // namespace md

#endif
