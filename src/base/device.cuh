#ifndef MD_BASE_DEVICE_CUH
#define MD_BASE_DEVICE_CUH

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
  return md_fail(context, MD_ENVIRONMENT, "%s failed on the GPU of rank %d: %s", what,
                 context->rank, cudaGetErrorString(error));
}
/* After a kernel launch: a bad configuration, or an earlier kernel that ended badly. */
static inline md_status md_cuda_launched(md_context *context, const char *what) {
  return md_cuda_status(context, cudaGetLastError(), what);
}

#endif
