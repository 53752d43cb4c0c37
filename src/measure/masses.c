#include "measure/masses.h"
#include "base/interrupt.h"
#include "base/memory.h"
#include "base/memory_need.h"
#include "dirac/backend.h"
#include "dirac/solvers/multishift.h"
#include "lattice/fields/linear.h"

#include <math.h>
#include <string.h>

/* True when the operator itself decides: nothing of it is rounded or reconstructed. */
static bool is_exact(const md_backend_request *request) {
  return request->precision == MD_DOUBLE && request->reconstruct == MD_RECONSTRUCT_18;
}

static md_dirac *exact_of(md_propagator *p) {
  return p->exact.backend ? &p->exact : &p->dirac;
}

static md_status create_operators(md_context *context, const md_study_links *links, int width,
                                  md_propagator *p) {
  const md_study_options *o = &p->s->options;
  const md_physics_options physics = md_study_physics(o, links->action);
  md_backend_request request = o->request;
  request.n_rhs = width;
  md_physics_apply(&physics, &request);
  if (o->mixed) {
    MD_TRY(md_dirac_create_over(context, links->field, o->backend, &request, &o->halo, &p->inner));
    return md_dirac_create_exact(context, links->field, p->inner.backend->name, &request, &o->halo,
                                 &p->dirac);
  }
  MD_TRY(md_dirac_create_over(context, links->field, o->backend, &request, &o->halo, &p->dirac));
  if (is_exact(&request)) return MD_OK;
  return md_dirac_create_exact(context, links->field, p->dirac.backend->name, &request, &o->halo,
                               &p->exact);
}

md_status md_propagator_create(md_context *context, const md_study_links *links, int width,
                               md_propagator *p) {
  const md_field_shape shape = {MD_DOUBLE, MD_HOST, MD_FERMION_REALS, width, true};
  const md_geometry *geometry = links->field[0].geometry;
  p->modes = links->modes;
  MD_TRY(create_operators(context, links, width, p));
  md_status status = MD_OK;
  for (int k = 0; k < MD_PARITIES && status == MD_OK; k++) {
    status = md_field_create(context, geometry, &shape, k, &p->b[k]);
    if (status == MD_OK) status = md_field_create(context, geometry, &shape, k, &p->x[k]);
  }
  return md_agree(context, status);
}

void md_propagator_destroy(md_propagator *p) {
  for (int k = 0; k < MD_PARITIES; k++) {
    md_field_destroy(&p->b[k]);
    md_field_destroy(&p->x[k]);
  }
  md_dirac_destroy(&p->dirac);
  md_dirac_destroy(&p->exact);
  md_dirac_destroy(&p->inner);
}

/* How a solve that did not converge ends; it ran out of iterations, or stalled. */
static md_status unreached(md_context *context, const md_propagator *p, bool interrupted,
                           bool ran_out, double mass, double residual) {
  if (interrupted)
    return md_fail(context, MD_ENVIRONMENT, "%s ended a solve", md_interrupt_name(context));
  return md_fail(context, MD_UNREACHED,
                 "the true residual must be at most %g, %s %.3e at mass %g; raise %s--tol%s",
                 p->s->options.tolerance, ran_out ? "got" : "stalled at", residual, mass,
                 ran_out ? "--max-iter or " : "",
                 p->s->options.request.precision == MD_DOUBLE || p->s->options.mixed
                     ? ""
                     : ", or use --precision double with --inner");
}

md_status md_propagate_apart(md_context *context, md_propagator *p) {
  const md_study_options *o = &p->s->options;
  for (int m = 0; m < o->masses.count; m++) {
    const md_solver_request request = {.mass = o->masses.value[m],
                                       .tolerance = o->tolerance,
                                       .max_iterations = (int)o->max_iterations,
                                       .inner = o->mixed ? &p->inner : NULL,
                                       .modes = p->modes,
                                       /* of the mass before: x is read before it is assigned */
                                       .guess = m > 0 ? &p->x[MD_EVEN] : NULL,
                                       .block = strcmp(o->solver, "block") == 0};
    md_solver_result result;
    const md_memory_need mark = md_memory_mark(context);
    md_status status = md_solve_cg(context, &p->dirac, exact_of(p), &request, p->x, p->b, &result);
    md_memory_return_to(context, mark);
    if (status == MD_OK && !result.converged)
      status = unreached(context, p, result.interrupted,
                         !result.stalled && result.iterations >= request.max_iterations,
                         request.mass, result.relative_residual);
    if (status == MD_OK && !md_counts(context))
      status = p->observe(p->user, m, result.residuals, result.rhs_iterations);
    md_solver_result_free(&result);
    MD_TRY(status);
  }
  return MD_OK;
}

