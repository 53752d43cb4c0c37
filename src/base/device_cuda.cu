#include "base/device.cuh"
#include "base/device_peers.h"
#include "base/memory_need.h"

extern "C" {
#include "base/memory.h"
#include "base/timer.h"
#include "base/watch.h"
}

#include <algorithm>
#include <math.h>
#include <new>
#include <stdio.h>
#include <string.h>

struct md_device_timer {
  cudaEvent_t start, stop;
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
  const int device = context->device % count;
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
  md_device_pretend(&context->gpu, &context->wishes.gpu);
  context->gpu.open = true;
  if (context->local_ranks > count)
    md_warn(context, "%d ranks share %d GPU%s of a host and take turns; use a rank for each GPU",
            context->local_ranks, count, count > 1 ? "s" : "");
  return MD_OK;
}

/* What the pool of the device's memory counts; 0 where no device is open. */
static uint64_t in_pool(const md_context *context, cudaMemPoolAttr bytes) {
  cudaMemPool_t pool;
  uint64_t value = 0;
  if (context->gpu.open && cudaDeviceGetDefaultMemPool(&pool, context->gpu.number) == cudaSuccess)
    cudaMemPoolGetAttribute(pool, bytes, &value);
  return value;
}

md_status md_device_require(md_context *context, size_t bytes, const char *what) {
  MD_TRY(md_device_open(context));
  if (md_counts(context)) return MD_OK; /* what it is about to allocate is counted there */
  size_t available = 0, total = 0;
  MD_TRY(md_cuda_status(context, cudaMemGetInfo(&available, &total), "memory query"));
  available += in_pool(context, cudaMemPoolAttrReservedMemCurrent) -
               in_pool(context, cudaMemPoolAttrUsedMemCurrent);
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
  return (long long)in_pool(context, cudaMemPoolAttrUsedMemHigh);
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

/* Large copies between pageable host memory and the device: all threads carry pieces through
 * page-locked buffers of the context while the copy engine moves the one before, which is several
 * times the speed of the driver's own way. */
static constexpr int PIECES = 4;
static constexpr size_t PIECE_BYTES = (size_t)8 << 20;
static constexpr size_t STAGED_FROM = (size_t)2 << 20; /* bytes that are worth the threads */

struct md_device_staging {
  char *memory; /* page-locked, PIECES of PIECE_BYTES */
  cudaEvent_t done[PIECES];
};

static md_status make_staging(md_context *context, md_device_staging *s) {
  for (cudaEvent_t &done : s->done)
    MD_TRY(
        md_cuda_status(context, cudaEventCreateWithFlags(&done, cudaEventDisableTiming), "event"));
  return md_device_allocate_pinned(context, PIECES * PIECE_BYTES, "copy buffers",
                                   (void **)&s->memory);
}

static void close_staging(md_context *context) {
  md_device_staging *s = context->staging;
  if (!s) return;
  for (cudaEvent_t done : s->done)
    if (done) cudaEventDestroy(done);
  md_device_free_pinned(s->memory);
  delete s;
  context->staging = NULL;
}

/* All of it or none. */
static md_status open_staging(md_context *context) {
  if (context->staging) return MD_OK;
  md_device_staging *s = context->staging = new (std::nothrow) md_device_staging();
  if (!s) return md_fail_memory(context, sizeof *s, "copy buffers");
  const md_status status = make_staging(context, s);
  if (status != MD_OK) close_staging(context);
  return status;
}

/* Rows of the host, `pitch` bytes apart, that lie one behind the other on the device. */
struct host_rows {
  char *memory;
  size_t bytes, pitch;
};

/* Bytes first .. first + n - 1 of the rows to or from a buffer; whole rows, where they are apart.
 */
static void move_piece(const md_context *context, bool up, char *buffer, const host_rows &rows,
                       size_t first, size_t n) {
  const size_t row = rows.bytes;
  char *host = rows.memory + first / row * rows.pitch + first % row;
  if (rows.pitch == row || first % row + n <= row)
    md_copy_parallel(context, up ? buffer : host, up ? host : buffer, n);
  else
    md_copy_rows_parallel(context, up ? buffer : host, up ? row : rows.pitch, up ? host : buffer,
                          up ? rows.pitch : row, row, n / row);
}

/* Carries `bytes` through the buffers, up to the device or down from it. Each buffer takes every
 * PIECES-th piece: it waits until the copy engine is done with the one before, whose bytes on the
 * way down then go to the host, and queues its next. The loop runs PIECES rounds beyond the last
 * piece, in which those under way come in. */
static cudaError_t carry(const md_context *context, bool up, char *device, const host_rows &rows,
                         size_t bytes) {
  const md_device_staging *s = context->staging;
  const size_t piece =
      rows.bytes < PIECE_BYTES ? PIECE_BYTES / rows.bytes * rows.bytes : PIECE_BYTES;
  const size_t count = (bytes + piece - 1) / piece;
  const auto bytes_of = [&](size_t i) { return std::min(piece, bytes - i * piece); };
  cudaError_t error = cudaSuccess;
  for (size_t i = 0; i < count + PIECES && error == cudaSuccess; i++) {
    char *buffer = s->memory + i % PIECES * PIECE_BYTES;
    cudaEvent_t done = s->done[i % PIECES];
    if (i >= PIECES) {
      const size_t before = i - PIECES;
      error = cudaEventSynchronize(done);
      if (!up && error == cudaSuccess)
        move_piece(context, false, buffer, rows, before * piece, bytes_of(before));
    }
    if (i >= count || error != cudaSuccess) continue;
    const size_t n = bytes_of(i);
    char *there = device + i * piece;
    if (up) move_piece(context, true, buffer, rows, i * piece, n);
    error = cudaMemcpyAsync(up ? there : buffer, up ? buffer : there, n, cudaMemcpyDefault,
                            md_stream());
    if (error == cudaSuccess) error = cudaEventRecord(done, md_stream());
  }
  return error;
}

/* Whether the copy is large, and the host's side of it is not page-locked already. */
static bool worth_staging(const void *host, size_t bytes) {
  cudaPointerAttributes attributes;
  if (bytes < STAGED_FROM) return false;
  if (cudaPointerGetAttributes(&attributes, host) == cudaSuccess)
    return attributes.type == cudaMemoryTypeUnregistered;
  cudaGetLastError();
  return true;
}

/* `count` rows through the buffers. */
static md_status carry_rows(md_context *context, bool up, void *device, const host_rows &rows,
                            size_t count) {
  MD_TRY(open_staging(context));
  return md_cuda_status(context, carry(context, up, (char *)device, rows, count * rows.bytes),
                        up ? "copy to the device" : "copy from the device");
}

static md_status copy(md_context *context, bool up, void *device, void *host, size_t bytes) {
  const char *const what = up ? "copy to the device" : "copy from the device";
  if (worth_staging(host, bytes))
    return carry_rows(context, up, device, {(char *)host, bytes, bytes}, 1);
  MD_TRY(md_cuda_status(context,
                        cudaMemcpyAsync(up ? device : host, up ? host : device, bytes,
                                        up ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost,
                                        md_stream()),
                        what));
  return md_device_synchronise(context);
}

md_status md_device_upload(md_context *context, void *device, const void *host, size_t bytes) {
  return md_counts(context) ? MD_OK : copy(context, true, device, const_cast<void *>(host), bytes);
}

md_status md_device_download(md_context *context, void *host, const void *device, size_t bytes) {
  return copy(context, false, const_cast<void *>(device), host, bytes);
}

md_status md_device_copy(md_context *context, void *to, const void *from, size_t bytes) {
  return md_cuda_status(context,
                        cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, md_stream()),
                        "copy on the device");
}

