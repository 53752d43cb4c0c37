#include "base/memory_need.h"
#include "base/statistics.h"
#include "lattice/fields/linear.h"
#include "lattice/fields/source.h"
#include "lattice/fields/sum.h"
#include "lattice/halo/halo.h"
#include "validate/validate.h"

#include <math.h>
#include <stdlib.h>

/* Fields that the operations are tried on. Smooth: one plane wave a colour, falling along t by
 * 1e-8 over the lattice, so that 16-bit fields need their scales. */
enum { RANDOM_FIELDS = 3, POINT_FIELD = RANDOM_FIELDS, SMOOTH_FIELD, FIELDS };

enum { DEO, DOE, MDAG_M, ANTISYMMETRY, OPERATIONS };
static const char *const operation_names[OPERATIONS] = {"Deo", "Doe", "MdagM", "antisymmetry"};

/* Of a trial; host, double but for the last two, which are the operator's. */
enum { IN, OUT, IN_ERROR, BOUND, GOT, MINE, MINE_OUT, FIELD_SETS };

typedef struct trial {
  md_context *context;
  md_validate_run *run;
  md_dirac *dirac, *reference;
  md_errors errors[OPERATIONS];
  md_halo *halo; /* of whole spinors, whose errors the projection does not take with their signs */
  md_field field[FIELD_SETS][MD_PARITIES];
} trial;

static md_status create(trial *t) {
  for (int s = 0; s < FIELD_SETS; s++)
    for (int p = 0; p < MD_PARITIES; p++)
      MD_TRY(md_dirac_field(t->context, s < MINE ? t->reference : t->dirac, p, &t->field[s][p]));
  return MD_OK;
}

static void destroy(trial *t) {
  md_halo_destroy(t->halo);
  for (int s = 0; s < FIELD_SETS; s++)
    for (int p = 0; p < MD_PARITIES; p++) md_field_destroy(&t->field[s][p]);
}

md_status md_errors_add(md_context *context, md_errors *errors, const md_field *got,
                        const md_field *reference, const md_field *bound) {
  md_sum sums[3] = {0};
  double most[3] = {0.0}, total[3];
  long long counts[MD_ERROR_BINS] = {0};
  for (int64_t i = 0; i < got->sites; i++)
    for (int r = 0; r < got->n_rhs; r++) {
      double v[MD_MAX_COMPONENTS], w[MD_MAX_COMPONENTS], b[MD_MAX_COMPONENTS];
      double error2 = 0.0, size2 = 0.0, bound2 = 0.0, largest = 0.0;
      md_field_get(got, i, r, v);
      md_field_get(reference, i, r, w);
      md_field_get(bound, i, r, b);
      for (int c = 0; c < got->components; c++) largest = fmax(largest, fabs(w[c]));
      for (int c = 0; c < got->components; c++) {
        const double error = fabs(v[c] - w[c]);
        error2 += error * error;
        size2 += w[c] * w[c];
        bound2 += b[c] * b[c];
        if (!(error <= most[0] * b[c])) /* not even NaN gets by */
          most[0] = b[c] > 0.0 && error <= HUGE_VAL ? error / b[c] : INFINITY;
        if (fabs(w[c]) >= 0.01 * largest && error > 0.0)
          most[2] = fmax(most[2], 100.0 * error / fabs(w[c]));
        const double decades = error > 0.0 ? log10(error / largest) - MD_ERROR_LOWEST : 0.0;
        const double bin = fmin(fmax(2.0 * decades, 0.0), MD_ERROR_BINS - 1);
        if (largest > 0.0) counts[(int)bin]++;
      }
      if (!(error2 <= 0.0)) /* likewise */
        most[1] = fmax(most[1], error2 <= HUGE_VAL ? sqrt(error2 / size2) : INFINITY);
      md_sum_add(&sums[0], error2);
      md_sum_add(&sums[1], size2);
      md_sum_add(&sums[2], bound2);
    }
  MD_TRY(md_sum_finish(context, sums, 3, total));
  md_maximum(context, most, 3);
  md_sum_integers(context, counts, MD_ERROR_BINS);
  const double l2 = sqrt(total[0] / total[1]);
  const bool first = errors->bound == 0.0; /* which may be without an error */
  if ((first || !(l2 <= errors->rel_l2_error)) && !isnan(errors->rel_l2_error)) {
    errors->rel_l2_error = l2;
    errors->bound = sqrt(total[2] / total[1]);
  }
  if (!(most[0] <= errors->bound_used)) errors->bound_used = most[0];
  errors->max_rel_error = fmax(errors->max_rel_error, most[1]);
  errors->max_percent = fmax(errors->max_percent, most[2]);
  for (int i = 0; i < MD_ERROR_BINS; i++) errors->histogram[i] += counts[i];
  return MD_OK;
}

