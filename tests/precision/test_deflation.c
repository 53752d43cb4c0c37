/* The deflation space: conjugate directions of unit A-norm that span what was put in, of which the
 * lowest Rayleigh quotients are kept; a projection that does not change s = r + A x. */
#include "dirac/solvers/deflation.h"
#include "lattice/fields/linear.h"
#include "problem.h"

#include <math.h>

enum { KEPT = 8, N_RHS = 3, IDLE = 1 }; /* right-hand side IDLE is done: all zero */
static const double mass = 0.1;

typedef struct fixture {
  problem p;
  md_dirac dirac; /* double */
  md_field v, a_v, work, r, x;
  md_deflation space;
} fixture;

static void make(md_context *context, fixture *f) {
  problem_make(context, N_RHS, &f->p);
  problem_dirac(context, &f->p, "cpu_ref", MD_DOUBLE, &f->dirac);
  md_field_shape shape = f->dirac.shape;
  MD_REQUIRE(context, md_dirac_field(context, &f->dirac, MD_EVEN, &f->v));
  MD_REQUIRE(context, md_dirac_field(context, &f->dirac, MD_EVEN, &f->a_v));
  MD_REQUIRE(context, md_dirac_field(context, &f->dirac, MD_ODD, &f->work));
  shape.precision = MD_SINGLE;
  MD_REQUIRE(context, md_field_create(context, f->p.g, &shape, MD_EVEN, &f->r));
  MD_REQUIRE(context, md_field_create(context, f->p.g, &shape, MD_EVEN, &f->x));
  MD_REQUIRE(context, md_deflation_create(context, f->p.g, &shape, KEPT, 5.0, &f->space));
}

static void drop(fixture *f) {
  md_field *fields[] = {&f->v, &f->a_v, &f->work, &f->r, &f->x};
  for (int i = 0; i < 5; i++) md_field_destroy(fields[i]);
  md_deflation_destroy(&f->space);
  md_dirac_destroy(&f->dirac);
  problem_drop(&f->p);
}

/* v = a random field by seed, after `steps` of power iteration on 5 - A, which favours low modes;
 * a_v = A v. */
static void direction(md_context *context, fixture *f, uint64_t seed, int steps) {
  double five[N_RHS], minus[N_RHS], idle[N_RHS], none[N_RHS] = {0};
  md_field other;
  md_test_random_field(context, f->p.g, MD_DOUBLE, N_RHS, MD_EVEN, seed, &other);
  md_linear_copy(&f->v, &other);
  md_field_destroy(&other);
  for (int r = 0; r < N_RHS; r++) five[r] = 1.0, minus[r] = -0.2, idle[r] = r == IDLE ? 0.0 : 1.0;
  md_linear_axpby(idle, &f->v, none, &f->v);
  for (int i = 0; i <= steps; i++) {
    MD_REQUIRE(context, md_dirac_mdag_m(context, &f->dirac, mass, &f->a_v, &f->v, &f->work));
    if (i < steps) md_linear_axpby(minus, &f->a_v, five, &f->v);
  }
}

static void insert(md_context *context, fixture *f) {
  md_deflation *d = &f->space;
  MD_REQUIRE(context, md_field_convert(context, &d->w[d->count], &f->v));
  MD_REQUIRE(context, md_field_convert(context, &d->a_w[d->count], &f->a_v));
  MD_REQUIRE(context, md_deflation_insert(context, d));
}

static void check_space(md_context *context, fixture *f) {
  const md_deflation *d = &f->space;
  double dots[2 * N_RHS], w[N_RHS];
  for (int i = 0; i < d->count; i++) {
    for (int j = 0; j < d->count; j++) {
      MD_REQUIRE(context, md_linear_dots(context, 1, &d->w[i], &d->a_w[j], NULL, dots));
      for (int r = 0; r < N_RHS; r++) {
        const double expected = i == j && r != IDLE ? 1.0 : 0.0;
        md_require_at_most(fabs(dots[r] - expected), 1e-4, "<w_i, A w_j>");
        md_require_at_most(fabs(dots[N_RHS + r]), 1e-4, "Im <w_i, A w_j>");
      }
    }
    MD_REQUIRE(context, md_field_convert(context, &f->v, &d->w[i]));
    MD_REQUIRE(context, md_dirac_mdag_m(context, &f->dirac, mass, &f->a_v, &f->v, &f->work));
    MD_REQUIRE(context, md_field_convert(context, &f->r, &f->a_v));
    md_require_at_most(md_test_distance(context, &f->r, &d->a_w[i]), 1e-4, "a_w = A w");
    MD_REQUIRE(context, md_linear_norm2(context, &d->w[i], NULL, w));
    for (int r = 0; r < N_RHS; r++)
      md_require_at_most(fabs(creal(d->gram[r][i][i]) - w[r]), 1e-4 * w[r] + 1e-30, "Gram matrix");
  }
}

