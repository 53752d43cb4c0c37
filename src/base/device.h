#pragma once

#include "base/context.h"
#include <stdint.h>

/* The accelerator of this rank. device_cuda.cu is the one place that chooses it and hands out its
 * memory; device_none.c answers in builds without CUDA. All work of the library is queued on one
 * stream a thread (cudaStreamPerThread), so that calls take no stream. Everything is local. */
MD_C_BEGIN

/* Takes GPU (rank within its host) mod (GPUs of the host) for this process and fills context->gpu,
 * once: later calls return at once. MD_ENVIRONMENT without a driver or a GPU that runs this build's
 * code. */
md_status md_device_open(md_context *context);
/* Releases what the context holds of the device; it may be opened again. */
void md_device_close(md_context *context);

/* MD_ENVIRONMENT with the bytes needed and free when `bytes` do not fit: for a caller that makes
 * several allocations and is to fail before the first; in a dry run, which counts those
 * (base/memory_need.h), always MD_OK. Opens the device. */
md_status md_device_require(md_context *context, size_t bytes, const char *what);
/* Device memory, zeroed, 256-byte aligned; NULL for zero bytes, on failure and in a dry run, which
 * counts them. Opens the device. */
md_status md_device_allocate(md_context *context, size_t bytes, const char *what, void **memory);
/* After the work queued so far. NULL is fine. */
void md_device_free(void *memory);
/* Freed memory stays with this process for its next allocations; this waits for the queued work and
 * gives it back, so that allocations of other sizes find it whole. For the end of a phase. */
void md_device_release(const md_context *context);
/* The most bytes of md_device_allocate that this process ever held at once; 0: no device is open.
 */
long long md_device_peak(const md_context *context);
/* Page-locked host memory that the device may also write itself, not cleared; handed out in a dry
 * run too, for little. */
md_status md_device_allocate_pinned(md_context *context, size_t bytes, const char *what,
                                    void **memory);
void md_device_free_pinned(void *memory);
/* Page-locks memory that is there already, until unpin. */
md_status md_device_pin(md_context *context, void *memory, size_t bytes);
void md_device_unpin(void *memory);

/* Queue a copy after the work so far and wait for it; no upload in a dry run. Large ones from and
 * to pageable memory go through page-locked buffers, which several threads fill and empty. */
md_status md_device_upload(md_context *context, void *device, const void *host, size_t bytes);
md_status md_device_download(md_context *context, void *host, const void *device, size_t bytes);
/* The same for `count` rows of `bytes` that start to_pitch and from_pitch bytes apart; pitches of
 * one row are not read. */
typedef struct md_device_rows {
  size_t count, bytes, to_pitch, from_pitch;
} md_device_rows;
md_status md_device_upload_rows(md_context *context, void *device, const void *host,
                                const md_device_rows *rows);
md_status md_device_download_rows(md_context *context, void *host, const void *device,
                                  const md_device_rows *rows);
/* Device to device; queued, not waited for. */
md_status md_device_copy(md_context *context, void *to, const void *from, size_t bytes);

/* The stream of all work, a cudaStream_t. */
void *md_device_stream(void);
/* Waits for all queued work; MD_ENVIRONMENT with what went wrong in any of it. */
md_status md_device_synchronise(md_context *context);
/* Spins until a kernel has written `awaited` to *serial in page-locked memory, which is shorter
 * than a wait in the driver; what the kernel wrote there before may be read then. MD_ENVIRONMENT
 * when the queued work (`what`) failed, or ended without writing it, or, with several ranks and a
 * give_up, has not ended after context->patience_s (0: it waits for ever). */
md_status md_device_await(md_context *context, const long long *serial, long long awaited,
                          const char *what);

/* Work recorded once and queued again by one call, so that short kernels follow each other without
 * the host in between. `queue` may only queue work, not wait or allocate. */
typedef struct md_device_recording md_device_recording;
md_status md_device_record(md_context *context, md_status (*queue)(md_context *, void *user),
                           void *user, md_device_recording **recording);
md_status md_device_replay(md_context *context, const md_device_recording *recording);
void md_device_recording_destroy(md_device_recording *recording);

/* Time on the device between two points of the stream. */
typedef struct md_device_timer md_device_timer;
md_status md_device_timer_create(md_context *context, md_device_timer **timer);
void md_device_timer_destroy(md_device_timer *timer);
void md_device_timer_start(md_device_timer *timer);
/* Waits for the work since the start; NaN when it failed. */
double md_device_timer_stop_s(md_device_timer *timer);

MD_C_END
