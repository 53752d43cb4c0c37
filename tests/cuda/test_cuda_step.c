/* The steps that solvers and filters ask of the end of a hop, in the backends that fuse them,
 * against a hop and what is added afterwards. */
#include "base/device.h"
#include "dirac/backend.h"
#include "gpu_tests.h"
#include "lattice/fields/linear.h"

#include <string.h>

typedef struct setting {
  md_action action;
  const char *backend;
  md_precision precision, out;
  int n_rhs;
  bool mixes; /* with a field `before` */
} setting;

enum { ROWS = 3 };

typedef struct problem {
  md_context *context;
  md_geometry *geometry;
  md_gauge links[MD_MOST_LINK_FIELDS];
  md_dirac dirac;
  double step[ROWS][MD_MAX_RHS];
  void *on_device;                     /* the steps */
  md_field in, x, before, hopped, got; /* of the operator, but got: of the precision asked for */
} problem;

static void random_field(problem *p, int parity, int seed, md_precision precision, md_field *f) {
  md_field noise;
  md_field_shape shape = p->dirac.shape;
  shape.precision = precision;
  md_test_random_field(p->context, p->geometry, MD_DOUBLE, shape.n_rhs, parity, seed, &noise);
  MD_REQUIRE(p->context, md_field_create(p->context, p->geometry, &shape, parity, f));
  MD_REQUIRE(p->context, md_field_convert(p->context, f, &noise));
  md_field_destroy(&noise);
}

/* False where the operator does not fuse, as on the short local lattices of many ranks and on some
 * of the GPUs that are pretended. */
static bool set_up(problem *p, const setting *s, const int dims[MD_DIMS]) {
  const bool stacked = strcmp(s->backend, "tensor") == 0;
  const md_backend_request request = {.action = s->action,
                                      .precision = s->precision,
                                      .packing = stacked ? MD_PACKING_STACKED : MD_PACKING_NONE,
                                      .n_rhs = s->n_rhs,
                                      .antiperiodic = true};
  p->geometry = md_test_action_geometry(p->context, s->action, dims, false);
  md_test_random_links(p->context, p->geometry, s->action, 3, p->links);
  MD_REQUIRE(p->context, md_dirac_create(p->context, p->links, s->backend, &request, &p->dirac));
  if (!md_dirac_fuses(&p->dirac, s->out)) {
    assert_true(p->context->ranks > 2 || p->context->wishes.gpu.multiprocessors > 0);
    md_dirac_destroy(&p->dirac);
    md_test_destroy_links(s->action, p->links);
    md_geometry_destroy(p->geometry);
    return false;
  }
  for (int k = 0; k < ROWS; k++)
    for (int r = 0; r < s->n_rhs; r++) p->step[k][r] = 0.5 + 0.125 * r - 0.7 * k;
  MD_REQUIRE(p->context, md_device_allocate(p->context, sizeof p->step, "steps", &p->on_device));
  MD_REQUIRE(p->context, md_device_upload(p->context, p->on_device, p->step, sizeof p->step));
  random_field(p, MD_ODD, 5, s->precision, &p->in);
  random_field(p, MD_EVEN, 6, s->precision, &p->x);
  random_field(p, MD_EVEN, 7, s->precision, &p->before);
  random_field(p, MD_EVEN, 8, s->precision, &p->hopped);
  random_field(p, MD_EVEN, 7, s->out, &p->got); /* what the step is added to; as before */
  return true;
}

static void tear_down(problem *p, md_action action) {
  md_field *all[] = {&p->in, &p->x, &p->before, &p->hopped, &p->got};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) md_field_destroy(all[i]);
  md_device_free(p->on_device);
  md_dirac_destroy(&p->dirac);
  md_test_destroy_links(action, p->links);
  md_geometry_destroy(p->geometry);
}

/* got = what the hop makes of it; before = the same by a hop and sums. No norm is asked for, as the
 * filter of a search for modes does it. */