static void directions_stay_conjugate(void **state) {
  md_context *context = *state;
  fixture f;
  make(context, &f);
  for (int i = 0; i < KEPT + 4; i++) {
    direction(context, &f, 50 + (uint64_t)i, 0);
    insert(context, &f);
    assert_int_equal(f.space.count, i < KEPT ? i + 1 : KEPT);
  }
  check_space(context, &f);
  drop(&f);
}

/* <w_i, r> = 0 afterwards, and r + A x is what it was. */
static void projection_keeps_the_system(void **state) {
  md_context *context = *state;
  fixture f;
  make(context, &f);
  for (int i = 0; i < 3; i++) {
    direction(context, &f, 60 + (uint64_t)i, 4);
    insert(context, &f);
  }
  md_field before, after;
  md_test_random_field(context, f.p.g, MD_DOUBLE, N_RHS, MD_EVEN, 70, &before);
  md_test_random_field(context, f.p.g, MD_DOUBLE, N_RHS, MD_EVEN, 71, &after);
  MD_REQUIRE(context, md_field_convert(context, &f.r, &before));
  md_linear_zero(&f.x);
  MD_REQUIRE(context, md_deflation_project(context, &f.space, &f.r, &f.x));
  double dots[2 * N_RHS], one[N_RHS] = {1.0, 1.0, 1.0}, size[N_RHS];
  MD_REQUIRE(context, md_linear_norm2(context, &f.r, NULL, size));
  for (int i = 0; i < f.space.count; i++) {
    MD_REQUIRE(context, md_linear_dots(context, 1, &f.space.w[i], &f.r, NULL, dots));
    for (int r = 0; r < N_RHS; r++)
      md_require_at_most(hypot(dots[r], dots[N_RHS + r]), 1e-5 * sqrt(size[r]), "<w, r>");
  }
  MD_REQUIRE(context, md_field_convert(context, &f.v, &f.x));
  MD_REQUIRE(context, md_dirac_mdag_m(context, &f.dirac, mass, &f.a_v, &f.v, &f.work));
  MD_REQUIRE(context, md_field_convert(context, &after, &f.r));
  md_linear_axpy(one, &f.a_v, &after);
  md_require_at_most(md_test_distance(context, &after, &before), 1e-5, "r + A x");
  md_field_destroy(&before);
  md_field_destroy(&after);
  drop(&f);
}

/* Low modes go in first, then noise: the lowest Rayleigh quotient in the space stays. */
static void low_modes_stay(void **state) {
  md_context *context = *state;
  fixture f;
  double a_norm[N_RHS], norm[N_RHS], kept[N_RHS] = {0};
  make(context, &f);
  direction(context, &f, 80, 60);
  MD_REQUIRE(context, md_linear_dot(context, &f.v, &f.a_v, NULL, a_norm));
  MD_REQUIRE(context, md_linear_norm2(context, &f.v, NULL, norm));
  insert(context, &f);
  for (int i = 0; i < KEPT + 6; i++) {
    direction(context, &f, 90 + (uint64_t)i, 0);
    insert(context, &f);
  }
  /* of directions with <w, A w> = 1 the traces of the Gram matrix hold <w, w>, at least the
   * largest one's */
  for (int i = 0; i < f.space.count; i++) {
    double w[N_RHS];
    MD_REQUIRE(context, md_linear_norm2(context, &f.space.w[i], NULL, w));
    for (int r = 0; r < N_RHS; r++) kept[r] += w[r];
  }
  for (int r = 0; r < N_RHS; r++)
    if (r != IDLE) assert_true(kept[r] >= norm[r] / a_norm[r]);
  check_space(context, &f);
  drop(&f);
}

static struct CMUnitTest tests[] = {cmocka_unit_test(directions_stay_conjugate),
                                    cmocka_unit_test(projection_keeps_the_system),
                                    cmocka_unit_test(low_modes_stay)};
MD_RUN_TESTS(tests)
