#pragma once

/* Tensor maps: how the copy engine (TMA) is told of a row-major matrix. */
#include "gemm/cuda/workspace.cuh"
#include <cuda.h>
#include <cuda_fp16.h>
#include <type_traits>

namespace md {

/* The driver's encoder, found at run time: the program needs no libcuda to start. */
using MapEncoder = decltype(&cuTensorMapEncodeTiled);
inline MapEncoder encoder() {
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
  return (MapEncoder)function;
}

/* What the copy engine makes of the elements: TO_TF32 rounds floats on their way to shared memory.
 */
enum class MapType { STORED, TO_TF32 };

template <class T> constexpr CUtensorMapDataType map_type(MapType type) {
  return type == MapType::TO_TF32         ? CU_TENSOR_MAP_DATA_TYPE_TFLOAT32
         : std::is_same<T, double>::value ? CU_TENSOR_MAP_DATA_TYPE_FLOAT64
         : std::is_same<T, float>::value  ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32
         : std::is_same<T, __half>::value ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                          : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
}

/* What a plan of the Hopper kernels keeps from run to run: padded copies of operands, and tensor
 * maps while the operands stay where they are (encoding takes the host microseconds, in which the
 * device would wait). */
struct TensorPlan {
  Workspace workspace;
  MapEncoder encode = nullptr;
  int processors = 0;
  CUtensorMap map[3] = {}; /* of A, B, C */
  const void *mapped[3] = {};
};

/* For md_gemm_kernel's open; the kernel will ask for that many bytes of shared memory. */
template <class Kernel>
md_status open_tensor_plan(md_context *context, Kernel kernel, int shared_bytes, void **state) {
  TensorPlan *plan = new (std::nothrow) TensorPlan;
  *state = plan;
  if (!plan) return md_fail_memory(context, sizeof *plan, "a GEMM plan");
  plan->encode = encoder();
  if (!plan->encode)
    return md_fail(context, MD_ENVIRONMENT,
                   "tensor copies need a driver with cuTensorMapEncodeTiled (CUDA 12), found none");
  plan->processors = context->gpu.multiprocessors;
  return md_cuda_status(
      context,
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes),
      "shared memory for a GEMM kernel");
}

inline void close_tensor_plan(void *state) {
  if (state) md_device_free(((TensorPlan *)state)->workspace.data);
  delete (TensorPlan *)state;
}

/* Map 0, 1 or 2 of the plan, for boxes of box_rows rows of 128 bytes, swizzled. All but x is the
 * same in every run of a plan. */
template <class T>
md_status map_operand(md_context *context, TensorPlan *plan, int operand, const T *x, int rows,
                      int columns, int64_t ld, int box_rows, MapType type = MapType::STORED) {
  if (plan->mapped[operand] == x) return MD_OK;
  const cuuint64_t size[2] = {(cuuint64_t)columns, (cuuint64_t)rows}, pitch[1] = {ld * sizeof(T)};
  const cuuint32_t box[2] = {128 / sizeof(T), (cuuint32_t)box_rows}, step[2] = {1, 1};
  const CUresult result =
      plan->encode(&plan->map[operand], map_type<T>(type), 2, (void *)x, size, pitch, box, step,
                   CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                   CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  plan->mapped[operand] = result == CUDA_SUCCESS ? x : nullptr;
  if (result == CUDA_SUCCESS) return MD_OK;
  return md_fail(context, MD_ENVIRONMENT, "cuTensorMapEncodeTiled refused a %d x %d matrix: %d",
                 rows, columns, (int)result);
}

/* These kernels are built for sm_90a, whose code runs on compute capability 9.0 alone. */
inline md_status needs_hopper(md_context *context, const char *kernel) {
  MD_TRY(md_device_open(context));
  if (context->gpu.capability == 90) return MD_OK;
  return md_fail(context, MD_ENVIRONMENT,
                 "GEMM kernel %s needs compute capability 9.0a, this GPU has %d.%d; other kernels "
                 "of its precisions run here, see bench gemm --kernels all",
                 kernel, context->gpu.capability / 10, context->gpu.capability % 10);
}

} // namespace md