static void take_step(problem *p, const setting *s) {
  const double b = -1.5;
  const md_hop_end end = {.x = &p->x, .a = 0.7, .b = b};
  const md_hop_end combine = {.x = &p->x, .a = s->mixes ? 0.0 : 0.7, .b = b};
  md_hop_step step = {.by = p->on_device};
  md_field before = {0};
  if (s->mixes) {
    random_field(p, MD_EVEN, 7, s->out, &before);
    step.before = &before;
  }
  MD_REQUIRE(p->context, md_dirac_hop_step(p->context, &p->dirac, &p->got, &p->in, &end, &step));
  MD_REQUIRE(p->context, md_dirac_hop(p->context, &p->dirac, &p->hopped, &p->in, &combine));
  if (s->mixes) {
    md_linear_axpby(p->step[0], &p->hopped, p->step[2], &p->before);
    md_linear_axpy(p->step[1], &p->x, &p->before);
  } else {
    md_linear_axpy(p->step[0], &p->hopped, &p->before);
  }
  md_field_destroy(&before);
}

static void check(md_context *context, const setting *s, const int dims[MD_DIMS]) {
  problem p = {.context = context};
  md_field got, want;
  char what[100];
  if (!set_up(&p, s, dims)) return;
  take_step(&p, s);
  md_test_random_field(context, p.geometry, MD_DOUBLE, s->n_rhs, MD_EVEN, 1, &got);
  md_test_random_field(context, p.geometry, MD_DOUBLE, s->n_rhs, MD_EVEN, 2, &want);
  MD_REQUIRE(context, md_field_convert(context, &got, &p.got));
  MD_REQUIRE(context, md_field_convert(context, &want, &p.before));
  snprintf(what, sizeof what, "a step of %s, %s, %s into %s, %d rhs%s", s->backend,
           md_action_name(s->action), md_precision_name(s->precision), md_precision_name(s->out),
           s->n_rhs, s->mixes ? ", with a field before" : "");
  md_require_at_most(md_test_distance(context, &got, &want),
                     4.0 * md_precision_roundoff(s->precision), what);
  md_field_destroy(&got);
  md_field_destroy(&want);
  tear_down(&p, s->action);
}

static const md_action actions[] = {MD_ACTION_NAIVE, MD_ACTION_HISQ};

/* A lattice on which `tensor` marches, and one on which it gathers. */
static void tensor_takes_steps(void **state) {
  static const int dims[][MD_DIMS] = {{16, 16, 16, 32}, {8, 4, 4, 4}};
  for (int d = 0; d < 2; d++) {
    if (!md_test_fits(*state, dims[d][0], dims[d][1], dims[d][2], dims[d][3])) continue;
    for (int a = 0; a < 2; a++) {
      if (d == 1 && actions[a] == MD_ACTION_NAIVE) continue; /* gathered steps have two fields */
      for (int rhs = 8; rhs <= 16; rhs += 8) {
        check(*state, &(setting){actions[a], "tensor", MD_DOUBLE, MD_DOUBLE, rhs, false}, dims[d]);
        check(*state, &(setting){actions[a], "tensor", MD_DOUBLE, MD_DOUBLE, rhs, true}, dims[d]);
        check(*state, &(setting){actions[a], "tensor", MD_HALF, MD_SINGLE, rhs, false}, dims[d]);
        check(*state, &(setting){actions[a], "tensor", MD_HALF, MD_HALF, rhs, false}, dims[d]);
      }
    }
  }
}

static void cuda_takes_steps(void **state) {
  static const int dims[MD_DIMS] = {8, 4, 4, 6}, many[] = {1, 3, 8, 16};
  if (!md_test_fits(*state, dims[0], dims[1], dims[2], dims[3])) return;
  for (int a = 0; a < 2; a++)
    for (size_t i = 0; i < sizeof many / sizeof *many; i++) {
      for (int mixes = 0; mixes < 2; mixes++) {
        check(*state, &(setting){actions[a], "cuda", MD_DOUBLE, MD_DOUBLE, many[i], mixes}, dims);
        check(*state, &(setting){actions[a], "cuda", MD_SINGLE, MD_SINGLE, many[i], mixes}, dims);
      }
      check(*state, &(setting){actions[a], "cuda", MD_HALF, MD_SINGLE, many[i], false}, dims);
      check(*state, &(setting){actions[a], "cuda", MD_FIXED, MD_FIXED, many[i], false}, dims);
    }
}

static struct CMUnitTest tests[] = {cmocka_unit_test(tensor_takes_steps),
                                    cmocka_unit_test(cuda_takes_steps)};
MD_RUN_GPU_TESTS(tests)
