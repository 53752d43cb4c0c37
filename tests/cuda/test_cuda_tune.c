/* Launch shapes differ in no bit, of a hop, of its end and of a solver's step; trials choose one of
 * them, the same on all ranks and in later runs. */
#include "base/tune.h"
#include "dirac/backend.h"
#include "gpu_tests.h"
#include "lattice/fields/linear.h"

#include <cjson/cJSON.h>
#include <string.h>
#include <unistd.h>

typedef struct setting {
  const char *backend;
  md_packing packing;
  md_precision precision;
  int n_rhs;
} setting;

static const setting settings[] = {
    {"tensor", MD_PACKING_STACKED, MD_HALF, 16},  {"tensor", MD_PACKING_STACKED, MD_HALF, 8},
    {"tensor", MD_PACKING_STACKED, MD_BF16, 16},  {"tensor", MD_PACKING_STACKED, MD_DOUBLE, 16},
    {"tensor", MD_PACKING_STACKED, MD_DOUBLE, 8}, {"cuda", MD_PACKING_NONE, MD_DOUBLE, 1},
    {"cuda", MD_PACKING_NONE, MD_HALF, 1},        {"cuda", MD_PACKING_NONE, MD_SINGLE, 8}};
enum { SETTINGS = sizeof settings / sizeof *settings, RESULTS = 4 };

/* A lattice through which `stacked` marches. */
static md_geometry *make_problem(md_context *context, md_action action,
                                 md_gauge links[MD_MOST_LINK_FIELDS]) {
  md_geometry *g = md_test_action_geometry(context, action, (int[]){16, 16, 16, 32}, false);
  md_test_random_links(context, g, action, 3, links);
  return g;
}

static md_dirac make_operator(md_context *context, const setting *s, md_action action,
                              const md_gauge *links) {
  const md_backend_request request = {.action = action,
                                      .precision = s->precision,
                                      .packing = s->packing,
                                      .n_rhs = s->n_rhs,
                                      .antiperiodic = true};
  md_dirac dirac;
  MD_REQUIRE(context, md_dirac_create(context, links, s->backend, &request, &dirac));
  return dirac;
}

static md_field device_field(md_context *context, const md_dirac *dirac, int parity, int seed) {
  md_field host, field;
  md_test_random_field(context, dirac->geometry, MD_DOUBLE, dirac->request.n_rhs, parity,
                       (uint64_t)seed, &host);
  MD_REQUIRE(context, md_dirac_field(context, dirac, parity, &field));
  MD_REQUIRE(context, md_field_convert(context, &field, &host));
  md_field_destroy(&host);
  return field;
}

/* What a shape works with: in, x, what `out` holds, the field before, and out. */
enum { IN, X, OLD, BEFORE, OUT, FIELDS };

static void make_fields(md_context *context, const md_dirac *dirac, md_field f[FIELDS]) {
  for (int k = 0; k < FIELDS; k++)
    f[k] = device_field(context, dirac, k == IN ? MD_ODD : MD_EVEN, 5 + k);
}

/* Of the shape in use: D in, a x + b D in, and where the backend fuses it the step by that, in
 * double and single also the one with the field before. */
static void compute(md_context *context, md_dirac *dirac, const double *by, md_field f[FIELDS],
                    md_field results[RESULTS]) {
  md_field_shape host = dirac->shape;
  host.space = MD_HOST;
  const md_hop_end end = {.x = &f[X], .a = 0.7, .b = -1.5};
  const bool wide = md_precision_bytes(dirac->request.precision) > 2;
  const md_hop_step step[RESULTS] = {
      [2] = {.by = by}, [3] = {.by = by, .before = wide ? &f[BEFORE] : NULL}};
  const bool fuses = md_dirac_fuses(dirac, dirac->request.precision);
  for (int k = 0; k < RESULTS; k++) {
    md_linear_copy(&f[OUT], &f[OLD]);
    MD_REQUIRE(context, md_dirac_hop_step(context, dirac, &f[OUT], &f[IN], k > 0 ? &end : NULL,
                                          k >= 2 && fuses ? &step[k] : NULL));
    MD_REQUIRE(context, md_field_create(context, dirac->geometry, &host, MD_EVEN, &results[k]));
    MD_REQUIRE(context, md_field_convert(context, &results[k], &f[OUT]));
  }
}

static void require_same_bits(const md_field *got, const md_field *want, const char *what) {
  for (int64_t i = 0; i < got->sites; i++)
    for (int r = 0; r < got->n_rhs; r++) {
      double u[MD_FERMION_REALS], v[MD_FERMION_REALS];
      md_field_get(got, i, r, u);
      md_field_get(want, i, r, v);
      if (memcmp(u, v, sizeof u) != 0) fail_msg("%s: site %lld differs", what, (long long)i);
    }
}

