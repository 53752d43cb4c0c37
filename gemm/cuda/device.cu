/* Device and pinned memory, transfers and event times: see gemm/device.h. */
#include "gemm/cuda/launch.cuh"
#include "gemm/device.h"
extern "C" {
#include "base/memory.h"
}
#include <cstdio>
#include <cstdlib>

using namespace md;

extern "C" md_status md_gemm_device_open(md_context *context, md_gemm_device *device) {
  *device = {};
  int devices = 0;
  const cudaError_t found = cudaGetDeviceCount(&devices);
  if (found != cudaSuccess || devices == 0)
    return md_fail(context, MD_ENVIRONMENT, "a device kernel needs an NVIDIA GPU with a driver: %s",
                   found != cudaSuccess ? cudaGetErrorString(found) : "no device found");
  /* Ranks of a node are consecutive under the usual mappings. */
  MD_TRY(status_of(context, cudaSetDevice(context->rank % devices), "take the device"));
  cudaDeviceProp properties;
  MD_TRY(status_of(context, cudaGetDeviceProperties(&properties, context->rank % devices),
                   "read the device's properties"));
  snprintf(device->name, sizeof device->name, "%.127s", properties.name);
  size_t total = 0;
  MD_TRY(status_of(context, cudaMemGetInfo(&device->free_bytes, &total), "read the free memory"));
  cudaStream_t stream = nullptr;
  cudaEvent_t event[2] = {};
  md_status status = status_of(context, cudaStreamCreate(&stream), "create a stream");
  for (int e = 0; e < 2 && status == MD_OK; e++)
    status = status_of(context, cudaEventCreate(&event[e]), "create an event");
  device->stream = stream, device->event[0] = event[0], device->event[1] = event[1];
  if (status != MD_OK) md_gemm_device_close(device);
  return status;
}

extern "C" void md_gemm_device_close(md_gemm_device *device) {
  for (int e = 0; e < 2; e++)
    if (device->event[e]) cudaEventDestroy((cudaEvent_t)device->event[e]);
  if (device->stream) cudaStreamDestroy((cudaStream_t)device->stream);
  *device = {};
}

extern "C" md_status md_gemm_device_allocate(md_context *context, md_gemm_device *, int64_t rows,
                                             int64_t columns, size_t element_bytes, bool pitched,
                                             md_gemm_device_matrix *matrix) {
  *matrix = {};
  void *data = nullptr;
  size_t pitch = columns * element_bytes;
  const size_t bytes = rows * pitch;
  const cudaError_t error =
      pitched ? cudaMallocPitch(&data, &pitch, pitch, rows) : cudaMalloc(&data, bytes);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError(); /* not sticky: taken back */
    size_t free_bytes = 0, total = 0;
    cudaMemGetInfo(&free_bytes, &total);
    return md_fail(context, MD_ENVIRONMENT,
                   "matrices must fit into device memory, a %lld x %lld one of %zu bytes does not "
                   "(%zu of %zu free); take smaller sizes or more ranks",
                   (long long)rows, (long long)columns, bytes, free_bytes, total);
  }
  MD_TRY(status_of(context, error, "allocate a matrix"));
  *matrix = {data, rows, columns, (int64_t)(pitch / element_bytes), element_bytes};
  return MD_OK;
}

extern "C" void md_gemm_device_free(md_gemm_device_matrix *matrix) {
  cudaFree(matrix->data);
  *matrix = {};
}

static md_status copy(md_context *context, md_gemm_device *device, void *to, int64_t to_ld,
                      const void *from, int64_t from_ld, const md_gemm_device_matrix *shape,
                      cudaMemcpyKind kind, bool wait) {
  const size_t size = shape->element_bytes;
  cudaStream_t stream = (cudaStream_t)device->stream;
  const size_t row = shape->columns * size;
  /* Dense rows go as one piece: a faster copy than the same rows one by one. */
  cudaError_t error = to_ld == shape->columns && from_ld == shape->columns
                          ? cudaMemcpyAsync(to, from, row * shape->rows, kind, stream)
                          : cudaMemcpy2DAsync(to, to_ld * size, from, from_ld * size, row,
                                              shape->rows, kind, stream);
  if (error == cudaSuccess && wait) error = cudaStreamSynchronize(stream);
  return status_of(context, error, "copy a matrix");
}

extern "C" md_status md_gemm_device_put(md_context *context, md_gemm_device *device,
                                        const md_gemm_device_matrix *to, const void *from,
                                        int64_t from_ld) {
  return copy(context, device, to->data, to->ld, from, from_ld, to, cudaMemcpyHostToDevice, true);
}

extern "C" md_status md_gemm_device_get(md_context *context, md_gemm_device *device, void *to,
                                        int64_t to_ld, const md_gemm_device_matrix *from) {
  return copy(context, device, to, to_ld, from->data, from->ld, from, cudaMemcpyDeviceToHost, true);
}

extern "C" md_status md_gemm_device_copy(md_context *context, md_gemm_device *device,
                                         const md_gemm_device_matrix *to,
                                         const md_gemm_device_matrix *from) {
  return copy(context, device, to->data, to->ld, from->data, from->ld, from,
              cudaMemcpyDeviceToDevice, false);
}

extern "C" md_status md_gemm_host_allocate(md_context *context, md_gemm_host_memory kind,
                                           size_t bytes, const char *what, void **memory) {
  *memory = nullptr;
  if (kind == MD_GEMM_PINNED) {
    if (cudaMallocHost(memory, bytes) == cudaSuccess) return MD_OK;
    cudaGetLastError();
    *memory = nullptr;
    return md_fail_memory(context, bytes, what);
  }
  MD_TRY(md_allocate(context, bytes, what, memory));
  if (kind == MD_GEMM_PAGEABLE || !*memory) return MD_OK;
  const cudaError_t error = cudaHostRegister(*memory, bytes, cudaHostRegisterDefault);
  if (error == cudaSuccess) return MD_OK;
  cudaGetLastError();
  free(*memory);
  *memory = nullptr;
  return status_of(context, error, "pin host memory");
}

extern "C" void md_gemm_host_free(md_gemm_host_memory kind, void *memory) {
  if (!memory) return;
  if (kind == MD_GEMM_PINNED) {
    cudaFreeHost(memory);
    return;
  }
  if (kind == MD_GEMM_REGISTERED) cudaHostUnregister(memory);
  free(memory);
}

extern "C" md_status md_gemm_device_start(md_context *context, md_gemm_device *device) {
  return status_of(context,
                   cudaEventRecord((cudaEvent_t)device->event[0], (cudaStream_t)device->stream),
                   "record an event");
}

extern "C" md_status md_gemm_device_stop(md_context *context, md_gemm_device *device,
                                         double *time_s) {
  *time_s = 0.0;
  cudaEvent_t start = (cudaEvent_t)device->event[0], stop = (cudaEvent_t)device->event[1];
  MD_TRY(
      status_of(context, cudaEventRecord(stop, (cudaStream_t)device->stream), "record an event"));
  MD_TRY(status_of(context, cudaEventSynchronize(stop), "finish the queued work"));
  float time_ms = 0.0f;
  MD_TRY(status_of(context, cudaEventElapsedTime(&time_ms, start, stop), "read an event time"));
  *time_s = 1e-3 * time_ms;
  return MD_OK;
}
