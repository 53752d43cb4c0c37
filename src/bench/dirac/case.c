#include "bench/dirac/case.h"
#include "base/device.h"
#include "base/interrupt.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/text.h"
#include "bench/bench.h"
#include "dirac/backend.h"
#include "lattice/fields/linear.h"
#include "lattice/fields/source.h"
#include "lattice/halo/halo.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { AT_ONCE = 20, PART_SAMPLES = 3 };
#define PART_WINDOW_S 0.01 /* of one sample */

static md_status queue_once(md_context *context, const md_hop_work *w) {
  md_dirac *d = w->dirac;
  md_field *even = &w->fields[MD_EVEN], *odd = &w->fields[MD_ODD];
  const md_hop_call call = {.out = even,
                            .in = odd,
                            .range =
                                w->part == MD_HOP_INTERIOR ? MD_RANGE_INTERIOR : MD_RANGE_BOUNDARY};
  switch (w->part) {
  case MD_HOP_EXCHANGE:
    MD_TRY(md_halo_begin(d->halo, odd));
    return md_halo_end(d->halo, odd);
  case MD_HOP_INTERIOR:
  case MD_HOP_BOUNDARY:
    return d->backend->hop(context, d->state, &call);
  case MD_HOP_BOTH:
    MD_TRY(md_dirac_hop(context, d, even, odd, NULL));
    return md_dirac_hop(context, d, odd, even, NULL);
  default:
    return md_dirac_hop(context, d, even, odd, NULL);
  }
}

md_status md_hop_pass(md_context *context, void *user) {
  const md_hop_work *w = user;
  if (w->recording) return md_device_replay(context, w->recording);
  for (int k = 0; k < w->at_once; k++) MD_TRY(queue_once(context, w));
  return MD_OK;
}

/* AT_ONCE of them from now on where a device can do them without the host in between. */
static md_status record(md_context *context, md_hop_work *w) {
  if (w->dirac->backend->space != MD_DEVICE || !md_halo_queued(w->dirac->halo)) return MD_OK;
  w->at_once = AT_ONCE;
  return md_agree(context, md_device_record(context, md_hop_pass, w, &w->recording));
}

/* Seconds of what a hop of a split lattice consists of, each alone. They add up to more than the
 * hop where the exchange hides behind the interior. */
typedef struct hop_parts {
  md_statistics of[MD_HOP_BOTH];
} hop_parts;

/* Times them on fields of the operator, whose halos are filled; the longest of the ranks each. */
static md_status time_parts(md_context *context, md_dirac *dirac, md_field fields[MD_PARITIES],
                            const char *command, hop_parts *parts) {
  for (int k = 0; k < MD_HOP_BOTH && dirac->geometry->halo_sites > 0; k++) {
    md_hop_work w = {dirac, fields, (md_hop_part)k, AT_ONCE, NULL};
    md_statistics *time = &parts->of[k];
    double samples[PART_SAMPLES] = {0};
    md_status status = record(context, &w);
    if (status == MD_OK)
      status = md_time_samples(context, dirac->backend->space, md_hop_pass, &w, PART_WINDOW_S, 100,
                               command, PART_SAMPLES, samples, time);
    md_device_recording_destroy(w.recording);
    MD_TRY(status);
    time->median /= AT_ONCE;
    time->min /= AT_ONCE;
    time->max /= AT_ONCE;
  }
  return MD_OK;
}

/* Nothing where nothing is split. */
static void report_parts(const md_dirac *dirac, const hop_parts *parts, cJSON *row) {
  const md_statistics *e = &parts->of[MD_HOP_EXCHANGE], *i = &parts->of[MD_HOP_INTERIOR],
                      *b = &parts->of[MD_HOP_BOUNDARY];
  if (dirac->geometry->halo_sites == 0) return;
  md_report_add(row,
                "exchange_seconds=%g exchange_seconds_min=%g exchange_seconds_max=%g "
                "interior_seconds=%g interior_seconds_min=%g interior_seconds_max=%g "
                "boundary_seconds=%g boundary_seconds_min=%g boundary_seconds_max=%g halo_bytes=%g",
                e->median, e->min, e->max, i->median, i->min, i->max, b->median, b->min, b->max,
                (double)md_halo_bytes(dirac->halo));
}

enum { SOURCE_SEED = 7 };
#define WINDOW_S 0.02            /* of one repetition */
#define DEVICE_COPY_BYTES 0x1p30 /* at least: no cache of a device may flatter the copy */

