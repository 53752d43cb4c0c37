/* Matrices of the fifth dimension slice by slice against the same as dense matrices in double:
 * every storage type, one and many right-hand sides, both chiralities and their transposes,
 * factors, gamma_5 and results that are added. */
#include "dirac/wilson/wilson.h"
#include "support.h"

#include <stdio.h>

static const md_walls walls[] = {{2, 1.8, 1.0, 0.0}, {8, 1.8, 1.0, 0.0}, {5, 1.8, 1.5, 0.5},
                                 {3, 1.2, 0.6, 0.1}, {4, 1.0, 0.5, 2.5}, {4, 1.8, 1.0, 1.0}};
static const double masses[] = {0.1, 0.0, -0.3};
enum { WALLS = sizeof walls / sizeof *walls, MASSES = 3, MATRICES = 7 };

/* Fields of one shape: what is read, and what the result is added to. */
typedef struct trial {
  md_field in, out;
} trial;

static void make(md_context *context, const md_geometry *g, md_precision precision, int n_rhs,
                 int slices, const trial *values, trial *t) {
  const md_field_shape shape = {precision, MD_HOST, 24 * slices, n_rhs, true, false};
  MD_REQUIRE(context, md_field_create(context, g, &shape, MD_EVEN, &t->in));
  MD_REQUIRE(context, md_field_create(context, g, &shape, MD_EVEN, &t->out));
  MD_REQUIRE(context, md_field_convert(context, &t->in, &values->in));
  MD_REQUIRE(context, md_field_convert(context, &t->out, &values->out));
}

static void drop(trial *t) {
  MD_FIELDS_DESTROY(&t->in, &t->out);
}

/* A matrix of m, in a way that follows from `which`. */
static void apply(const md_wall_matrices *m, int which, bool dense, trial *t) {
  md_wall_matrix of[MATRICES] = {m->a, m->b,    m->a_inverse,
                                 m->k, m->site, m->of_x ? m->b : m->b_inverse};
  const int matrix = which % MATRICES, bits = which / MATRICES;
  const md_wall_way way = {
      .adjoint = bits & 1, .gamma5 = bits & 2, .add = bits & 4, .factor = -0.7};
  for (int k = 0; k < MATRICES; k++) of[k].dense = dense || of[k].dense;
  md_wall_apply(matrix < MATRICES - 1 ? &of[matrix] : NULL, &way, &t->in, &t->out);
}

static void compare(md_context *context, const md_geometry *g, md_precision precision, int n_rhs,
                    const md_walls *w, double mass) {
  const md_backend_request request = {.action = MD_ACTION_MOBIUS, .walls = *w};
  const md_field_shape shape = {MD_DOUBLE, MD_HOST, 24 * w->slices, n_rhs, true, false};
  md_wall_matrices m;
  trial random, mine, exact;
  MD_REQUIRE(context, md_wall_matrices_make(context, &request, mass, &m));
  md_test_random_shape(context, g, &shape, MD_EVEN, 1, &random.in);
  md_test_random_shape(context, g, &shape, MD_EVEN, 2, &random.out);
  for (int which = 0; which < 8 * MATRICES; which++) {
    char name[128];
    make(context, g, precision, n_rhs, w->slices, &random, &mine);
    make(context, g, MD_DOUBLE, n_rhs, w->slices, &mine, &exact);
    apply(&m, which, false, &mine);
    apply(&m, which, true, &exact);
    snprintf(name, sizeof name, "%s, %d rhs, %d slices, mass %g, way %d",
             md_precision_name(precision), n_rhs, w->slices, mass, which);
    md_require_at_most(md_test_distance(context, &mine.out, &exact.out),
                       4.0 * md_precision_roundoff(precision), name);
    drop(&mine);
    drop(&exact);
  }
  drop(&random);
}

static void slices_follow_from_each_other(void **state) {
  md_context *context = *state;
  md_geometry *g = md_test_geometry(context, 6, 2, 2, 2, false);
  for (int precision = 0; precision < MD_PRECISIONS; precision++)
    for (int n_rhs = 1; n_rhs < 4; n_rhs += 2)
      for (int k = 0; k < WALLS * MASSES; k++)
        compare(context, g, (md_precision)precision, n_rhs, &walls[k % WALLS], masses[k / WALLS]);
  md_geometry_destroy(g);
}

static struct CMUnitTest tests[] = {cmocka_unit_test(slices_follow_from_each_other)};
MD_RUN_TESTS(tests)