/* Multi-shift of one batch. */
typedef struct family {
  md_field b[MD_PARITIES], x[MD_PARITIES], work[MD_PARITIES]; /* of the exact operator */
  md_field source;                                            /* host: b_e, then Deo b_o */
  md_field y[MD_LIST_MOST], z[MD_LIST_MOST]; /* host, by mass; z where there is one */
  bool even, odd;                            /* whether b has such parts */
  double b_norm[MD_MAX_RHS], source_norm[MD_PARITIES][MD_MAX_RHS];
  int iterations;
  bool ran_out; /* of iterations, so that more would help */
} family;

static void family_destroy(family *f) {
  for (int k = 0; k < MD_PARITIES; k++) {
    md_field_destroy(&f->b[k]);
    md_field_destroy(&f->x[k]);
    md_field_destroy(&f->work[k]);
  }
  md_field_destroy(&f->source);
  for (int m = 0; m < MD_LIST_MOST; m++) {
    md_field_destroy(&f->y[m]);
    md_field_destroy(&f->z[m]);
  }
}

static md_status family_create(md_context *context, md_propagator *p, family *f) {
  const int masses = p->s->options.masses.count;
  const md_field *host = &p->b[MD_EVEN];
  const md_field_shape shape = {MD_DOUBLE, MD_HOST, MD_FERMION_REALS, host->n_rhs, true};
  for (int k = 0; k < MD_PARITIES; k++) {
    MD_TRY(md_dirac_field(context, exact_of(p), k, &f->b[k]));
    MD_TRY(md_dirac_field(context, exact_of(p), k, &f->x[k]));
    MD_TRY(md_dirac_field(context, exact_of(p), k, &f->work[k]));
    MD_TRY(md_field_convert(context, &f->b[k], &p->b[k]));
  }
  MD_TRY(md_field_create(context, host->geometry, &shape, MD_EVEN, &f->source));
  for (int m = 0; m < masses; m++) {
    MD_TRY(md_field_create(context, host->geometry, &shape, MD_EVEN, &f->y[m]));
    MD_TRY(md_field_create(context, host->geometry, &shape, MD_EVEN, &f->z[m]));
  }
  return MD_OK;
}

/* Norms of b_e, Deo b_o and b; work[even] = Deo b_o. */
static md_status measure_sources(md_context *context, md_propagator *p, family *f) {
  double odd[MD_MAX_RHS];
  MD_TRY(md_dirac_hop(context, exact_of(p), &f->work[MD_EVEN], &f->b[MD_ODD], NULL));
  MD_TRY(md_linear_norm2(context, &f->b[MD_EVEN], f->source_norm[MD_EVEN]));
  MD_TRY(md_linear_norm2(context, &f->work[MD_EVEN], f->source_norm[MD_ODD]));
  MD_TRY(md_linear_norm2(context, &f->b[MD_ODD], odd));
  for (int r = 0; r < p->b[0].n_rhs; r++) {
    f->even = f->even || f->source_norm[MD_EVEN][r] > 0.0;
    f->odd = f->odd || f->source_norm[MD_ODD][r] > 0.0;
    f->b_norm[r] = sqrt(f->source_norm[MD_EVEN][r] + odd[r]);
    for (int k = 0; k < MD_PARITIES; k++) f->source_norm[k][r] = sqrt(f->source_norm[k][r]);
  }
  return MD_OK;
}

static double lowest_mass(const md_study_options *o) {
  double lowest = o->masses.value[0];
  for (int m = 1; m < o->masses.count; m++) lowest = fmin(lowest, o->masses.value[m]);
  return lowest;
}

/* With residuals rho of y and sigma of z, b - M x is rho - sigma / m on even sites. */
static double tolerance_of(const md_propagator *p, const family *f) {
  const md_study_options *o = &p->s->options;
  double tolerance = o->tolerance;
  for (int r = 0; r < p->used; r++)
    if (f->b_norm[r] > 0.0)
      tolerance = fmin(
          tolerance, o->tolerance * f->b_norm[r] /
                         (f->source_norm[MD_EVEN][r] + f->source_norm[MD_ODD][r] / lowest_mass(o)));
  return tolerance;
}