static void check_shapes(md_context *context, const setting *s, md_action action,
                         const md_gauge *links) {
  md_dirac dirac = make_operator(context, s, action, links);
  const md_launch_shapes *shapes = dirac.backend->shapes;
  md_field f[FIELDS], want[RESULTS], got[RESULTS];
  double steps[3 * MD_MAX_RHS];
  void *by;
  for (int r = 0; r < 3 * MD_MAX_RHS; r++)
    steps[r] = 0.5 + 0.125 * (r % 7) - 0.3 * (r / MD_MAX_RHS);
  MD_REQUIRE(context, md_device_allocate(context, sizeof steps, "steps", &by));
  MD_REQUIRE(context, md_device_upload(context, by, steps, sizeof steps));
  make_fields(context, &dirac, f);
  compute(context, &dirac, by, f, want);
  for (int shape = 1; shape < shapes->count(dirac.state); shape++) {
    char name[MD_TUNE_NAME_BYTES], what[200];
    shapes->name(dirac.state, shape, name);
    shapes->take(dirac.state, shape);
    compute(context, &dirac, by, f, got);
    for (int k = 0; k < RESULTS; k++) {
      snprintf(what, sizeof what, "%s %s %s %d rhs, %s, result %d", s->backend,
               md_action_name(action), md_precision_name(s->precision), s->n_rhs, name, k);
      require_same_bits(&got[k], &want[k], what);
      md_field_destroy(&got[k]);
    }
  }
  for (int k = 0; k < RESULTS; k++) md_field_destroy(&want[k]);
  for (int k = 0; k < FIELDS; k++) md_field_destroy(&f[k]);
  md_device_free(by);
  md_dirac_destroy(&dirac);
}

static void shapes_have_the_same_bits(void **state) {
  md_context *context = *state;
  static const md_action actions[] = {MD_ACTION_NAIVE, MD_ACTION_HISQ};
  for (int a = 0; a < 2; a++) {
    md_gauge links[MD_MOST_LINK_FIELDS];
    md_geometry *g = make_problem(context, actions[a], links);
    for (int n = 0; n < SETTINGS; n++) check_shapes(context, &settings[n], actions[a], links);
    md_test_destroy_links(actions[a], links);
    md_geometry_destroy(g);
  }
}

/* What the report says of the choices of all settings, on rank 0; elsewhere nothing is known. */
static void require_choices(md_context *context, const char *from, int count) {
  cJSON *report = cJSON_CreateObject(), *choice;
  md_tune_report(context, report);
  cJSON *tuned = cJSON_GetObjectItem(report, "tuned");
  if (context->rank == 0) assert_int_equal(cJSON_GetArraySize(tuned), count);
  cJSON_ArrayForEach(choice, tuned) {
    assert_string_equal(cJSON_GetObjectItem(choice, "from")->valuestring, from);
    const double time_s = cJSON_GetObjectItem(choice, "time_s")->valuedouble;
    assert_true(time_s > 0.0 && time_s < 1.0);
    printf("%s: %s, %.2f us\n", cJSON_GetObjectItem(choice, "work")->valuestring,
           cJSON_GetObjectItem(choice, "choice")->valuestring, 1e6 * time_s);
  }
  cJSON_Delete(report);
}

static void trials_are_remembered(void **state) {
  md_context *context = *state;
  char path[64];
  snprintf(path, sizeof path, "/tmp/minidirac-cuda-tune-%d.json", (int)getpid());
  md_broadcast(context, path, sizeof path);
  md_gauge links[MD_MOST_LINK_FIELDS];
  md_geometry *g = make_problem(context, MD_ACTION_NAIVE, links);
  for (int run = 0; run < 2; run++) {
    MD_REQUIRE(context, md_tune_open(context, path));
    int chosen = 0; /* settings with more than one shape */
    for (int again = 0; again < 2; again++)
      for (int n = 0; n < SETTINGS; n++) {
        md_dirac dirac = make_operator(context, &settings[n], MD_ACTION_NAIVE, links);
        chosen += again && dirac.backend->shapes->count(dirac.state) > 1;
        md_dirac_destroy(&dirac);
      }
    assert_true(chosen >= SETTINGS / 2);
    require_choices(context, run == 0 ? "trial" : "file", chosen);
  }
  md_tune_close(context);
  md_barrier(context);
  if (context->rank == 0) unlink(path);
  md_test_destroy_links(MD_ACTION_NAIVE, links);
  md_geometry_destroy(g);
}

static struct CMUnitTest tests[] = {cmocka_unit_test(shapes_have_the_same_bits),
                                    cmocka_unit_test(trials_are_remembered)};
MD_RUN_GPU_TESTS(tests)