md_status md_dirac_bench_open(md_dirac_bench *bench) {
  md_context *context = bench->context;
  md_backend_request request = {.precision = MD_DOUBLE, .n_rhs = 1, .antiperiodic = true};
  md_dirac oracle;
  md_physics_apply(bench->physics, &request);
  MD_TRY(md_dirac_create(context, bench->links->field, "cpu_ref", &request, &oracle));
  md_status status = MD_OK;
  for (int p = 0; p < MD_PARITIES && status == MD_OK; p++) {
    status = md_dirac_field(context, &oracle, p, &bench->base[p]);
    if (status == MD_OK) status = md_dirac_field(context, &oracle, p, &bench->reference[p]);
  }
  status = md_agree(context, status);
  if (status == MD_OK) md_source_gaussian(bench->base, SOURCE_SEED);
  for (int p = 0; p < MD_PARITIES && status == MD_OK; p++)
    status = md_dirac_hop(context, &oracle, &bench->reference[p], &bench->base[1 - p], NULL);
  md_dirac_destroy(&oracle);
  return status;
}

void md_dirac_bench_close(md_dirac_bench *bench) {
  for (int p = 0; p < MD_PARITIES; p++) MD_FIELDS_DESTROY(&bench->base[p], &bench->reference[p]);
}

/* Bytes of one output site: every link, source vector (and its scale, in half and fixed) read once
 * and every result written once; with every neighbour read anew when `reuse` is false. */
static double site_bytes(const md_backend *backend, const md_backend_request *r, bool reuse) {
  const double vector = md_request_reals(r) * r->n_rhs * (double)md_precision_bytes(r->precision) +
                        (md_precision_scaled(r->precision) ? sizeof(float) : 0);
  return md_action_site_bytes(r->action, backend->link_bytes(r), vector, reuse);
}

/* out of right-hand side r is this number times the source: distinct, of size 1 to 2. */
static void factor(int rhs, int n_rhs, double z[2]) {
  const double size = 1.0 + (double)rhs / n_rhs;
  z[0] = size * cos(rhs);
  z[1] = size * sin(rhs);
}

/* scratch <- the factors times `base`, or scratch less that; of the parity of base. */
static void put_multiples(const md_dirac_bench *bench, const md_field *base, bool less,
                          md_field *scratch) {
  scratch->parity = base->parity;
#pragma omp parallel for schedule(static) num_threads(bench->context->threads)
  for (int64_t i = 0; i < base->sites; i++) {
    double v[MD_MAX_COMPONENTS], z[2];
    md_field_get(base, i, 0, v);
    for (int r = 0; r < scratch->n_rhs; r++) {
      factor(r, scratch->n_rhs, z);
      for (int c = 0; c < base->components; c++) {
        const double multiple = z[0] * v[c] + (c % 2 == 0 ? -z[1] * v[c + 1] : z[1] * v[c - 1]);
        double *out = (double *)scratch->data + md_field_at(scratch, i, c, r);
        *out = less ? *out - multiple : multiple;
      }
    }
  }
}

/* The bench's source into `field`, through `scratch` (host, double, the right-hand sides that were
 * asked for). */
static md_status set_source(md_dirac_bench *bench, md_field *scratch, md_field *field) {
  put_multiples(bench, &bench->base[field->parity], false, scratch);
  return md_field_resize(bench->context, field, scratch);
}

/* Relative distance in L2 of `field` from the oracle's result. Collective. */
static md_status distance(md_dirac_bench *bench, md_field *scratch, const md_field *field,
                          double *error) {
  const md_field *reference = &bench->reference[field->parity];
  double expected2, off2[MD_MAX_RHS], sums[2] = {0.0}, z[2];
  scratch->parity = field->parity;
  MD_TRY(md_agree(bench->context, md_field_resize(bench->context, scratch, field)));
  put_multiples(bench, reference, true, scratch);
  MD_TRY(md_linear_norm2(bench->context, reference, NULL, &expected2));
  MD_TRY(md_linear_norm2(bench->context, scratch, NULL, off2));
  for (int r = 0; r < scratch->n_rhs; r++) {
    factor(r, scratch->n_rhs, z);
    sums[0] += off2[r];
    sums[1] += (z[0] * z[0] + z[1] * z[1]) * expected2;
  }
  *error = sqrt(sums[0] / sums[1]);
  return MD_OK;
}

