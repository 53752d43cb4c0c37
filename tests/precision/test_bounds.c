/* The a-priori bounds: every backend keeps them, they are what the rounding of the storage type
 * gives and no more, roundings of one sign need them, and a wrong component and NaN break them. */
#include "../dirac/backend_cases.h"
#include "problem.h"
#include "validate/validate.h"

#include <math.h>
#include <string.h>

static const double mass = 0.1;

static void begin(const problem *p, md_validate_run *run) {
  *run = (md_validate_run){.options.mass = mass, .options.seed = 3, .links.geometry = p->g};
  memcpy(run->links.field, p->field, sizeof p->field);
  run->rows = cJSON_CreateArray();
}

static void check(md_context *context, problem *p, md_dirac *dirac, md_validate_run *run) {
  md_dirac reference;
  context->quiet = true;
  problem_dirac(context, p, "cpu_ref", MD_DOUBLE, &reference);
  MD_REQUIRE(context, md_validate_operator(context, run, dirac, &reference));
  md_dirac_destroy(&reference);
}

static double number(const cJSON *row, const char *key) {
  const cJSON *item = cJSON_GetObjectItem(row, key);
  return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

/* Bound used by one hop of `source` (odd; host, double). Collective. */
static double share_of_hop(md_context *context, const md_gauge *gauge, md_dirac *dirac,
                           md_field *source) {
  const md_backend_request *request = &dirac->request;
  md_links links;
  MD_REQUIRE(context, md_request_links(context, request, gauge, &links));
  md_backend_request plain = *request;
  plain.precision = MD_DOUBLE;
  plain.reconstruct = MD_RECONSTRUCT_18;
  plain.packing = MD_PACKING_NONE;
  md_dirac exact;
  md_errors errors = {0};
  md_field error, result, bound, in, out, got;
  MD_REQUIRE(context, md_dirac_create(context, gauge, "cpu_ref", &plain, &exact));
  MD_REQUIRE(context, md_dirac_field(context, &exact, MD_ODD, &error));
  MD_REQUIRE(context, md_dirac_field(context, &exact, MD_EVEN, &result));
  MD_REQUIRE(context, md_dirac_field(context, &exact, MD_EVEN, &bound));
  MD_REQUIRE(context, md_dirac_field(context, dirac, MD_ODD, &in));
  MD_REQUIRE(context, md_dirac_field(context, dirac, MD_EVEN, &out));
  MD_REQUIRE(context, md_field_convert(context, &in, source));
  MD_REQUIRE(context, md_dirac_hop(context, dirac, &out, &in, NULL));
  MD_REQUIRE(context, md_dirac_hop(context, &exact, &result, source, NULL));
  md_bound_store(request, source, &error);
  MD_REQUIRE(context, md_halo_begin(exact.halo, &error));
  MD_REQUIRE(context, md_halo_end(exact.halo, &error));
  md_bound_hop(&links, request, source, &error, &bound);
  md_bound_store(request, &result, &bound);
  host_copy(context, &out, &got);
  MD_REQUIRE(context, md_errors_add(context, &errors, &got, &result, &bound));
  md_field *all[] = {&error, &result, &bound, &in, &out, &got};
  for (int k = 0; k < 6; k++) md_field_destroy(all[k]);
  md_dirac_destroy(&exact);
  return errors.bound_used;
}

/* One real of one colour of one site is 1: the results are halves of single elements of eight
 * links, whose rounding no sum hides. */
static void check_elements(md_context *context, const problem *p, md_dirac *dirac,
                           const char *name) {
  const md_field_shape shape = {MD_DOUBLE, MD_HOST, MD_FERMION_REALS, dirac->request.n_rhs,
                                true,      false};
  for (int k = 0; k < 6; k++) {
    md_field source;
    MD_REQUIRE(context, md_field_create(context, p->g, &shape, MD_ODD, &source));
    for (int64_t i = 0; i < source.sites; i++) {
      int x[MD_DIMS];
      double v[MD_FERMION_REALS * MD_MAX_RHS] = {0};
      md_global_coordinates(p->g, MD_ODD, i, x);
      if (x[0] != 1 || x[1] != k % 4 || x[2] != k % 4 || x[3] != k / 4 * 2) continue;
      for (int r = 0; r < shape.n_rhs; r++) v[MD_FERMION_REALS * r + 2 * (k % 3)] = 1.0;
      md_field_set(&source, i, v);
    }
    md_require_at_most(share_of_hop(context, p->field, dirac, &source), 1.0, name);
    md_field_destroy(&source);
  }
}

/* Means over uniform links of SU(3) and normal deviates of unit variance. A real of a link is a
 * coordinate of a uniform point of the unit sphere in six dimensions: <|U|> = 16 / (15 pi), <U^2> =
 * 1/6, so that a component of D v has variance 48/4/6 = 2 and the 24 = 48/2 products of a bound
 * have the mean <|U|><|v|>. */
static const double mean_u = 0.339531, mean_v = 0.797885, rms_dv = 1.414214;

/* Sums of 56 terms: 48 products, signs, 1/2 and the epilogue, in the arithmetic of the request. */
static double arithmetic(const md_backend_request *request) {
  if (request->precision == MD_DOUBLE) return 56.0 * 0x1p-52;
  return 56.0 * (request->packing == MD_PACKING_NONE ? 0x1p-24 : 0x1p-23);
}

/* Mean bound on what storing changes of a real of a link. The third row of 12 reals is a sum of
 * four products of the others, with eight factors; it is in three of nine reals of U, and in five
 * of U or U^dag, of which backward links take the worse. For 8 reals the bound has no closed form
 * (test_link_bounds.c holds it from below); most of it is the rounding of eight coordinates of size
 * a third, each of which moves a real by at most itself. */
static double mean_link_error(const md_backend_request *request) {
  const md_rounding of = md_rounding_of(request->precision);
  const double whole = of.unit * mean_u + of.link_floor, gamma = arithmetic(request);
  const double third =
      (2.0 * of.unit + gamma) * 4.0 * mean_u * mean_u + of.link_floor * 8.0 * mean_u;
  if (request->reconstruct == MD_RECONSTRUCT_18) return whole;
  if (request->reconstruct == MD_RECONSTRUCT_8) return 3.2 * whole + 2.0 * gamma;
  return 0.5 * (6.0 * whole + 3.0 * third) / 9.0 + 0.5 * (4.0 * whole + 5.0 * third) / 9.0;
}

/* Mean bound on a component of D v, whose source has components of mean size `size`, largest of a
 * site `largest`, and mean error `error` before it is stored. */
static double mean_hop_error(const md_backend_request *request, double size, double error) {
  return 24.0 * (mean_link_error(request) * (size + error) + mean_u * error +
                 arithmetic(request) * mean_u * (size + error));
}
static double mean_stored_error(const md_backend_request *request, double size, double error) {
  const md_rounding of = md_rounding_of(request->precision);
  const double largest = (request->n_rhs == 1 ? 1.654 : 2.125) / mean_v; /* of 6 and 18 deviates */
  return error + of.unit * (size + error) + of.field_floor * (largest * size + error);
}

/* What the rounding of the storage type gives for random fields, in L2 (a bound varies by less than
 * a tenth from site to site), relative to the result. M^dag M v has variance (2 + m^2)^2 + 56/16:
 * the ways back to the site add up, 56 others of 1/4 each do not. */
static double expected_bound(const md_backend_request *request, const char *operation) {
  const double source = mean_stored_error(request, mean_v, 0.0);
  const double hop = mean_hop_error(request, mean_v, source), size = rms_dv * mean_v;
  const double stored = mean_stored_error(request, size, hop);
  if (*operation == 'D') return stored / rms_dv;
  if (*operation == 'a') return 2.0 * mean_v * stored;
  const double back = 2.0 + mass * mass, rms = sqrt(back * back + 56.0 / 16.0);
  const double twice = mean_hop_error(request, size, stored) + 4.0 * mass * mass * source;
  return mean_stored_error(request, rms * mean_v, twice) / rms;
}

/* Bounds of other links, which are not uniform on SU(3), have no closed form. One hop in 16 bits
 * uses a third of them and more; their size is some tens of roundings, and for wider types of what
 * the sums of a hop may lose. */
static void check_improved(const cJSON *row, const backend_case *c, bool hop, const char *name) {
  const bool narrow = md_precision_bytes(c->request.precision) == 2;
  const double unit =
      narrow ? md_precision_roundoff(c->request.precision) : 0.4 * md_bound_gamma(&c->request);
  if (hop && narrow) md_require_at_most(0.33, number(row, "bound_used"), name);
  md_require_at_most(number(row, "bound"), 200.0 * unit, name);
}

static void check_case(md_context *context, const backend_case *c) {
  problem p;
  md_dirac dirac;
  md_validate_run run;
  char name[80];
  problem_make_of(context, &c->request, &p);
  case_dirac(context, c, p.field, &dirac);
  begin(&p, &run);
  check(context, &p, &dirac, &run);
  check_elements(context, &p, &dirac, case_name(c, name, sizeof name));
  if (run.broken) fail_msg("%s breaks %lld bounds", case_name(c, name, sizeof name), run.broken);
  assert_int_equal(cJSON_GetArraySize(run.rows), 4);
  for (const cJSON *row = run.rows->child; row; row = row->next) {
    md_require_at_most(number(row, "rel_l2_error"), number(row, "bound"), name);
    const char *operation = cJSON_GetObjectItem(row, "operation")->valuestring;
    if (c->request.action != MD_ACTION_NAIVE) {
      check_improved(row, c, *operation == 'D', name);
      continue;
    }
    md_require_at_most(number(row, "bound"), 1.15 * expected_bound(&c->request, operation), name);
  }
  cJSON_Delete(run.rows);
  md_dirac_destroy(&dirac);
  problem_drop(&p);
}

static void every_backend_keeps_its_bounds(void **state) {
  static const int n_rhs[] = {1, 3};
  each_backend_case(*state, n_rhs, 2, check_case);
  each_improved_case(*state, n_rhs, 2, check_case);
}

/* Links and a source with which all roundings of a real part have one sign: with links of (1 - i),
 * times eta on even and -eta conjugated on odd sites, D sums 48 plus terms, and all reals are
 * nearly half a step more than what can be stored. What is seen is then nearly the bound: the
 * rounding of the result, near 6, is two thirds of a unit. `step` scans where it adds to the
 * others. */
static double coherent_share(md_context *context, md_precision precision, int step) {
  const md_backend_request request = {
      .precision = precision, .reconstruct = MD_RECONSTRUCT_18, .n_rhs = 1, .antiperiodic = false};
  const md_rounding of = md_rounding_of(precision);
  const double wide = precision == MD_FIXED ? of.link_floor : 0.25 * of.unit;
  const double link = (precision == MD_FIXED ? 4096.0 / MD_FIXED_STEPS : 0.25) + 0.99 * wide;
  problem p;
  md_dirac dirac;
  problem_make(context, 1, &p);
  for (int q = 0; q < MD_PARITIES; q++)
    for (int64_t i = 0; i < p.g->sites; i++)
      for (int mu = 0; mu < MD_DIMS; mu++) {
        int x[MD_DIMS];
        double u[MD_LINK_REALS] = {0};
        md_global_coordinates(p.g, q, i, x);
        for (int e = 0; e < 9; e++) {
          u[2 * e] = (q == MD_EVEN ? 1.0 : -1.0) * md_eta(mu, x) * link;
          u[2 * e + 1] = -md_eta(mu, x) * link;
        }
        md_gauge_set(p.field, q, mu, i, u);
      }
  MD_REQUIRE(context, md_gauge_exchange(context, p.field));
  MD_REQUIRE(context, md_dirac_create(context, p.field, "cpu_simd", &request, &dirac));
  for (int64_t i = 0; i < p.g->sites; i++) {
    double v[MD_FERMION_REALS];
    for (int c = 0; c < MD_FERMION_REALS; c++)
      v[c] = precision == MD_FIXED ? (24000.0 + step + 0.49) / MD_FIXED_STEPS
                                   : 1.0 + (2 * step + 0.99) * of.unit;
    if (precision == MD_FIXED) v[5] = 1.0; /* sets the scale of the site */
    md_field_set(&p.b[MD_ODD], i, v);
  }
  const double share = share_of_hop(context, p.field, &dirac, &p.b[MD_ODD]);
  md_dirac_destroy(&dirac);
  problem_drop(&p);
  return share;
}

static void coherent_rounding_needs_the_bound(void **state) {
  static const md_precision precisions[] = {MD_HALF, MD_BF16, MD_FIXED};
  for (int i = 0; i < 3; i++) {
    double most = 0.0;
    for (int step = 0; step < 10; step++)
      most = fmax(most, coherent_share(*state, precisions[i], step));
    print_message("%s: %.2f of the bound is used\n", md_precision_name(precisions[i]), most);
    md_require_at_most(most, 1.0, "share of the bound");
    md_require_at_most(0.8, most, "least share");
  }
}

/* cpu_simd in single, with one component of every result changed. */
typedef struct wrong {
  const md_backend *backend;
  void *state;
  float factor;
} wrong;

static md_status wrong_hop(md_context *context, void *state, const md_hop_call *call) {
  const wrong *w = state;
  MD_TRY(w->backend->hop(context, w->state, call));
  if (context->rank == 0 && call->range != MD_RANGE_INTERIOR)
    ((float *)call->out->data)[0] *= w->factor;
  return MD_OK;
}

static void wrong_results_break_bounds(void **state) {
  md_context *context = *state;
  const float factors[] = {1.0f, 1.0f + 5e-5f, 1.0f + 1e-3f,
                           NAN}; /* bounds are 1.6e-5 on average */
  for (int i = 0; i < 4; i++) {
    problem p;
    md_dirac dirac;
    md_validate_run run;
    problem_make(context, 1, &p);
    problem_dirac(context, &p, "cpu_simd", MD_SINGLE, &dirac);
    wrong w = {dirac.backend, dirac.state, factors[i]};
    md_backend fake = *dirac.backend;
    fake.hop = wrong_hop;
    dirac.backend = &fake;
    dirac.state = &w;
    begin(&p, &run);
    check(context, &p, &dirac, &run);
    assert_int_equal(run.broken > 0, i > 0);
    if (isnan(factors[i])) assert_int_equal(run.broken, cJSON_GetArraySize(run.rows));
    cJSON_Delete(run.rows);
    dirac.backend = w.backend;
    dirac.state = w.state;
    md_dirac_destroy(&dirac);
    problem_drop(&p);
  }
}

/* Fields of ones with errors of a multiple of their bound: the largest share stays, and so does the
 * relative error of the field where that is largest, in any order. */
static void largest_share_stays(void **state) {
  md_context *context = *state;
  const double shares[] = {0.0, 0.5, 2.0, 0.25};
  md_geometry *g = md_test_geometry(context, 4, 4, 4, 4, false);
  md_errors errors = {0};
  for (int k = 0; k < 4; k++) {
    md_field f[3]; /* got, reference, bound */
    const double bounds[] = {1e-3, 1e-3, 1e-4, 1e-2};
    const double values[] = {1.0 + shares[k] * bounds[k], 1.0, bounds[k]};
    for (int i = 0; i < 3; i++) {
      md_test_random_field(context, g, MD_DOUBLE, 1, MD_EVEN, 1, &f[i]);
      for (int64_t site = 0; site < f[i].sites; site++) {
        double v[MD_FERMION_REALS];
        for (int c = 0; c < MD_FERMION_REALS; c++) v[c] = values[i];
        md_field_set(&f[i], site, v);
      }
    }
    MD_REQUIRE(context, md_errors_add(context, &errors, &f[0], &f[1], &f[2]));
    if (k == 0) md_require_at_most(fabs(errors.bound - bounds[0]), 1e-9, "bound without an error");
    for (int i = 0; i < 3; i++) md_field_destroy(&f[i]);
  }
  md_require_at_most(fabs(errors.bound_used - 2.0), 1e-9, "share");
  md_require_at_most(fabs(errors.rel_l2_error - 0.25e-2), 1e-9, "relative error");
  md_require_at_most(fabs(errors.max_rel_error - 0.25e-2), 1e-9, "largest of a site");
  md_require_at_most(fabs(errors.bound - 1e-2), 1e-9, "bound of that field");
  md_geometry_destroy(g);
}

static struct CMUnitTest tests[] = {
    cmocka_unit_test(largest_share_stays),
    cmocka_unit_test(every_backend_keeps_its_bounds),
    cmocka_unit_test(coherent_rounding_needs_the_bound),
    cmocka_unit_test(wrong_results_break_bounds),
};
MD_RUN_TESTS(tests)
