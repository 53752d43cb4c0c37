#pragma once

#include <cuda_runtime.h>

extern "C" {
#include "base/device.h"
}

/* What .cu files share: the stream of all work, and CUDA's errors as statuses. */
static inline cudaStream_t md_stream(void) {
  return cudaStreamPerThread;
}

static inline md_status md_cuda_status(md_context *context, cudaError_t error, const char *what) {
  if (error == cudaSuccess) return MD_OK;
  cudaGetLastError(); /* or the next launch is blamed for it */
  return md_fail(context, MD_ENVIRONMENT, "%s failed on the GPU of rank %d: %s", what,
                 context->rank, cudaGetErrorString(error));
}
/* After a kernel launch: a bad configuration, or an earlier kernel that ended badly. */
static inline md_status md_cuda_launched(md_context *context, const char *what) {
  return md_cuda_status(context, cudaGetLastError(), what);
}

#ifdef __CUDACC__
/* Lets a kernel take that much dynamic shared memory; `what` says whose it is. */
template <class KERNEL>
static inline md_status md_cuda_allow_shared(md_context *context, KERNEL kernel, size_t bytes,
                                             const char *what) {
  const auto dynamic = cudaFuncAttributeMaxDynamicSharedMemorySize;
  return md_cuda_status(context, cudaFuncSetAttribute(kernel, dynamic, (int)bytes), what);
}

/* Programmatic launch exists from compute capability 9.0 on. Elsewhere the functions of the device
 * do nothing, and a kernel begins when its predecessor has ended. */
#ifdef __CUDA_ARCH_LIST__
constexpr int md_architectures[] = {__CUDA_ARCH_LIST__}; /* of this build, 900 for 9.0 */
constexpr int md_least_architecture() {
  int least = md_architectures[0];
  for (const int a : md_architectures) least = a < least ? a : least;
  return least;
}
#endif
/* Only a build that has older code too asks which of it the GPU runs: that need not be the GPU's
 * own. */
static inline bool md_launches_early(const void *kernel) {
#ifdef __CUDA_ARCH_LIST__
  if constexpr (md_least_architecture() >= 900) return true;
#endif
  cudaFuncAttributes of_code;
  return cudaFuncGetAttributes(&of_code, kernel) == cudaSuccess && of_code.ptxVersion >= 90;
}
/* Launches a kernel that may start while its predecessor on the stream drains. Each block must
 * call md_wait_for_predecessor() before it touches what queued work writes or reads. On another
 * stream than that of all work, `queue`, the predecessor may be a copy, and nothing starts early.
 */
template <class... P, class... A>
static inline void md_launch_early_on(void *queue, void (*kernel)(P...), dim3 grid, dim3 block,
                                      size_t shared, A... arguments) {
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared;
  config.stream = queue ? static_cast<cudaStream_t>(queue) : md_stream();
  config.attrs = &early;
  config.numAttrs = !queue && md_launches_early((const void *)kernel) ? 1 : 0;
  cudaLaunchKernelEx(&config, kernel, arguments...);
}
template <class... P, class... A>
static inline void md_launch_early(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared,
                                   A... arguments) {
  md_launch_early_on(NULL, kernel, grid, block, shared, arguments...);
}
/* The successor may take the places that this grid's blocks leave. */
static __device__ inline void md_release_successor() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
static __device__ inline void md_wait_for_predecessor() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
#endif