/* Larger of the errors of Deo and Doe. */
static md_status check(md_dirac_bench *bench, md_dirac *dirac, md_field fields[MD_PARITIES],
                       md_field *scratch, double *error) {
  *error = 0.0;
  for (int p = 0; p < MD_PARITIES; p++) {
    double one;
    MD_TRY(md_agree(bench->context, set_source(bench, scratch, &fields[1 - p])));
    MD_TRY(md_agree(bench->context,
                    md_dirac_hop(bench->context, dirac, &fields[p], &fields[1 - p], NULL)));
    MD_TRY(distance(bench, scratch, &fields[p], &one));
    md_raise(error, one);
  }
  /* What long links of 13 and 9 reals leave out is no error of arithmetic. */
  const double bound =
      6.0 * md_precision_roundoff(dirac->request.precision) + 3.0 * dirac->link_error;
  if (*error <= bound) return MD_OK;
  const md_backend_request *r = &dirac->request;
  char name[96];
  snprintf(name, sizeof name, "%s %s %s reconstruct %s rhs %d", dirac->backend->name,
           md_packing_name(r->packing), md_precision_name(r->precision),
           md_reconstruct_name(r->reconstruct), r->n_rhs);
  if (bench->wrong)
    md_rows_add(NULL, bench->wrong, "name=%s error=%g bound=%g", name, *error, bound);
  return md_fail(bench->context, MD_UNREACHED,
                 "%s must agree with cpu_ref within %.1e before it is timed, got %.1e", name, bound,
                 *error);
}

typedef struct timing {
  md_statistics hop; /* of one */
  md_stream stream;
  md_statistics copy; /* triad or copy of about the same working set, seconds */
  double copy_bytes;  /* of all ranks */
  hop_parts parts;
} timing;

/* Stencil and bandwidth are timed in turn, so that a change of the machine's load meets both. In
 * turn mode the fields grow by about sqrt(2) a hop: few hops from a fresh source each time. */
static md_status time_samples(md_dirac_bench *bench, md_hop_work *work, md_field *scratch,
                              md_stream_arrays *arrays, timing *result, double *samples) {
  md_context *context = bench->context;
  const md_space space = arrays->space;
  const int hops = bench->turn ? 2 : work->at_once, n = bench->repetitions;
  const int most = bench->turn ? 16 : 1000 / work->at_once;
  double *stream = samples + n;
  int passes, stream_passes;
  MD_TRY(md_passes_for(context, space, md_hop_pass, work, WINDOW_S, most, &passes));
  MD_TRY(md_passes_for(context, space, md_stream_pass, arrays, WINDOW_S, MD_STREAM_MOST_PASSES,
                       &stream_passes));
  for (int k = 0; k < n; k++) {
    MD_TRY(md_interrupt_check(context, bench->command));
    if (bench->turn) MD_TRY(md_agree(context, set_source(bench, scratch, &work->fields[MD_ODD])));
    /* Caches as in a solver, before each: a large one gives up the other's lines only slowly. */
    MD_TRY(md_time_work(context, space, md_hop_pass, work, space == MD_HOST ? passes : 1,
                        &samples[k]));
    MD_TRY(md_time_work(context, space, md_hop_pass, work, passes, &samples[k]));
    samples[k] /= hops;
    MD_TRY(md_time_work(context, space, md_stream_pass, arrays,
                        space == MD_HOST ? stream_passes : 1, &stream[k]));
    MD_TRY(md_time_work(context, space, md_stream_pass, arrays, stream_passes, &stream[k]));
  }
  result->hop = md_statistics_of(samples, n);
  result->copy = md_statistics_of(stream, n);
  result->copy_bytes = md_stream_bytes(arrays) * context->ranks;
  return MD_OK;
}

/* The copy bandwidth of the report, at the largest working set. */
static md_status note_copy(md_dirac_bench *bench, md_space space, double bytes) {
  if (space < bench->copy_space || (space == bench->copy_space && bytes <= bench->copy_bytes))
    return MD_OK;
  enum { SAMPLES = 5 };
  double samples[SAMPLES];
  md_stream_arrays arrays;
  md_statistics s;
  md_context *context = bench->context;
  MD_TRY(md_agree(context, md_stream_create(context, space, MD_STREAM_COPY, bytes, &arrays)));
  md_status status = md_time_samples(context, space, md_stream_pass, &arrays, WINDOW_S,
                                     MD_STREAM_MOST_PASSES, bench->command, SAMPLES, samples, &s);
  if (status == MD_OK) {
    const double gbytes = 1e-9 * md_stream_bytes(&arrays) * context->ranks;
    bench->copy_gbytes_per_s = gbytes / s.median;
    bench->copy_min = gbytes / s.max;
    bench->copy_max = gbytes / s.min;
    bench->copy_bytes = bytes;
    bench->copy_space = space;
  }
  md_stream_destroy(&arrays);
  return status;
}

