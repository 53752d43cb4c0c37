/* pion LATTICE MASS: the pion correlator of a gauge configuration from a point source at the
 * origin. Valid C17 and C++17; runs under mpirun with any number of ranks that the lattice allows.
 */
#include <minidirac/minidirac.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct pion {
  double *correlator; /* [t] */
  md_geometry *geometry;
  md_gauge gauge;
  md_lattice_info info;
  md_dirac dirac;
  md_field b[MD_PARITIES], x[MD_PARITIES]; /* M x = b */
  md_solver_result result;
} pion;

static md_status measure(md_context *context, char **arguments, pion *p) {
  const char *path = arguments[1];
  char *end = NULL;
  const double mass = strtod(arguments[2], &end);
  if (end == arguments[2] || *end != 0)
    return md_fail(context, MD_INPUT, "MASS must be a number, got '%s'", arguments[2]);
  const int grid[MD_DIMS] = {0, 0, 0, 0}, origin[MD_DIMS] = {0, 0, 0, 0}; /* 0: chosen */
  MD_TRY(md_lattice_load(context, path, grid, false, &p->geometry, &p->gauge, &p->info));

  md_backend_request request = {MD_DOUBLE}; /* all else zero: whole links, no packing */
  request.n_rhs = 3;                        /* the colours of the source */
  request.antiperiodic = true;
  MD_TRY(md_dirac_create(context, &p->gauge, "auto", &request, &p->dirac));

  const md_field_shape shape = {MD_DOUBLE, MD_HOST, MD_FERMION_REALS, request.n_rhs, true};
  md_status status = MD_OK; /* allocations are local: agree before the next collective call */
  for (int parity = 0; parity < MD_PARITIES && status == MD_OK; parity++) {
    status = md_field_create(context, p->geometry, &shape, parity, &p->b[parity]);
    if (status == MD_OK)
      status = md_field_create(context, p->geometry, &shape, parity, &p->x[parity]);
  }
  const size_t times = (size_t)p->geometry->global[MD_T];
  p->correlator = (double *)calloc(times, sizeof(double));
  if (status == MD_OK && !p->correlator)
    status = md_fail_memory(context, times * sizeof(double), "correlator");
  MD_TRY(md_agree(context, status));

  md_source_point(p->b, origin);
  md_solver_request solve = {mass};
  solve.tolerance = 1e-10;
  solve.max_iterations = 10000;
  MD_TRY(md_solve_cg(context, &p->dirac, &p->dirac, &solve, p->x, p->b, &p->result));
  if (!p->result.converged)
    return md_fail(context, MD_UNREACHED, "residual %g after %d iterations",
                   p->result.relative_residual, p->result.iterations);
  MD_TRY(md_pion_correlator(context, p->x, p->correlator));
  for (size_t t = 0; t < times; t++) md_say(context, "%zu %.12e\n", t, p->correlator[t]);
  return MD_OK;
}

int main(int argc, char **argv) {
  md_context context;
  pion p = {NULL};
  if (md_context_open(&context, &argc, &argv) != MD_OK) {
    fprintf(stderr, "%s\n", context.message);
    return MD_ENVIRONMENT;
  }
  const md_status status = argc == 3
                               ? measure(&context, argv, &p)
                               : md_fail(&context, MD_INPUT, "usage: %s LATTICE MASS", argv[0]);
  if (status != MD_OK && context.rank == 0) fprintf(stderr, "%s\n", context.message);
  for (int parity = 0; parity < MD_PARITIES; parity++) {
    md_field_destroy(&p.b[parity]);
    md_field_destroy(&p.x[parity]);
  }
  free(p.correlator);
  md_solver_result_free(&p.result);
  md_dirac_destroy(&p.dirac);
  md_gauge_destroy(&p.gauge);
  md_geometry_destroy(p.geometry);
  md_lattice_info_destroy(&p.info);
  md_context_close(&context);
  return (int)status;
}
