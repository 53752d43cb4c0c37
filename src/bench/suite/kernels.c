#include "base/device.h"
#include "base/interrupt.h"
#include "base/timer.h"
#include "bench/bandwidth/report.h"
#include "bench/dirac/case.h"
#include "bench/suite/suite.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The parts that time kernels by themselves: memory, stencil, halo. */
#define HOST_BYTES 0.3e9 /* of a rank, beyond the caches */
#define DEVICE_BYTES 4e9
#define WINDOW_S 0.02 /* of one repetition */
enum { MANY_RHS = 16, MOST_EXCHANGES = 10000 };

md_status md_suite_copy(md_suite *suite) {
  double gbytes;
  md_stream_bench_head(suite->context);
  for (int s = MD_STREAM_COPY; s <= MD_STREAM_TRIAD; s++)
    MD_TRY(md_stream_bench(suite->context, MD_HOST, (md_stream)s, HOST_BYTES, suite->repetitions,
                           suite->rows, &gbytes));
  if (suite->space != MD_DEVICE) return MD_OK;
  return md_stream_bench(suite->context, MD_DEVICE, MD_STREAM_COPY, DEVICE_BYTES,
                         suite->repetitions, suite->rows, &gbytes);
}

/* Neither the oracle nor the emulation of Tensor Cores is made for speed. */
static bool is_timed(const md_backend *b, md_action action) {
  return !b->unavailable && (b->actions & 1u << action) && strcmp(b->name, "cpu_ref") != 0 &&
         strcmp(b->name, "tensor_emu") != 0;
}

/* A wrong result is a check that failed. */
static md_status hop_case(md_suite *suite, md_dirac_bench *bench, const md_backend *b,
                          const md_backend_request *request) {
  const md_status status = md_dirac_bench_case(bench, b, request);
  if (status == MD_UNREACHED) {
    md_say(suite->context, "%s\n", suite->context->message);
    md_suite_check(suite, "hop agrees with cpu_ref", 1.0, 0.0, 0.0);
  } else {
    MD_TRY(status);
  }
  return md_interrupt_check(suite->context, "bench suite");
}

static md_status hop_backend(md_suite *suite, md_dirac_bench *bench, const md_backend *b) {
  static const md_precision precisions[] = {MD_DOUBLE, MD_SINGLE, MD_HALF};
  static const md_reconstruct reals[] = {MD_RECONSTRUCT_18, MD_RECONSTRUCT_12};
  const int forms = md_action_get(suite->links.action)->special_unitary ? 2 : 1;
  for (int p = 0; p < MD_PACKINGS; p++)
    for (int i = 0; i < 3; i++)
      for (int r = 0; r < forms; r++)
        for (int n_rhs = 1; n_rhs <= MANY_RHS; n_rhs += MANY_RHS - 1) {
          md_backend_request request = {.precision = precisions[i],
                                        .reconstruct = reals[r],
                                        .packing = (md_packing)p,
                                        .n_rhs = n_rhs,
                                        .antiperiodic = true};
          md_physics_apply(&suite->physics, &request);
          if ((b->packings & 1u << p) && (b->precisions & 1u << precisions[i]) &&
              (b->reconstructs & 1u << reals[r]))
            MD_TRY(hop_case(suite, bench, b, &request));
        }
  return MD_OK;
}

md_status md_suite_hop(md_suite *suite) {
  md_dirac_bench bench = {.context = suite->context,
                          .links = &suite->links,
                          .halo = &suite->halo,
                          .physics = &suite->physics,
                          .repetitions = suite->repetitions,
                          .copy_gbytes_per_s = NAN,
                          .rows = suite->rows,
                          .skipped = suite->skipped};
  md_status status = md_dirac_bench_open(&bench);
  md_dirac_bench_head(suite->context);
  for (int k = 0; md_backends()[k] && status == MD_OK; k++)
    if (is_timed(md_backends()[k], suite->links.action))
      status = hop_backend(suite, &bench, md_backends()[k]);
  md_dirac_bench_close(&bench);
  return status;
}

typedef struct exchange {
  md_halo *halo;
  md_field *field;
} exchange;

static md_status exchange_once(md_context *context, void *user) {
  exchange *e = user;
  (void)context;
  MD_TRY(md_halo_begin(e->halo, e->field));
  return md_halo_end(e->halo, e->field);
}

static md_status time_exchange(md_suite *suite, exchange *e, double times_s[], int count) {
  md_context *context = suite->context;
  const md_space space = e->field->space;
  int passes;
  MD_TRY(md_passes_for(context, space, exchange_once, e, WINDOW_S, MOST_EXCHANGES, &passes));
  for (int k = 0; k < count; k++) {
    MD_TRY(md_time_work(context, space, exchange_once, e, passes, &times_s[k]));
    MD_TRY(md_interrupt_check(context, "bench suite"));
  }
  return md_agree(context, md_halo_verify(e->halo));
}

#define COLUMNS                                                                                    \
  "backend=%-10s precision|prec=%-6s rhs=%4d ranks=%d transport=%-10s |MB~sent=%12.4f bytes=%g "   \
  "seconds_median|seconds=%11.3e seconds_min=%g seconds_max=%g repetitions=%d "                    \
  "gbytes_per_s|GB/s=%9.2f"

static void add_exchange(md_suite *suite, const md_dirac *dirac, double times_s[], int count) {
  double bytes = (double)md_halo_bytes(dirac->halo);
  const double median_s = md_median(times_s, count);
  md_maximum(suite->context, &bytes, 1);
  md_rows_add(suite->context, suite->rows, COLUMNS, dirac->backend->name,
              md_precision_name(dirac->request.precision), dirac->request.n_rhs,
              suite->context->ranks, md_halo_transport(dirac->halo), 1e-6 * bytes, bytes, median_s,
              times_s[0], times_s[count - 1], count, 1e-9 * bytes / median_s);
}

static md_status halo_case(md_suite *suite, int n_rhs) {
  enum { SAMPLES = 15 };
  double times_s[SAMPLES];
  md_backend_request request = {.precision = MD_DOUBLE, .n_rhs = n_rhs, .antiperiodic = true};
  md_dirac dirac;
  md_field field = {0};
  md_physics_apply(&suite->physics, &request);
  MD_TRY(md_dirac_create_over(suite->context, suite->links.field, "auto", &request, &suite->halo,
                              &dirac));
  md_status status =
      md_agree(suite->context, md_dirac_field(suite->context, &dirac, MD_EVEN, &field));
  exchange e = {dirac.halo, &field};
  if (status == MD_OK) status = time_exchange(suite, &e, times_s, SAMPLES);
  if (status == MD_OK) add_exchange(suite, &dirac, times_s, SAMPLES);
  md_field_destroy(&field);
  md_dirac_destroy(&dirac);
  return status;
}

md_status md_suite_halo(md_suite *suite) {
  if (suite->context->ranks == 1) {
    cJSON *row = cJSON_CreateObject();
    cJSON_AddStringToObject(row, "part", "halo");
    md_rows_skip(suite->skipped, row, NULL, "one rank has no halo to exchange");
    md_say(suite->context, "one rank has no halo to exchange\n");
    return MD_OK;
  }
  md_rows_head(suite->context, COLUMNS);
  MD_TRY(halo_case(suite, 1));
  return halo_case(suite, MANY_RHS);
}