/* Memory of this rank that the timed hops go through. */
static double working_set(const md_dirac_bench *bench, const md_dirac *dirac) {
  const md_backend_request *r = &dirac->request;
  const double links = dirac->backend->link_bytes(r);
  const double site = site_bytes(dirac->backend, r, true);
  return (bench->turn ? site + links : site) * (double)bench->links->geometry->sites;
}

static md_status time_case(md_dirac_bench *bench, md_dirac *dirac, md_field fields[MD_PARITIES],
                           md_field *scratch, timing *result) {
  md_context *context = bench->context;
  const md_space space = dirac->backend->space;
  double bytes = working_set(bench, dirac), *samples = NULL;
  if (space == MD_DEVICE) bytes = fmax(bytes, DEVICE_COPY_BYTES);
  result->stream = space == MD_DEVICE ? MD_STREAM_COPY : MD_STREAM_TRIAD;
  MD_TRY(note_copy(bench, space, bytes));
  md_stream_arrays arrays = {0};
  md_status status = md_allocate(context, 2 * (size_t)bench->repetitions * sizeof *samples, "times",
                                 (void **)&samples);
  if (status == MD_OK) status = md_stream_create(context, space, result->stream, bytes, &arrays);
  status = md_agree(context, status);
  md_hop_work work = {dirac, fields, bench->turn ? MD_HOP_BOTH : MD_HOP_ONE, 1, NULL};
  if (status == MD_OK && !bench->turn) status = record(context, &work);
  if (status == MD_OK) status = time_samples(bench, &work, scratch, &arrays, result, samples);
  if (status == MD_OK) status = time_parts(context, dirac, fields, bench->command, &result->parts);
  if (status == MD_OK) status = md_agree(context, md_halo_verify(dirac->halo));
  free(samples);
  md_device_recording_destroy(work.recording);
  md_stream_destroy(&arrays);
  return status;
}

#define REQUEST                                                                                    \
  "backend=%-10s packing=%-8s precision|prec=%-6s reconstruct|rec=%3s rhs=%4d action=%s"
#define COLUMNS                                                                                    \
  REQUEST " ranks=%d transport=%s transport_reason=%s seconds_median|seconds=%11.3e "              \
          "seconds_min=%g seconds_max=%g repetitions=%d gflops|GFLOP/s=%10.2f "                    \
          "gbytes_per_s|GB/s=%9.2f bandwidth_gbytes_per_s|bandwidth=%9.2f "                        \
          "roofline_fraction|fraction=%8.3f error=%9.1e mode=%s bandwidth=%s "                     \
          "bandwidth_gbytes_per_s_min=%g bandwidth_gbytes_per_s_max=%g no_reuse_gbytes_per_s=%g "  \
          "site_bytes=%g site_bytes_no_reuse=%g load_seconds=%g"

void md_dirac_bench_head(const md_context *context) {
  md_rows_head(context, COLUMNS);
}

/* n_rhs: as many as were asked for, whose work counts. */
static void add_row(md_dirac_bench *bench, const md_dirac *dirac, int n_rhs, const timing *t,
                    double error) {
  md_backend_request request = dirac->request;
  const md_backend_request *r = &request;
  request.n_rhs = n_rhs;
  const double sites = (double)bench->links->geometry->volume / 2, hop_s = t->hop.median;
  const double bytes = site_bytes(dirac->backend, r, true);
  const double all = site_bytes(dirac->backend, r, false);
  const double gbytes = 1e-9 * bytes * sites / hop_s, copied = 1e-9 * t->copy_bytes;
  cJSON *row = md_rows_add(
      bench->context, bench->rows, COLUMNS, dirac->backend->name, md_packing_name(r->packing),
      md_precision_name(r->precision), md_reconstruct_name(r->reconstruct), r->n_rhs,
      md_action_name(r->action), bench->context->ranks, md_halo_transport(dirac->halo),
      md_halo_reason(dirac->halo), hop_s, t->hop.min, t->hop.max, bench->repetitions,
      1e-9 * md_request_flops(r) * r->n_rhs * sites / hop_s, gbytes, copied / t->copy.median,
      gbytes / (copied / t->copy.median), error, bench->turn ? "turn" : "single",
      md_stream_name(t->stream), copied / t->copy.max, copied / t->copy.min,
      1e-9 * all * sites / hop_s, bytes, all, dirac->load_s);
  md_twist_report(row, r);
  md_report_integers(row, "dims", bench->links->geometry->global, MD_DIMS);
  report_parts(dirac, &t->parts, row);
}

