#include "base/device.h"
#include "base/device_peers.h"

#include <math.h>

/* Builds without CUDA: every request is answered with how to get it. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

static md_status none(md_context *context) {
  return md_fail(context, MD_ENVIRONMENT,
                 "this build has no GPU support; configure with -DMINIDIRAC_CUDA=ON (needs nvcc)");
}

#define REFUSES(NAME, ...)                                                                         \
  md_status NAME(__VA_ARGS__) {                                                                    \
    return none(context);                                                                          \
  }
/* The same where *MADE would be what was asked for. */
#define MAKES_NO(MADE, NAME, ...)                                                                  \
  md_status NAME(__VA_ARGS__) {                                                                    \
    *MADE = NULL;                                                                                  \
    return none(context);                                                                          \
  }
#define DOES_NOTHING(NAME, ...)                                                                    \
  void NAME(__VA_ARGS__) {}

/* clang-format off */
REFUSES(md_device_open, md_context *context)
REFUSES(md_device_require, md_context *context, size_t bytes, const char *what)
REFUSES(md_device_pin, md_context *context, void *memory, size_t bytes)
REFUSES(md_device_upload, md_context *context, void *device, const void *host, size_t bytes)
REFUSES(md_device_download, md_context *context, void *host, const void *device, size_t bytes)
REFUSES(md_device_copy, md_context *context, void *to, const void *from, size_t bytes)
REFUSES(md_device_upload_rows, md_context *context, void *device, const void *host,
        const md_device_rows *rows)
REFUSES(md_device_download_rows, md_context *context, void *host, const void *device,
        const md_device_rows *rows)
REFUSES(md_device_synchronise, md_context *context)
REFUSES(md_device_await, md_context *context, const long long *serial, long long awaited,
        const char *what)
REFUSES(md_device_replay, md_context *context, const md_device_recording *recording)
REFUSES(md_device_peers_check, md_context *context, const md_device_peers *peers)

MAKES_NO(memory, md_device_allocate, md_context *context, size_t bytes, const char *what,
         void **memory)
MAKES_NO(memory, md_device_allocate_pinned, md_context *context, size_t bytes, const char *what,
         void **memory)
MAKES_NO(recording, md_device_record, md_context *context,
         md_status (*queue)(md_context *, void *user), void *user, md_device_recording **recording)
MAKES_NO(timer, md_device_timer_create, md_context *context, md_device_timer **timer)
MAKES_NO(peers, md_device_peers_create, md_context *context, size_t bytes, const char *what,
         bool within, md_device_peers **peers)

DOES_NOTHING(md_device_close, md_context *context)
DOES_NOTHING(md_device_free, void *memory)
DOES_NOTHING(md_device_release, const md_context *context)
DOES_NOTHING(md_device_free_pinned, void *memory)
DOES_NOTHING(md_device_unpin, void *memory)
DOES_NOTHING(md_device_recording_destroy, md_device_recording *recording)
DOES_NOTHING(md_device_timer_destroy, md_device_timer *timer)
DOES_NOTHING(md_device_timer_start, md_device_timer *timer)
DOES_NOTHING(md_device_peers_destroy, md_device_peers *peers)
/* clang-format on */

long long md_device_peak(const md_context *context) {
  return 0;
}
void *md_device_stream(void) {
  return NULL;
}
double md_device_timer_stop_s(md_device_timer *timer) {
  return (double)NAN;
}
