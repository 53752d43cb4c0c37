#include "base/device.cuh"
#include "base/device_staging.h"

extern "C" {
#include "base/memory.h"
}
#include <new>

enum { PIECES = 4 };
static const size_t piece_bytes = (size_t)8 << 20;

struct md_device_staging {
  char *memory; /* page-locked, PIECES of piece_bytes */
  cudaEvent_t done[PIECES];
};

static md_status make_staging(md_context *context, md_device_staging *s) {
  for (int i = 0; i < PIECES; i++)
    MD_TRY(md_cuda_status(context, cudaEventCreateWithFlags(&s->done[i], cudaEventDisableTiming),
                          "event"));
  return md_device_allocate_pinned(context, PIECES * piece_bytes, "copy buffers",
                                   (void **)&s->memory);
}

/* All of it or none. */
static md_status open_staging(md_context *context) {
  if (context->staging) return MD_OK;
  md_device_staging *s = context->staging = new (std::nothrow) md_device_staging();
  if (!s) return md_fail_memory(context, sizeof *s, "copy buffers");
  const md_status status = make_staging(context, s);
  if (status != MD_OK) md_device_staging_close(context);
  return status;
}

extern "C" void md_device_staging_close(md_context *context) {
  md_device_staging *s = context->staging;
  if (!s) return;
  for (int i = 0; i < PIECES; i++)
    if (s->done[i]) cudaEventDestroy(s->done[i]);
  md_device_free_pinned(s->memory);
  delete s;
  context->staging = NULL;
}

/* Of piece number i of the whole. */
static size_t bytes_of(size_t bytes, size_t i) {
  const size_t left = bytes - i * piece_bytes;
  return left < piece_bytes ? left : piece_bytes;
}

/* Carries `bytes` through the buffers, up to the device or down from it. Each buffer takes every
 * PIECES-th piece: it waits until the copy engine is done with the one before, whose bytes on the
 * way down then go to the host, and queues its next. The loop runs PIECES rounds beyond the last
 * piece, in which those under way come in. */
static cudaError_t carry(const md_context *context, bool up, char *device, char *host,
                         size_t bytes) {
  const md_device_staging *s = context->staging;
  const size_t count = (bytes + piece_bytes - 1) / piece_bytes;
  cudaError_t error = cudaSuccess;
  for (size_t i = 0; i < count + PIECES && error == cudaSuccess; i++) {
    char *buffer = s->memory + i % PIECES * piece_bytes;
    cudaEvent_t done = s->done[i % PIECES];
    if (i >= PIECES) {
      const size_t before = i - PIECES;
      error = cudaEventSynchronize(done);
      if (!up && error == cudaSuccess)
        md_copy_parallel(context, host + before * piece_bytes, buffer, bytes_of(bytes, before));
    }
    if (i >= count || error != cudaSuccess) continue;
    const size_t n = bytes_of(bytes, i);
    char *piece = device + i * piece_bytes;
    if (up) md_copy_parallel(context, buffer, host + i * piece_bytes, n);
    error = cudaMemcpyAsync(up ? piece : buffer, up ? buffer : piece, n, cudaMemcpyDefault,
                            md_stream());
    if (error == cudaSuccess) error = cudaEventRecord(done, md_stream());
  }
  return error;
}

extern "C" md_status md_device_staged_upload(md_context *context, void *device, const void *host,
                                             size_t bytes) {
  MD_TRY(open_staging(context));
  return md_cuda_status(context, carry(context, true, (char *)device, (char *)host, bytes),
                        "copy to the device");
}

extern "C" md_status md_device_staged_download(md_context *context, void *host, const void *device,
                                               size_t bytes) {
  MD_TRY(open_staging(context));
  return md_cuda_status(context, carry(context, false, (char *)device, (char *)host, bytes),
                        "copy from the device");
}