/* Notes why a configuration is not timed; says it once for each backend and reason. */
static void skip(md_dirac_bench *bench, const md_backend *backend, const md_backend_request *r) {
  const char *reason = bench->context->message;
  cJSON *row = cJSON_CreateObject();
  md_report_add(row, REQUEST, backend->name, md_packing_name(r->packing),
                md_precision_name(r->precision), md_reconstruct_name(r->reconstruct), r->n_rhs,
                md_action_name(r->action));
  md_twist_report(row, r);
  if (md_rows_skip(bench->skipped, row, "backend", reason))
    md_say(bench->context, "%-10s not timed: %s\n", backend->name, reason);
}

static md_status bench_case(md_dirac_bench *bench, const md_backend *backend,
                            const md_backend_request *request) {
  md_context *context = bench->context;
  const md_field_shape exact = {MD_DOUBLE,      MD_HOST, md_request_reals(request),
                                request->n_rhs, false,   false};
  md_dirac dirac;
  md_field fields[MD_PARITIES] = {0}, scratch = {0};
  timing result = {0};
  double error = 0.0;
  if (md_dirac_create_over(context, bench->links->field, backend->name, request, bench->halo,
                           &dirac) != MD_OK) {
    skip(bench, backend, request);
    return MD_OK;
  }
  md_status status = md_field_create(context, bench->links->geometry, &exact, MD_EVEN, &scratch);
  for (int p = 0; p < MD_PARITIES && status == MD_OK; p++)
    status = md_dirac_field(context, &dirac, p, &fields[p]);
  status = md_agree(context, status);
  if (status == MD_OK) status = check(bench, &dirac, fields, &scratch, &error);
  if (status == MD_OK) status = time_case(bench, &dirac, fields, &scratch, &result);
  if (status == MD_OK) add_row(bench, &dirac, request->n_rhs, &result, error);
  for (int p = 0; p < MD_PARITIES; p++) md_field_destroy(&fields[p]);
  md_field_destroy(&scratch);
  md_dirac_destroy(&dirac);
  return status;
}

/* False for a number that "all" leaves out: the flags of a backend of this build lack it. */
static bool meant(const md_choices *c, int i, const md_backend *b, unsigned flags) {
  return !c->all || b->unavailable || (flags & 1u << c->value[i]);
}

/* The same of 13 and 9 reals, for an action without long links. */
static bool has_links(const md_dirac_bench *bench, const md_choices *c, int i) {
  return !c->all || md_action_get(bench->links->action)->fields > 1 ||
         !md_reconstruct_has_phase((md_reconstruct)c->value[i]);
}

md_status md_dirac_bench_backend(md_dirac_bench *bench, const md_backend *b,
                                 const md_dirac_bench_list *s) {
  md_progress progress = md_progress_of_run(bench->context, bench->command);
  for (int i = 0; i < s->packing.count; i++)
    for (int j = 0; j < s->precision.count; j++)
      for (int k = 0; k < s->reconstruct.count; k++) {
        if (!meant(&s->packing, i, b, b->packings) || !meant(&s->precision, j, b, b->precisions) ||
            !meant(&s->reconstruct, k, b, b->reconstructs) || !has_links(bench, &s->reconstruct, k))
          continue;
        md_backend_request request = {.precision = (md_precision)s->precision.value[j],
                                      .reconstruct = (md_reconstruct)s->reconstruct.value[k],
                                      .packing = (md_packing)s->packing.value[i],
                                      .pads = true,
                                      .antiperiodic = true};
        md_physics_apply(bench->physics, &request);
        for (int l = 0; l < s->n_rhs.count; l++) {
          request.n_rhs = (int)s->n_rhs.value[l];
          md_progress_update(&progress, -1.0, "%s, packing %s, %s, %d right-hand side%s", b->name,
                             md_packing_name(request.packing), md_precision_name(request.precision),
                             request.n_rhs, md_plural(request.n_rhs));
          const md_status status = bench_case(bench, b, &request);
          if (status != MD_UNREACHED || !bench->wrong) MD_TRY(status);
          if (status == MD_UNREACHED) md_say(bench->context, "%s\n", bench->context->message);
          MD_TRY(md_interrupt_check(bench->context, bench->command));
        }
      }
  return MD_OK;
}
