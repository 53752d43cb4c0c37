#include "gemm/local.h"
#include "base/device.h"
#include "base/memory.h"
#include "base/timer.h"

#include <stdio.h>
#include <stdlib.h>

enum { PITCH_BYTES = 512 }; /* whole lines and whole boxes of the copy engine */

md_status md_gemm_device_open(md_context *context, md_gemm_device *device) {
  *device = (md_gemm_device){0};
  MD_TRY(md_device_open(context));
  device->stream = md_device_stream();
  return md_device_timer_create(context, &device->timer);
}

void md_gemm_device_close(md_gemm_device *device) {
  md_device_timer_destroy(device->timer);
  *device = (md_gemm_device){0};
}

md_status md_gemm_device_allocate(md_context *context, int64_t rows, int64_t columns,
                                  size_t element_bytes, bool pitched,
                                  md_gemm_device_matrix *matrix) {
  *matrix = (md_gemm_device_matrix){0};
  size_t pitch = (size_t)columns * element_bytes;
  if (pitched) pitch = (pitch + PITCH_BYTES - 1) / PITCH_BYTES * PITCH_BYTES;
  char what[96];
  snprintf(what, sizeof what, "a %lld x %lld matrix", (long long)rows, (long long)columns);
  void *data;
  MD_TRY(md_device_allocate(context, (size_t)rows * pitch, what, &data));
  *matrix =
      (md_gemm_device_matrix){data, rows, columns, (int64_t)(pitch / element_bytes), element_bytes};
  return MD_OK;
}

void md_gemm_device_free(md_gemm_device_matrix *matrix) {
  md_device_free(matrix->data);
  *matrix = (md_gemm_device_matrix){0};
}

/* Rows on either side of a copy; dense ones travel as one. */
static md_device_rows rows_of(const md_gemm_device_matrix *m, int64_t to_ld, int64_t from_ld) {
  const size_t bytes = m->element_bytes;
  if (to_ld == m->columns && from_ld == m->columns)
    return (md_device_rows){.count = 1, .bytes = (size_t)(m->rows * m->columns) * bytes};
  return (md_device_rows){.count = (size_t)m->rows,
                          .bytes = (size_t)m->columns * bytes,
                          .to_pitch = (size_t)to_ld * bytes,
                          .from_pitch = (size_t)from_ld * bytes};
}

md_status md_gemm_device_put(md_context *context, const md_gemm_device_matrix *to, const void *from,
                             int64_t from_ld) {
  const md_device_rows rows = rows_of(to, to->ld, from_ld);
  return md_device_upload_rows(context, to->data, from, &rows);
}

md_status md_gemm_device_get(md_context *context, void *to, int64_t to_ld,
                             const md_gemm_device_matrix *from) {
  const md_device_rows rows = rows_of(from, to_ld, from->ld);
  return md_device_download_rows(context, to, from->data, &rows);
}

md_status md_gemm_host_allocate(md_context *context, md_gemm_host_memory kind, size_t bytes,
                                const char *what, void **memory) {
  if (kind == MD_GEMM_PINNED) return md_device_allocate_pinned(context, bytes, what, memory);
  MD_TRY(md_allocate(context, bytes, what, memory));
  if (kind == MD_GEMM_PAGEABLE || !*memory) return MD_OK;
  const md_status status = md_device_pin(context, *memory, bytes);
  if (status == MD_OK) return MD_OK;
  free(*memory);
  *memory = NULL;
  return status;
}

void md_gemm_host_free(md_gemm_host_memory kind, void *memory) {
  if (!memory) return;
  if (kind == MD_GEMM_PINNED) {
    md_device_free_pinned(memory);
    return;
  }
  if (kind == MD_GEMM_REGISTERED) md_device_unpin(memory);
  free(memory);
}

md_status md_gemm_device_stop(md_context *context, md_gemm_device *device, double *time_s) {
  *time_s = md_device_timer_stop_s(device->timer);
  if (*time_s >= 0.0) return MD_OK;
  *time_s = 0.0;
  MD_TRY(md_device_synchronise(context));
  return md_fail(context, MD_ENVIRONMENT, "the GPU of rank %d gave no time for its work",
                 context->rank);
}

static bool on_device(const md_gemm_local *local) {
  return local->plan.kernel && local->plan.kernel->space == MD_GEMM_DEVICE;
}

