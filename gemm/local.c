#include "gemm/local.h"
#include "base/timer.h"

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
  md_gemm_device_start(local->place.device);
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

md_status md_gemm_local_multiply(md_context *context, md_gemm_local *local,
                                 const md_gemm_problem *problem, const void *a, const void *b,
                                 void *c, double *kernel_s) {
  MD_TRY(md_gemm_local_begin(context, local, problem, a, b, c, kernel_s));
  return md_gemm_local_finish(context, local, kernel_s);
}

md_status md_gemm_local_run(md_context *context, md_gemm_local *local,
                            const md_gemm_problem *problem, const void *a, const void *b, void *c,
                            md_gemm_times *times) {
  const double start_s = md_time_s();
  if (problem->beta != 0.0) MD_TRY(md_gemm_local_load(context, local, c, problem->ldc));
  MD_TRY(md_gemm_local_multiply(context, local, problem, a, b, c, &times->kernel_s));
  MD_TRY(md_gemm_local_store(context, local, c, problem->ldc));
  times->total_s = md_time_s() - start_s;
  return MD_OK;
}