static void set_smooth(md_field in[MD_PARITIES]) {
  const md_geometry *g = in[0].geometry;
  for (int p = 0; p < MD_PARITIES; p++)
    for (int64_t i = 0; i < in[p].sites; i++) {
      int x[MD_DIMS];
      double v[MD_VALIDATE_MOST_REALS];
      md_global_coordinates(g, p, i, x);
      const double falls = pow(1e-8, (double)x[MD_T] / g->global[MD_T]);
      for (int k = 0; k < in[p].n_rhs * in[p].components / 2; k++) {
        const int mu = k % MD_DIMS;
        const double phase = 2.0 * acos(-1.0) * x[mu] / g->global[mu] + 0.7 * k;
        v[2 * k] = falls * cos(phase);
        v[2 * k + 1] = falls * sin(phase);
      }
      md_field_set(&in[p], i, v);
    }
}

/* A point on each parity, in all components. */
static void set_points(md_field in[MD_PARITIES]) {
  const md_geometry *g = in[0].geometry;
  for (int p = 0; p < MD_PARITIES; p++) {
    md_linear_zero(&in[p]);
    for (int64_t i = 0; i < in[p].sites; i++) {
      int x[MD_DIMS];
      double v[MD_VALIDATE_MOST_REALS];
      md_global_coordinates(g, p, i, x);
      if (x[0] != p || x[1] || x[2] || x[3]) continue;
      for (int k = 0; k < in[p].components * in[p].n_rhs; k++) v[k] = 1.0 / (3.0 + k % 7);
      md_field_set(&in[p], i, v);
    }
  }
}

static void set_field(const trial *t, int which, md_field in[MD_PARITIES]) {
  if (which < RANDOM_FIELDS)
    md_source_gaussian(in, (uint64_t)t->run->options.seed + (uint64_t)which);
  else if (which == POINT_FIELD)
    set_points(in);
  else
    set_smooth(in);
}

static md_status fill_halo(trial *t, md_field *field) {
  MD_TRY(md_halo_begin(t->halo, field));
  return md_halo_end(t->halo, field);
}

/* out, bound and got of one hop from parity 1-p to p; in_error as it stands. */
static md_status hop(trial *t, int p) {
  const md_backend_request *request = &t->dirac->request;
  md_links links;
  MD_TRY(md_request_links(t->context, request, t->run->links.field, &links));
  MD_TRY(md_dirac_hop(t->context, t->reference, &t->field[OUT][p], &t->field[IN][1 - p], NULL));
  MD_TRY(fill_halo(t, &t->field[IN][1 - p]));
  MD_TRY(fill_halo(t, &t->field[IN_ERROR][1 - p]));
  md_bound_hop(&links, request, &t->field[IN][1 - p], &t->field[IN_ERROR][1 - p],
               &t->field[BOUND][p]);
  md_bound_store(request, &t->field[OUT][p], &t->field[BOUND][p]);
  MD_TRY(md_dirac_hop(t->context, t->dirac, &t->field[MINE_OUT][p], &t->field[MINE][1 - p], NULL));
  return md_agree(t->context,
                  md_field_convert(t->context, &t->field[GOT][p], &t->field[MINE_OUT][p]));
}

/* MdagM on even sites; out, bound of Doe are there. bound: D of the intermediate field with its
 * error, m^2 times the stored source (four roundings of it: storage, m^2, product, sum), storage.
 */
static md_status mdag_m(trial *t) {
  const md_backend_request *request = &t->dirac->request;
  md_links links;
  MD_TRY(md_request_links(t->context, request, t->run->links.field, &links));
  const double mass = t->run->options.mass;
  double factor[MD_MAX_RHS];
  for (int r = 0; r < MD_MAX_RHS; r++) factor[r] = 4.0 * mass * mass;
  MD_TRY(fill_halo(t, &t->field[OUT][MD_ODD]));
  MD_TRY(fill_halo(t, &t->field[BOUND][MD_ODD]));
  md_bound_hop(&links, request, &t->field[OUT][MD_ODD], &t->field[BOUND][MD_ODD],
               &t->field[BOUND][MD_EVEN]);
  md_linear_axpy(factor, &t->field[IN_ERROR][MD_EVEN], &t->field[BOUND][MD_EVEN]);
  MD_TRY(md_dirac_mdag_m(t->context, t->reference, mass, &t->field[OUT][MD_EVEN],
                         &t->field[IN][MD_EVEN], &t->field[OUT][MD_ODD]));
  md_bound_store(request, &t->field[OUT][MD_EVEN], &t->field[BOUND][MD_EVEN]);
  MD_TRY(md_dirac_mdag_m(t->context, t->dirac, mass, &t->field[MINE_OUT][MD_EVEN],
                         &t->field[MINE][MD_EVEN], &t->field[MINE_OUT][MD_ODD]));
  MD_TRY(md_agree(t->context, md_field_convert(t->context, &t->field[GOT][MD_EVEN],
                                               &t->field[MINE_OUT][MD_EVEN])));
  return md_errors_add(t->context, &t->errors[MDAG_M], &t->field[GOT][MD_EVEN],
                       &t->field[OUT][MD_EVEN], &t->field[BOUND][MD_EVEN]);
}