static md_status solve_family(md_context *context, md_propagator *p, family *f, md_field *x) {
  const md_study_options *o = &p->s->options;
  const double lowest = lowest_mass(o);
  double shifts[MD_LIST_MOST];
  md_multishift_result result;
  for (int m = 0; m < o->masses.count; m++)
    shifts[m] = (o->masses.value[m] - lowest) * (o->masses.value[m] + lowest);
  const md_multishift_request request = {.mass = lowest,
                                         .shifts = shifts,
                                         .n_shifts = o->masses.count,
                                         .tolerance = tolerance_of(p, f),
                                         .max_iterations = (int)o->max_iterations,
                                         .refine = true};
  md_status status =
      md_solve_multishift(context, &p->dirac, exact_of(p), &request, x, &f->source, &result);
  if (status == MD_OK && result.interrupted && !result.converged)
    status = unreached(context, p, true, false, lowest, NAN);
  for (int k = 0; k < result.n_shifts && status == MD_OK; k++)
    f->ran_out = f->ran_out || result.iterations >= request.max_iterations ||
                 result.shifts[k].refine_iterations >= request.max_iterations;
  if (status == MD_OK && result.iterations > f->iterations) f->iterations = result.iterations;
  md_multishift_result_free(&result);
  md_memory_release(); /* of its fields, before the next family or the assembly has its own */
  return status;
}

/* x = M^-1 b for mass m from y and z, on the exact operator's fields and in p->x. */
static md_status assemble(md_context *context, md_propagator *p, family *f, int m) {
  const double mass = p->s->options.masses.value[m];
  double scale[MD_MAX_RHS], minus[MD_MAX_RHS];
  for (int r = 0; r < p->b[0].n_rhs; r++) {
    scale[r] = mass;
    minus[r] = -1.0;
  }
  MD_TRY(md_agree(context, md_field_convert(context, &f->x[MD_EVEN], &f->y[m])));
  MD_TRY(md_agree(context, md_field_convert(context, &f->work[MD_EVEN], &f->z[m])));
  md_linear_axpby(minus, &f->work[MD_EVEN], scale, &f->x[MD_EVEN]);
  const md_hop_end rest = {.x = &f->b[MD_ODD], .a = 1.0 / mass, .b = -1.0 / mass};
  MD_TRY(md_dirac_hop(context, exact_of(p), &f->x[MD_ODD], &f->x[MD_EVEN], &rest));
  for (int k = 0; k < MD_PARITIES; k++)
    MD_TRY(md_agree(context, md_field_convert(context, &p->x[k], &f->x[k])));
  return MD_OK;
}

/* norm(b - M x) / norm(b); 0 for a source of zeros. Returns the largest in *worst. */
static md_status true_residuals(md_context *context, md_propagator *p, family *f, int m,
                                double *residuals, double *worst) {
  double minus[MD_MAX_RHS], odd[MD_MAX_RHS];
  const int n = p->b[0].n_rhs;
  for (int r = 0; r < n; r++) minus[r] = -1.0;
  MD_TRY(md_dirac_m(context, exact_of(p), p->s->options.masses.value[m], f->work, f->x));
  for (int k = 0; k < MD_PARITIES; k++) md_linear_xpby(&f->b[k], minus, &f->work[k]);
  MD_TRY(md_linear_norm2(context, &f->work[MD_EVEN], residuals));
  MD_TRY(md_linear_norm2(context, &f->work[MD_ODD], odd));
  *worst = 0.0;
  for (int r = 0; r < n; r++) {
    residuals[r] = f->b_norm[r] > 0.0 ? sqrt(residuals[r] + odd[r]) / f->b_norm[r] : 0.0;
    if (!(residuals[r] <= *worst)) *worst = residuals[r];
  }
  return MD_OK;
}

static md_status solve_all(md_context *context, md_propagator *p, family *f) {
  const md_study_options *o = &p->s->options;
  double residuals[MD_MAX_RHS], worst;
  int iterations[MD_MAX_RHS];
  MD_TRY(measure_sources(context, p, f));
  if (f->odd) {
    MD_TRY(md_agree(context, md_field_convert(context, &f->source, &f->work[MD_EVEN])));
    MD_TRY(solve_family(context, p, f, f->z));
  }
  if (f->even) {
    MD_TRY(md_agree(context, md_field_convert(context, &f->source, &p->b[MD_EVEN])));
    MD_TRY(solve_family(context, p, f, f->y));
  }
  for (int r = 0; r < p->b[0].n_rhs; r++) iterations[r] = f->iterations;
  for (int m = 0; m < o->masses.count; m++) {
    MD_TRY(assemble(context, p, f, m));
    MD_TRY(true_residuals(context, p, f, m, residuals, &worst));
    if (!(worst <= o->tolerance))
      return unreached(context, p, false, f->ran_out, o->masses.value[m], worst);
    MD_TRY(p->observe(p->user, m, residuals, iterations));
  }
  return MD_OK;
}

md_status md_propagate_together(md_context *context, md_propagator *p) {
  family f = {0};
  md_status status = md_agree(context, family_create(context, p, &f));
  if (status == MD_OK)
    status = md_counts(context) ? solve_family(context, p, &f, f.y) : solve_all(context, p, &f);
  family_destroy(&f);
  return status;
}
