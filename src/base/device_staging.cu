#include "base/device.cuh"
#include "base/device_staging.h"

extern "C" {
#include "base/memory.h"
}
#include <new>

enum { PIECES = 4 };
static const size_t piece_bytes = (size_t)4 << 20;

struct md_device_staging {
  char *memory; /* page-locked, PIECES of piece_bytes */
  cudaEvent_t done[PIECES];
};

static md_status open_staging(md_context *context) {
  if (context->staging) return MD_OK;
  md_device_staging *s = new (std::nothrow) md_device_staging();
  if (!s) return md_fail_memory(context, sizeof *s, "copy buffers");
  context->staging = s;
  for (int i = 0; i < PIECES; i++)
    MD_TRY(md_cuda_status(context, cudaEventCreateWithFlags(&s->done[i], cudaEventDisableTiming),
                          "event"));
  return md_device_allocate_pinned(context, PIECES * piece_bytes, "copy buffers",
                                   (void **)&s->memory);
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

/* Piece number i of the whole: its bytes, its place in the buffers. */
static size_t bytes_of(size_t bytes, size_t i) {
  const size_t left = bytes - i * piece_bytes;
  return left < piece_bytes ? left : piece_bytes;
}
static char *place_of(const md_device_staging *s, size_t i) {
  return s->memory + i % PIECES * piece_bytes;
}
static cudaError_t await(const md_device_staging *s, size_t i) {
  return cudaEventSynchronize(s->done[i % PIECES]);
}
static cudaError_t queue(const md_device_staging *s, size_t i, void *to, const void *from,
                         size_t bytes) {
  const cudaError_t error = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, md_stream());
  return error == cudaSuccess ? cudaEventRecord(s->done[i % PIECES], md_stream()) : error;
}

extern "C" md_status md_device_staged_upload(md_context *context, void *device, const void *host,
                                             size_t bytes) {
  MD_TRY(open_staging(context));
  const md_device_staging *s = context->staging;
  cudaError_t error = cudaSuccess;
  const size_t count = (bytes + piece_bytes - 1) / piece_bytes;
  for (size_t i = 0; i < count && error == cudaSuccess; i++) {
    const size_t at = i * piece_bytes, n = bytes_of(bytes, i);
    if (i >= PIECES) error = await(s, i);
    if (error != cudaSuccess) break;
    md_copy_parallel(context, place_of(s, i), (const char *)host + at, n);
    error = queue(s, i, (char *)device + at, place_of(s, i), n);
  }
  if (error == cudaSuccess) error = cudaStreamSynchronize(md_stream());
  return md_cuda_status(context, error, "copy to the device");
}

extern "C" md_status md_device_staged_download(md_context *context, void *host, const void *device,
                                               size_t bytes) {
  MD_TRY(open_staging(context));
  const md_device_staging *s = context->staging;
  cudaError_t error = cudaSuccess;
  const size_t count = (bytes + piece_bytes - 1) / piece_bytes;
  for (size_t i = 0; i < count + PIECES && error == cudaSuccess; i++) {
    if (i >= PIECES) {
      const size_t full = i - PIECES;
      error = await(s, full);
      if (error != cudaSuccess) break;
      md_copy_parallel(context, (char *)host + full * piece_bytes, place_of(s, full),
                       bytes_of(bytes, full));
    }
    if (i < count)
      error =
          queue(s, i, place_of(s, i), (const char *)device + i * piece_bytes, bytes_of(bytes, i));
  }
  return md_cuda_status(context, error, "copy from the device");
}