static md_status allocate(md_context *context, const md_gemm_problem *p, md_gemm_local *local) {
  const size_t in = md_gemm_input_bytes(p->precision), out = md_gemm_output_bytes(p->precision);
  const bool pitched = local->place.pitched;
  MD_TRY(md_gemm_device_allocate(context, p->m, p->k, in, pitched, &local->a));
  MD_TRY(md_gemm_device_allocate(context, p->k, p->n, in, pitched, &local->b));
  return md_gemm_device_allocate(context, p->m, p->n, out, pitched, &local->c);
}

md_status md_gemm_local_open(md_context *context, const md_gemm_kernel *kernel,
                             const md_gemm_problem *problem, const md_gemm_launch *launch,
                             const md_gemm_place *place, md_gemm_local *local) {
  *local = (md_gemm_local){.place = *place};
  if (kernel->space == MD_GEMM_HOST || kernel->unavailable)
    return md_gemm_plan_open(context, kernel, problem, launch, &local->plan);
  MD_TRY(md_gemm_check(context, problem));
  if (!place->device)
    return md_fail(context, MD_ENVIRONMENT, "GEMM kernel %s needs an open device", kernel->name);
  MD_TRY(allocate(context, problem, local));
  md_gemm_problem own = *problem;
  md_gemm_launch queued = *launch;
  own.lda = local->a.ld, own.ldb = local->b.ld, own.ldc = local->c.ld;
  queued.stream = place->device->stream;
  return md_gemm_plan_open(context, kernel, &own, &queued, &local->plan);
}

void md_gemm_local_close(md_gemm_local *local) {
  md_gemm_plan_close(&local->plan);
  md_gemm_device_free(&local->a);
  md_gemm_device_free(&local->b);
  md_gemm_device_free(&local->c);
}

md_status md_gemm_local_load(md_context *context, md_gemm_local *local, const void *c,
                             int64_t ldc) {
  if (!on_device(local)) return MD_OK;
  return md_gemm_device_put(context, &local->c, c, ldc);
}

md_status md_gemm_local_store(md_context *context, md_gemm_local *local, void *c, int64_t ldc) {
  if (!on_device(local)) return MD_OK;
  return md_gemm_device_get(context, c, ldc, &local->c);
}

static md_status launch(md_context *context, md_gemm_local *local) {
  md_device_timer_start(local->place.device->timer);
  return md_gemm_plan_run(context, &local->plan, local->a.data, local->b.data, local->c.data);
}

md_status md_gemm_local_again(md_context *context, md_gemm_local *local, double *kernel_s) {
  MD_TRY(launch(context, local));
  return md_gemm_device_stop(context, local->place.device, kernel_s);
}

md_status md_gemm_local_begin(md_context *context, md_gemm_local *local,
                              const md_gemm_problem *problem, const void *a, const void *b, void *c,
                              double *kernel_s) {
  if (!on_device(local)) {
    const double start_s = md_time_s();
    MD_TRY(md_gemm_plan_run(context, &local->plan, a, b, c));
    *kernel_s = md_time_s() - start_s;
    return MD_OK;
  }
  MD_TRY(md_gemm_device_put(context, &local->a, a, problem->lda));
  MD_TRY(md_gemm_device_put(context, &local->b, b, problem->ldb));
  return launch(context, local);
}

md_status md_gemm_local_finish(md_context *context, md_gemm_local *local, double *kernel_s) {
  return on_device(local) ? md_gemm_device_stop(context, local->place.device, kernel_s) : MD_OK;
}

md_status md_gemm_local_run(md_context *context, md_gemm_local *local,
                            const md_gemm_problem *problem, const void *a, const void *b, void *c,
                            md_gemm_times *times) {
  const double start_s = md_time_s();
  if (problem->beta != 0.0) MD_TRY(md_gemm_local_load(context, local, c, problem->ldc));
  MD_TRY(md_gemm_local_begin(context, local, problem, a, b, c, &times->kernel_s));
  MD_TRY(md_gemm_local_finish(context, local, &times->kernel_s));
  MD_TRY(md_gemm_local_store(context, local, c, problem->ldc));
  times->total_s = md_time_s() - start_s;
  return MD_OK;
}
