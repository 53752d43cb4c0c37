#include "base/device.cuh"
#include "base/device_nccl.h"
#include "base/device_staging.h"
#include "base/memory_need.h"

extern "C" {
#include "base/timer.h"
#include "base/watch.h"
}

#include <math.h>
#include <new>
#include <stdio.h>
#include <string.h>

struct md_device_timer {
  cudaEvent_t start, stop;
};

struct md_device_recording {
  cudaGraphExec_t graph;
};

/* All facts but `open` and `code`. */
static md_device_facts facts_of(const cudaDeviceProp &properties, int number) {
  md_device_facts facts = {};
  int clock_khz = 0, memory_khz = 0; /* stay where they are not told */
  cudaDeviceGetAttribute(&clock_khz, cudaDevAttrClockRate, number);
  cudaDeviceGetAttribute(&memory_khz, cudaDevAttrMemoryClockRate, number);
  cudaDriverGetVersion(&facts.driver_cuda);
  cudaGetLastError();
  facts.number = number;
  memcpy(facts.uuid, properties.uuid.bytes, sizeof facts.uuid);
  snprintf(facts.name, sizeof facts.name, "%.127s", properties.name);
  facts.memory_bytes = (long long)properties.totalGlobalMem;
  facts.clock_mhz = clock_khz / 1000;
  facts.memory_clock_mhz = memory_khz / 1000;
  facts.ecc = properties.ECCEnabled != 0;
  facts.capability = 10 * properties.major + properties.minor;
  facts.multiprocessors = properties.multiProcessorCount;
  facts.block_shared_bytes = (int)properties.sharedMemPerBlockOptin;
  facts.reserved_shared_bytes = (int)properties.reservedSharedMemPerBlock;
  facts.l2_bytes = properties.l2CacheSize;
  facts.bandwidth = 2e3 * memory_khz * properties.memoryBusWidth / 8; /* twice a clock */
  return facts;
}

/* Runs nowhere: its presence in the loaded module tells whether the GPU can run this build. */
__global__ static void probe(void) {}

md_status md_device_open(md_context *context) {
  if (context->gpu.open) return MD_OK;
  int count = 0, driver = 0;
  const cudaError_t found = cudaGetDeviceCount(&count);
  cudaDriverGetVersion(&driver);
  if (driver == 0)
    return md_fail(context, MD_ENVIRONMENT,
                   "GPU code needs the NVIDIA driver, and none is loaded on the host of rank %d; "
                   "install it or choose a CPU backend",
                   context->rank);
  if (found != cudaSuccess || count == 0)
    return md_fail(context, MD_ENVIRONMENT,
                   "GPU code needs a CUDA device, rank %d sees none (%s); check "
                   "CUDA_VISIBLE_DEVICES or choose a CPU backend",
                   context->rank, cudaGetErrorString(found));
  const int device = context->local_rank % count;
  cudaDeviceProp properties;
  cudaFuncAttributes attributes;
  MD_TRY(md_cuda_status(context, cudaSetDevice(device), "choosing the device"));
  MD_TRY(md_cuda_status(context, cudaGetDeviceProperties(&properties, device), "device query"));
  if (cudaFuncGetAttributes(&attributes, probe) != cudaSuccess) {
    cudaGetLastError();
    return md_fail(context, MD_ENVIRONMENT,
                   "this build has no code for GPU %d (%s, compute capability %d.%d); build with "
                   "-DCMAKE_CUDA_ARCHITECTURES=%d%d",
                   device, properties.name, properties.major, properties.minor, properties.major,
                   properties.minor);
  }
  /* Freed memory stays in the pool: solvers and sums allocate and free what others just freed. */
  cudaMemPool_t pool;
  uint64_t keep = UINT64_MAX;
  if (cudaDeviceGetDefaultMemPool(&pool, device) == cudaSuccess)
    cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep);
  context->gpu = facts_of(properties, device);
  context->gpu.code = attributes.ptxVersion;
  context->gpu.open = true;
  if (context->local_ranks > count)
    md_warn(context, "%d ranks share %d GPU%s of a host and take turns; use a rank for each GPU",
            context->local_ranks, count, count > 1 ? "s" : "");
  return MD_OK;
}

void md_device_close(md_context *context) {
  md_nccl_close(context);
  md_device_staging_close(context);
  context->gpu.open = false;
}

/* Bytes that the pool holds and nobody uses. */
static size_t free_in_pool(int device) {
  cudaMemPool_t pool;
  uint64_t reserved = 0, used = 0;
  if (cudaDeviceGetDefaultMemPool(&pool, device) != cudaSuccess) return 0;
  cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved);
  cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used);
  return (size_t)(reserved - used);
}