/* Short rows that are packed on the device go through the buffers as well: a copy engine takes
 * longer for each row than for its bytes. */
static md_status copy_rows(md_context *context, bool up, void *device, void *host,
                           const md_device_rows *rows) {
  constexpr size_t SHORT = 4096;
  const size_t device_pitch = up ? rows->to_pitch : rows->from_pitch;
  const size_t host_pitch = up ? rows->from_pitch : rows->to_pitch;
  if (device_pitch == rows->bytes && rows->bytes <= SHORT &&
      worth_staging(host, rows->count * rows->bytes))
    return carry_rows(context, up, device, {(char *)host, rows->bytes, host_pitch}, rows->count);
  MD_TRY(md_cuda_status(context,
                        cudaMemcpy2DAsync(up ? device : host, rows->to_pitch, up ? host : device,
                                          rows->from_pitch, rows->bytes, rows->count,
                                          up ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost,
                                          md_stream()),
                        up ? "copy of rows to the device" : "copy of rows from the device"));
  return md_device_synchronise(context);
}

md_status md_device_upload_rows(md_context *context, void *device, const void *host,
                                const md_device_rows *rows) {
  if (md_counts(context)) return MD_OK;
  if (rows->count == 1) return md_device_upload(context, device, host, rows->bytes);
  return copy_rows(context, true, device, const_cast<void *>(host), rows);
}

md_status md_device_download_rows(md_context *context, void *host, const void *device,
                                  const md_device_rows *rows) {
  if (rows->count == 1) return md_device_download(context, host, device, rows->bytes);
  return copy_rows(context, false, const_cast<void *>(device), host, rows);
}

void md_device_close(md_context *context) {
  md_nccl_close(context);
  close_staging(context);
  context->gpu.open = false;
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

/* A recording is CUDA's own object under a name without CUDA. */
md_status md_device_record(md_context *context, md_status (*queue)(md_context *, void *user),
                           void *user, md_device_recording **recording) {
  cudaGraph_t graph = NULL;
  cudaGraphExec_t made = NULL;
  *recording = NULL;
  MD_TRY(md_device_open(context));
  MD_TRY(md_cuda_status(context,
                        cudaStreamBeginCapture(md_stream(), cudaStreamCaptureModeThreadLocal),
                        "recording of work"));
  md_status status = queue(context, user);
  cudaError_t error = cudaStreamEndCapture(md_stream(), &graph);
  /* What streams of higher priority carry stays ahead. */
  if (status == MD_OK && error == cudaSuccess)
    error = cudaGraphInstantiate(&made, graph, cudaGraphInstantiateFlagUseNodePriority);
  if (status == MD_OK) status = md_cuda_status(context, error, "recording of work");
  if (graph) cudaGraphDestroy(graph);
  if (status == MD_OK) *recording = (md_device_recording *)made;
  return status;
}

md_status md_device_replay(md_context *context, const md_device_recording *recording) {
  return md_cuda_status(context, cudaGraphLaunch((cudaGraphExec_t)recording, md_stream()),
                        "recorded work");
}

void md_device_recording_destroy(md_device_recording *recording) {
  if (recording) cudaGraphExecDestroy((cudaGraphExec_t)recording);
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

#ifndef MINIDIRAC_HAVE_NCCL
/* Builds without NCCL have nothing to end. */
void md_nccl_close(md_context *context) {
  (void)context;
}

md_status md_nccl_sum(md_context *context, double *, int) {
  return md_fail(context, MD_ENVIRONMENT, "this build has no NCCL; install libnccl-dev");
}
#endif