/* |<a, Deo b> + <Doe a, b>| / (|a| |b|) with the operator's own results and exact sums, a and b
 * before they were stored; its bound by that of the components. */
static md_status antisymmetry(trial *t, md_errors *errors) {
  md_sum sums[4] = {0};
  double total[4];
  for (int p = 0; p < MD_PARITIES; p++)
    for (int64_t i = 0; i < t->field[GOT][p].sites; i++)
      for (int r = 0; r < t->field[GOT][p].n_rhs; r++) {
        double a[MD_FERMION_REALS], d[MD_FERMION_REALS], b[MD_FERMION_REALS];
        md_field_get(&t->field[IN][p], i, r, a);
        md_field_get(&t->field[GOT][p], i, r, d);
        md_field_get(&t->field[BOUND][p], i, r, b);
        for (int c = 0; c < MD_FERMION_REALS; c++) {
          md_sum_add(&sums[0], a[c] * d[c]);
          md_sum_add(&sums[1], fabs(a[c]) * b[c]);
          md_sum_add(&sums[2 + p], a[c] * a[c]);
        }
      }
  MD_TRY(md_sum_finish(t->context, sums, 4, total));
  const double size = sqrt(total[2] * total[3]);
  errors->bound = fmax(errors->bound, total[1] / size);
  md_raise(&errors->rel_l2_error, fabs(total[0]) / size);
  errors->max_rel_error = errors->rel_l2_error;
  md_raise(&errors->bound_used, fabs(total[0]) / total[1]);
  return MD_OK;
}

/* M^dag M and the symmetry of D: of four spins tests/wilson has those of M. */
static bool has_all(const trial *t) {
  return !md_action_has_spin(t->dirac->request.action);
}

static md_status try_field(trial *t, int which) {
  set_field(t, which, t->field[IN]);
  for (int p = 0; p < MD_PARITIES; p++) {
    MD_TRY(
        md_agree(t->context, md_field_convert(t->context, &t->field[MINE][p], &t->field[IN][p])));
    md_linear_zero(&t->field[IN_ERROR][p]);
    md_bound_store(&t->dirac->request, &t->field[IN][p], &t->field[IN_ERROR][p]);
  }
  for (int p = 0; p < MD_PARITIES; p++) {
    MD_TRY(hop(t, p));
    MD_TRY(md_errors_add(t->context, &t->errors[p == MD_EVEN ? DEO : DOE], &t->field[GOT][p],
                         &t->field[OUT][p], &t->field[BOUND][p]));
  }
  if (!has_all(t)) return MD_OK;
  if (which < RANDOM_FIELDS) MD_TRY(antisymmetry(t, &t->errors[ANTISYMMETRY]));
  return mdag_m(t);
}

static void add_row(trial *t, int operation) {
  const md_errors *e = &t->errors[operation];
  const md_backend_request *request = &t->dirac->request;
  const bool pass = e->bound_used <= 1.0;
  cJSON *row = md_rows_add(
      t->context, t->run->rows, MD_VALIDATE_OPERATOR_COLUMNS, t->dirac->backend->name,
      md_packing_name(request->packing), md_precision_name(request->precision),
      atoi(md_reconstruct_name(request->reconstruct)), request->n_rhs, operation_names[operation],
      md_action_name(request->action), e->rel_l2_error, e->max_rel_error, e->max_percent, e->bound,
      e->bound_used, pass ? "ok" : "BROKEN", pass);
  md_twist_report(row, request);
  md_report_counts(row, "histogram", e->histogram, MD_ERROR_BINS);
  if (!pass) t->run->broken++;
}

md_status md_validate_operator(md_context *context, md_validate_run *run, md_dirac *dirac,
                               md_dirac *reference) {
  trial t = {.context = context, .run = run, .dirac = dirac, .reference = reference};
  md_status status = md_agree(context, create(&t));
  if (status == MD_OK)
    status = md_halo_create(context, reference->geometry, &reference->shape, NULL, &t.halo);
  const bool tries = !md_counts(context);
  for (int k = 0; k < FIELDS && tries && status == MD_OK; k++) status = try_field(&t, k);
  for (int k = 0; k < (has_all(&t) ? OPERATIONS : MDAG_M) && tries && status == MD_OK; k++)
    add_row(&t, k);
  destroy(&t);
  return status;
}
