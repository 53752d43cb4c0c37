#include "base/device.h"
#include "base/device_peers.h"

#include <math.h>

/* Builds without CUDA: every request is answered with how to get it. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

static md_status none(md_context *context) {
  return md_fail(context, MD_ENVIRONMENT,
                 "this build has no GPU support; configure with -DMINIDIRAC_CUDA=ON (needs nvcc)");
}

md_status md_device_open(md_context *context) {
  return none(context);
}
md_status md_device_peers_create(md_context *context, size_t bytes, const char *what,
                                 md_device_peers **peers) {
  *peers = NULL;
  return none(context);
}
void md_device_peers_destroy(md_device_peers *peers) {}
md_status md_device_peers_check(md_context *context, const md_device_peers *peers) {
  return none(context);
}
void md_device_close(md_context *context) {}
md_status md_device_require(md_context *context, size_t bytes, const char *what) {
  return none(context);
}
md_status md_device_allocate(md_context *context, size_t bytes, const char *what, void **memory) {
  *memory = NULL;
  return none(context);
}
void md_device_free(void *memory) {}
void md_device_release(const md_context *context) {}
long long md_device_peak(const md_context *context) {
  return 0;
}
md_status md_device_allocate_pinned(md_context *context, size_t bytes, const char *what,
                                    void **memory) {
  return md_device_allocate(context, bytes, what, memory);
}
void md_device_free_pinned(void *memory) {}
md_status md_device_upload(md_context *context, void *device, const void *host, size_t bytes) {
  return none(context);
}
md_status md_device_download(md_context *context, void *host, const void *device, size_t bytes) {
  return none(context);
}
md_status md_device_copy(md_context *context, void *to, const void *from, size_t bytes) {
  return none(context);
}
md_status md_device_upload_rows(md_context *context, void *device, const void *host,
                                const md_device_rows *rows) {
  return none(context);
}
md_status md_device_download_rows(md_context *context, void *host, const void *device,
                                  const md_device_rows *rows) {
  return none(context);
}
md_status md_device_copy_rows(md_context *context, void *to, const void *from,
                              const md_device_rows *rows) {
  return none(context);
}
md_status md_device_pin(md_context *context, void *memory, size_t bytes) {
  return none(context);
}
void md_device_unpin(void *memory) {}
void *md_device_stream(void) {
  return NULL;
}
md_status md_device_synchronise(md_context *context) {
  return none(context);
}
md_status md_device_await(md_context *context, const long long *serial, long long awaited,
                          const char *what) {
  return none(context);
}
md_status md_device_record(md_context *context, md_status (*queue)(md_context *, void *user),
                           void *user, md_device_recording **recording) {
  *recording = NULL;
  return none(context);
}
md_status md_device_replay(md_context *context, const md_device_recording *recording) {
  return none(context);
}
void md_device_recording_destroy(md_device_recording *recording) {}
md_status md_device_timer_create(md_context *context, md_device_timer **timer) {
  *timer = NULL;
  return none(context);
}
void md_device_timer_destroy(md_device_timer *timer) {}
void md_device_timer_start(md_device_timer *timer) {}
double md_device_timer_stop_s(md_device_timer *timer) {
  return (double)NAN;
}
