#include "wilson_support.h"
#include "lattice/fields/linear.h"
#include "lattice/fields/source.h"

const wilson_kind wilson_kinds[WILSON_KINDS] = {
    {MD_ACTION_WILSON, {0}, 0.1},
    {MD_ACTION_WILSON, {0}, -0.2},
    {MD_ACTION_DOMAINWALL, {5, 1.8, 1.0, 0.0}, 0.1},
    {MD_ACTION_MOBIUS, {4, 1.8, 1.5, 0.5}, 0.1},
    {MD_ACTION_MOBIUS, {2, 1.2, 0.6, 0.1}, 0.0},
    {MD_ACTION_MOBIUS, {3, 1.4, 1.3, 0.7}, -0.3},
    {MD_ACTION_MOBIUS, {4, 1.8, 1.0, 1.0}, 0.1}, /* B is nearly singular, */
    {MD_ACTION_MOBIUS, {4, 1.8, 0.0, 1.2}, 0.1}, /* or X alone */
};

void wilson_make(md_context *context, const int dims[MD_DIMS], const wilson_kind *kind,
                 wilson_problem *p) {
  const md_backend_request request = {
      .n_rhs = 1, .antiperiodic = true, .action = kind->action, .walls = kind->walls};
  *p = (wilson_problem){.g = md_test_geometry(context, dims[0], dims[1], dims[2], dims[3], false)};
  md_test_random_gauge(context, p->g, 11, &p->gauge);
  MD_REQUIRE(context, md_dirac_create(context, &p->gauge, "cpu_simd", &request, &p->dirac));
  MD_REQUIRE(context, md_full_create(context, &p->dirac, kind->mass, &p->full));
}

void wilson_drop(wilson_problem *p) {
  md_operator_destroy(&p->full);
  md_dirac_destroy(&p->dirac);
  md_gauge_destroy(&p->gauge);
  md_geometry_destroy(p->g);
}

void wilson_fields(md_context *context, const wilson_problem *p, uint64_t seed,
                   md_field f[MD_PARITIES]) {
  for (int k = 0; k < MD_PARITIES; k++)
    MD_REQUIRE(context, md_dirac_field(context, &p->dirac, k, &f[k]));
  if (seed > 0) md_source_gaussian(f, seed);
}

void wilson_destroy(md_field f[MD_PARITIES]) {
  for (int k = 0; k < MD_PARITIES; k++) md_field_destroy(&f[k]);
}

void wilson_dot(md_context *context, int count, const md_field *a, const md_field *b,
                double value[2]) {
  double part[2];
  value[0] = value[1] = 0.0;
  for (int k = 0; k < count; k++) {
    MD_REQUIRE(context, md_linear_dots(context, 1, &a[k], &b[k], NULL, part));
    for (int i = 0; i < 2; i++) value[i] += part[i];
  }
}