md_status md_device_require(md_context *context, size_t bytes, const char *what) {
  MD_TRY(md_device_open(context));
  if (md_counts(context)) return MD_OK; /* what it is about to allocate is counted there */
  size_t available = 0, total = 0;
  MD_TRY(md_cuda_status(context, cudaMemGetInfo(&available, &total), "memory query"));
  available += free_in_pool(context->gpu.number);
  if (bytes <= available) return MD_OK;
  return md_fail(context, MD_ENVIRONMENT,
                 "%s needs %.3f GB of device memory on rank %d, %.3f of %.3f GB are free; use "
                 "more GPUs, a smaller lattice or matrix, or a shorter precision",
                 what, (double)bytes * 1e-9, context->rank, (double)available * 1e-9,
                 (double)total * 1e-9);
}

md_status md_device_allocate(md_context *context, size_t bytes, const char *what, void **memory) {
  *memory = NULL;
  if (bytes == 0) return MD_OK;
  MD_TRY(md_device_require(context, bytes, what));
  if (md_counts(context)) {
    md_count_memory(context, {0, (int64_t)bytes});
    return MD_OK;
  }
  cudaError_t error = cudaMallocAsync(memory, bytes, md_stream());
  if (error != cudaSuccess) *memory = NULL;
  if (error == cudaSuccess) error = cudaMemsetAsync(*memory, 0, bytes, md_stream());
  if (error == cudaSuccess) return MD_OK;
  md_device_free(*memory);
  *memory = NULL;
  return md_cuda_status(context, error, what);
}

void md_device_free(void *memory) {
  if (memory) cudaFreeAsync(memory, md_stream());
}

void md_device_release(const md_context *context) {
  cudaMemPool_t pool;
  if (!context->gpu.open) return;
  if (cudaStreamSynchronize(md_stream()) != cudaSuccess) return; /* met by the next call */
  if (cudaDeviceGetDefaultMemPool(&pool, context->gpu.number) == cudaSuccess)
    cudaMemPoolTrimTo(pool, 0);
}

long long md_device_peak(const md_context *context) {
  cudaMemPool_t pool;
  uint64_t most = 0;
  if (!context->gpu.open) return 0;
  if (cudaDeviceGetDefaultMemPool(&pool, context->gpu.number) != cudaSuccess) return 0;
  cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &most);
  return (long long)most;
}

md_status md_device_allocate_pinned(md_context *context, size_t bytes, const char *what,
                                    void **memory) {
  *memory = NULL;
  if (bytes == 0) return MD_OK;
  MD_TRY(md_device_open(context));
  if (cudaMallocHost(memory, bytes) == cudaSuccess) return MD_OK;
  cudaGetLastError();
  *memory = NULL;
  return md_fail_memory(context, bytes, what);
}

void md_device_free_pinned(void *memory) {
  cudaFreeHost(memory);
}

md_status md_device_pin(md_context *context, void *memory, size_t bytes) {
  MD_TRY(md_device_open(context));
  const cudaError_t error = cudaHostRegister(memory, bytes, cudaHostRegisterDefault);
  if (error != cudaSuccess) cudaGetLastError();
  return md_cuda_status(context, error, "page-locking of host memory");
}

void md_device_unpin(void *memory) {
  cudaHostUnregister(memory);
}

static const size_t staged_from = (size_t)2 << 20; /* bytes of a copy that is worth the threads */

static md_status copy(md_context *context, void *to, const void *from, size_t bytes,
                      cudaMemcpyKind kind, const char *what) {
  return md_cuda_status(context, cudaMemcpyAsync(to, from, bytes, kind, md_stream()), what);
}

/* Whether the copy is large, and the host's side of it is not page-locked already. */
static bool worth_staging(const void *host, size_t bytes) {
  cudaPointerAttributes attributes;
  if (bytes < staged_from) return false;
  if (cudaPointerGetAttributes(&attributes, host) == cudaSuccess)
    return attributes.type == cudaMemoryTypeUnregistered;
  cudaGetLastError();
  return true;
}

md_status md_device_upload(md_context *context, void *device, const void *host, size_t bytes) {
  if (md_counts(context)) return MD_OK;
  if (worth_staging(host, bytes)) return md_device_staged_upload(context, device, host, bytes);
  MD_TRY(copy(context, device, host, bytes, cudaMemcpyHostToDevice, "copy to the device"));
  return md_device_synchronise(context);
}

md_status md_device_download(md_context *context, void *host, const void *device, size_t bytes) {
  if (worth_staging(host, bytes)) return md_device_staged_download(context, host, device, bytes);
  MD_TRY(copy(context, host, device, bytes, cudaMemcpyDeviceToHost, "copy from the device"));
  return md_device_synchronise(context);
}

md_status md_device_copy(md_context *context, void *to, const void *from, size_t bytes) {
  return copy(context, to, from, bytes, cudaMemcpyDeviceToDevice, "copy on the device");
}

static md_status copy_rows(md_context *context, void *to, const void *from,
                           const md_device_rows *rows, cudaMemcpyKind kind, const char *what) {
  return md_cuda_status(context,
                        cudaMemcpy2DAsync(to, rows->to_pitch, from, rows->from_pitch, rows->bytes,
                                          rows->count, kind, md_stream()),
                        what);
}

