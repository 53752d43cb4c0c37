#include "bench/bandwidth/bandwidth.h"
#include "base/device.h"
#include "base/interrupt.h"
#include "base/memory.h"
#include "base/timer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *md_stream_name(md_stream stream) {
  return stream == MD_STREAM_COPY ? "copy" : "triad";
}

double md_stream_bytes(const md_stream_arrays *arrays) {
  return (double)arrays->count * sizeof(double) * (arrays->stream == MD_STREAM_COPY ? 2 : 3);
}

md_status md_stream_create(md_context *context, md_space space, md_stream stream, double bytes,
                           md_stream_arrays *arrays) {
  const int used = stream == MD_STREAM_COPY ? 2 : 3;
  *arrays =
      (md_stream_arrays){.space = space, .stream = stream, .count = (size_t)(bytes / 8 / used) + 1};
  md_status (*const allocate)(md_context *, size_t, const char *, void **) =
      space == MD_DEVICE ? md_device_allocate : md_allocate;
  md_status status = MD_OK;
  if (space == MD_DEVICE && stream != MD_STREAM_COPY)
    return md_fail(context, MD_INPUT, "a device is measured by copy, not by %s",
                   md_stream_name(stream));
  for (int k = 0; k < used && status == MD_OK; k++)
    status = allocate(context, arrays->count * sizeof(double), "bandwidth array",
                      (void **)&arrays->array[k]);
  if (status != MD_OK) {
    md_stream_destroy(arrays);
    return status;
  }
  if (space == MD_DEVICE) return MD_OK;
  for (int k = 0; k < used; k++) {
    double *const a = arrays->array[k];
#pragma omp parallel for schedule(static) num_threads(context->threads)
    for (size_t i = 0; i < arrays->count; i++) a[i] = k;
  }
  return MD_OK;
}

void md_stream_destroy(md_stream_arrays *arrays) {
  void (*const release)(void *) = arrays->space == MD_DEVICE ? md_device_free : free;
  for (int k = 0; k < 3; k++) release(arrays->array[k]);
  *arrays = (md_stream_arrays){0};
}

static md_status copy(md_context *context, void *user) {
  const md_stream_arrays *s = user;
  if (s->space == MD_DEVICE)
    return md_device_copy(context, s->array[0], s->array[1], s->count * sizeof(double));
  double *const a = s->array[0];
  const double *const b = s->array[1];
#pragma omp parallel for schedule(static) num_threads(context->threads)
  for (size_t i = 0; i < s->count; i++) a[i] = b[i];
  return MD_OK;
}

static md_status triad(md_context *context, void *user) {
  const md_stream_arrays *s = user;
  double *const restrict a = s->array[0];
  const double *const restrict b = s->array[1], *const restrict c = s->array[2];
#pragma omp parallel for schedule(static) num_threads(context->threads)
  for (size_t i = 0; i < s->count; i++) a[i] = b[i] + 3.0 * c[i];
  return MD_OK;
}

md_status md_stream_pass(md_context *context, void *user) {
  return (((const md_stream_arrays *)user)->stream == MD_STREAM_COPY ? copy : triad)(context, user);
}

/* Waits for what is queued on a device. */
static md_status finish(md_context *context, md_space space) {
  return space == MD_DEVICE ? md_device_synchronise(context) : MD_OK;
}

md_status md_time_work(md_context *context, md_space space, md_timed_work work, void *user,
                       int passes, double *time_s) {
  md_status status = finish(context, space);
  md_barrier(context);
  const double start_s = md_time_s();
  for (int k = 0; k < passes && status == MD_OK; k++) status = work(context, user);
  const md_status finished = finish(context, space);
  *time_s = (md_time_s() - start_s) / passes;
  md_maximum(context, time_s, 1);
  return md_agree(context, status != MD_OK ? status : finished);
}

md_status md_passes_for(md_context *context, md_space space, md_timed_work work, void *user,
                        double window_s, int most, int *passes) {
  double time_s;
  MD_TRY(md_time_work(context, space, work, user, 1, &time_s));
  MD_TRY(md_time_work(context, space, work, user, 1, &time_s));
  const double wanted = ceil(window_s / fmax(time_s, 1e-9));
  *passes = wanted > most ? most : wanted < 1.0 ? 1 : (int)wanted;
  return MD_OK;
}

md_status md_time_samples(md_context *context, md_space space, md_timed_work work, void *user,
                          double window_s, int most, const char *command, int count,
                          double *samples, md_statistics *seconds) {
  int passes;
  MD_TRY(md_passes_for(context, space, work, user, window_s, most, &passes));
  for (int k = 0; k < count; k++) {
    MD_TRY(md_time_work(context, space, work, user, passes, &samples[k]));
    MD_TRY(md_interrupt_check(context, command));
  }
  *seconds = md_statistics_of(samples, count);
  return MD_OK;
}