md_status md_device_upload_rows(md_context *context, void *device, const void *host,
                                const md_device_rows *rows) {
  if (rows->count == 1) return md_device_upload(context, device, host, rows->bytes);
  MD_TRY(
      copy_rows(context, device, host, rows, cudaMemcpyHostToDevice, "copy of rows to the device"));
  return md_device_synchronise(context);
}

md_status md_device_download_rows(md_context *context, void *host, const void *device,
                                  const md_device_rows *rows) {
  if (rows->count == 1) return md_device_download(context, host, device, rows->bytes);
  MD_TRY(copy_rows(context, host, device, rows, cudaMemcpyDeviceToHost,
                   "copy of rows from the device"));
  return md_device_synchronise(context);
}

md_status md_device_copy_rows(md_context *context, void *to, const void *from,
                              const md_device_rows *rows) {
  if (rows->count == 1) return md_device_copy(context, to, from, rows->bytes);
  return copy_rows(context, to, from, rows, cudaMemcpyDeviceToDevice, "copy of rows on the device");
}

void *md_device_stream(void) {
  return md_stream();
}

md_status md_device_synchronise(md_context *context) {
  return md_cuda_status(context, cudaStreamSynchronize(md_stream()), "queued work");
}

md_status md_device_await(md_context *context, const long long *serial, long long awaited,
                          const char *what) {
  const double start_s = md_time_s();
  bool ended = false;
  for (long long spins = 1; __atomic_load_n(serial, __ATOMIC_ACQUIRE) != awaited; spins++) {
    if (ended)
      return md_fail(context, MD_ENVIRONMENT, "%s ended on the GPU of rank %d without its result",
                     what, context->rank);
    if (spins % 4096 != 0) continue;
    const cudaError_t error = cudaStreamQuery(md_stream());
    ended = error == cudaSuccess;
    if (!ended && error != cudaErrorNotReady) return md_cuda_status(context, error, what);
    if (ended || !md_watch_due(context, start_s)) continue;
    return md_watch_begin(context, MD_WATCH_DEVICE, 6.0,
                          md_fail(context, MD_ENVIRONMENT,
                                  "rank %d waited %.0f s for %s in vain; a rank that its GPU waits "
                                  "for has ended or is blocked",
                                  context->rank, context->patience_s, what));
  }
  return MD_OK;
}

md_status md_device_record(md_context *context, md_status (*queue)(md_context *, void *user),
                           void *user, md_device_recording **recording) {
  cudaGraph_t graph = NULL;
  *recording = NULL;
  MD_TRY(md_device_open(context));
  MD_TRY(md_cuda_status(context,
                        cudaStreamBeginCapture(md_stream(), cudaStreamCaptureModeThreadLocal),
                        "recording of work"));
  md_device_recording *r = new (std::nothrow) md_device_recording();
  md_status status = queue(context, user);
  cudaError_t error = cudaStreamEndCapture(md_stream(), &graph);
  if (status == MD_OK && !r) status = md_fail_memory(context, sizeof *r, "recording of work");
  /* What streams of higher priority carry stays ahead. */
  if (status == MD_OK && error == cudaSuccess)
    error = cudaGraphInstantiate(&r->graph, graph, cudaGraphInstantiateFlagUseNodePriority);
  if (status == MD_OK) status = md_cuda_status(context, error, "recording of work");
  if (graph) cudaGraphDestroy(graph);
  if (status == MD_OK)
    *recording = r;
  else
    delete r;
  return status;
}

md_status md_device_replay(md_context *context, const md_device_recording *recording) {
  return md_cuda_status(context, cudaGraphLaunch(recording->graph, md_stream()), "recorded work");
}

void md_device_recording_destroy(md_device_recording *recording) {
  if (!recording) return;
  cudaGraphExecDestroy(recording->graph);
  delete recording;
}

md_status md_device_timer_create(md_context *context, md_device_timer **timer) {
  *timer = NULL;
  MD_TRY(md_device_open(context));
  md_device_timer *t = new (std::nothrow) md_device_timer();
  md_status status = t ? MD_OK : md_fail_memory(context, sizeof *t, "event");
  if (status == MD_OK) status = md_cuda_status(context, cudaEventCreate(&t->start), "event");
  if (status == MD_OK) status = md_cuda_status(context, cudaEventCreate(&t->stop), "event");
  if (status == MD_OK)
    *timer = t;
  else
    md_device_timer_destroy(t);
  return status;
}

void md_device_timer_destroy(md_device_timer *timer) {
  if (!timer) return;
  if (timer->start) cudaEventDestroy(timer->start);
  if (timer->stop) cudaEventDestroy(timer->stop);
  delete timer;
}

void md_device_timer_start(md_device_timer *timer) {
  cudaEventRecord(timer->start, md_stream());
}

double md_device_timer_stop_s(md_device_timer *timer) {
  float ms = 0.0f;
  cudaEventRecord(timer->stop, md_stream());
  if (cudaEventSynchronize(timer->stop) != cudaSuccess ||
      cudaEventElapsedTime(&ms, timer->start, timer->stop) != cudaSuccess)
    return NAN;
  return 1e-3 * ms;
}
