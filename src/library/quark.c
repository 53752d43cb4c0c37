/* Dirac operators: hops, solves, multi-shift. */
#include "base/statistics.h"
#include "base/text.h"
#include "dirac/solvers/multishift.h"
#include "dirac/solvers/solver_options.h"
#include "lattice/gauge/smear.h"
#include "lattice/halo/halo.h"
#include "library/library.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

md_quark_request md_quark_defaults(void) {
  return (md_quark_request){.n_rhs = 1,
                            .backend = "auto",
                            .packing = "auto",
                            .precision = "double",
                            .inner = "none",
                            .reconstruct = "18",
                            .transport = "auto",
                            .boundary = "antiperiodic",
                            .height = NAN,
                            .b5 = NAN,
                            .c5 = NAN};
}

/* The fifth dimension of a request, with the words of the program where it does not fit. */
static md_status read_walls(md_quark *quark, const md_quark_request *r,
                            md_physics_options *physics) {
  md_context *context = quark->context;
  *physics = quark->links->physics;
  physics->slices = r->slices;
  physics->height = r->height;
  physics->b5 = r->b5;
  physics->c5 = r->c5;
  if (r->slices != 0 && (r->slices < MD_LEAST_SLICES || r->slices > MD_MOST_SLICES))
    return md_fail(context, MD_INPUT, "slices must be within %d..%d, or 0 for 12, got %d",
                   MD_LEAST_SLICES, MD_MOST_SLICES, r->slices);
  if (r->height <= 0.0 || r->height > 2.0 || fabs(r->b5) > 10.0 || fabs(r->c5) > 10.0)
    return md_fail(context, MD_INPUT,
                   "M5 must be above 0 and at most 2, b5 and c5 within -10..10, got %g, %g and %g",
                   r->height, r->b5, r->c5);
  return md_physics_check_walls(context, physics);
}

/* The words of a request, as those of the program's options. */
static md_status read_request(md_quark *quark, const md_quark_request *r) {
  md_context *context = quark->context;
  md_physics_options physics;
  int precision, inner, reconstruct, packing, periodic;
  MD_TRY(read_walls(quark, r, &physics));
  MD_TRY(md_word(context, "precision", &(MD_PRECISION_WORDS)[1], r->precision, &precision));
  MD_TRY(md_word(context, "inner", "none" MD_NARROW_PRECISION_WORDS, r->inner, &inner));
  MD_TRY(md_word(context, "reconstruct", &(MD_RECONSTRUCT_WORDS)[1], r->reconstruct, &reconstruct));
  MD_TRY(md_word(context, "packing", MD_PACKING_OR_AUTO_WORDS, r->packing, &packing));
  MD_TRY(md_word(context, "boundary", "antiperiodic|periodic", r->boundary, &periodic));
  MD_TRY(md_given(context, "the backend", r->backend));
  MD_TRY(md_given(context, "the transport", r->transport));
  if (r->n_rhs < 1 || r->n_rhs > MD_MAX_RHS)
    return md_fail(context, MD_INPUT,
                   "right-hand sides of an operator must be within 1..%d, got %d", MD_MAX_RHS,
                   r->n_rhs);
  if (!isfinite(r->imaginary_mu))
    return md_fail(context, MD_INPUT, "imaginary_mu must be finite, got %g", r->imaginary_mu);
  quark->mixed = inner > 0;
  if (quark->mixed && precision != MD_DOUBLE)
    return md_fail(context, MD_INPUT,
                   "an inner precision is for iterations below double, got precision %s",
                   r->precision);
  snprintf(quark->transport, sizeof quark->transport, "%s", r->transport);
  quark->request = (md_backend_request){
      .precision =
          (md_precision)(quark->mixed ? inner : precision), /* "none" is in double's place */
      .reconstruct = (md_reconstruct)reconstruct,
      .packing = (md_packing)md_packing_of(r->packing),
      .n_rhs = r->n_rhs,
      .antiperiodic = !periodic};
  md_physics_apply(&physics, &quark->request);
  quark->request.twist = (md_twist){.imaginary_mu = r->imaginary_mu, .flux = r->flux_quanta};
  quark->label = md_massless_label(&physics, &quark->request, r->boundary, quark->links->checksum);
  return MD_OK;
}

md_modes_label md_quark_label(const md_quark *quark, double mass) {
  md_modes_label label = quark->label;
  md_label_mass(&quark->request, mass, &label);
  return label;
}

md_status md_quark_create(md_improved *links, const md_quark_request *request, md_quark **quark) {
  if (!(*quark = md_handle(links->context, sizeof **quark))) return MD_ENVIRONMENT;
  md_quark *q = *quark;
  q->context = links->context;
  q->links = links;
  md_status status = read_request(q, request);
  const md_halo_request halo = {.transport = q->transport};
  if (status == MD_OK &&
      (q->request.reconstruct != MD_RECONSTRUCT_18 || q->request.precision == MD_FIXED) &&
      md_action_get(q->request.action)->special_unitary)
    status = md_gauge_check_thin(q->context, links->field);
  if (status == MD_OK)
    status = md_solver_operators(q->context, links->field, request->backend, &q->request, &halo,
                                 q->mixed, &q->dirac, &q->exact, &q->inner);
  if (status == MD_OK) return MD_OK;
  md_quark_destroy(q);
  *quark = NULL;
  return status;
}

void md_quark_destroy(md_quark *quark) {
  if (!quark) return;
  md_dirac_destroy(&quark->dirac);
  md_dirac_destroy(&quark->exact);
  md_dirac_destroy(&quark->inner);
  free(quark);
}

md_dirac *md_quark_exact(md_quark *quark) {
  return quark->exact.backend ? &quark->exact : &quark->dirac;
}

const char *md_quark_backend(const md_quark *quark) {
  return (quark->mixed ? &quark->inner : &quark->dirac)->backend->name;
}

md_status md_quark_fermion(md_quark *quark, md_fermion **field) {
  return md_fermion_make(quark->context, quark->dirac.geometry, &quark->dirac.shape, field);
}

/* Fields that the operator takes as they are. */
static md_status check_fields(const md_quark *quark, const md_fermion *out, const md_fermion *in) {
  const md_field_shape *shape = &quark->dirac.shape;
  const md_field *f = out->of;
  MD_TRY(md_fermion_alike(quark->context, out, in, true));
  if (out == in)
    return md_fail(quark->context, MD_INPUT, "an operator needs two fields, got one; copy it");
  if (f->geometry == quark->dirac.geometry && f->n_rhs == shape->n_rhs &&
      f->precision == shape->precision && f->space == shape->space &&
      f->components == shape->components)
    return MD_OK;
  return md_fail(
      quark->context, MD_INPUT,
      "the operator takes fields of its lattice with %d right-hand sides of %d reals a "
      "site in %s on the %s, got %d of %d in %s on the %s%s; md_quark_fermion makes them",
      shape->n_rhs, shape->components, md_precision_name(shape->precision),
      shape->space == MD_HOST ? "host" : "device", f->n_rhs, f->components,
      md_precision_name(f->precision), f->space == MD_HOST ? "host" : "device",
      f->geometry == quark->dirac.geometry ? "" : ", of another lattice");
}

md_status md_quark_hop(md_quark *quark, int parity, md_fermion *out, md_fermion *in) {
  md_context *context = quark->context;
  MD_TRY(check_fields(quark, out, in));
  if (parity != MD_EVEN && parity != MD_ODD)
    return md_fail(context, MD_INPUT, "a parity must be 0 (even) or 1 (odd), got %d", parity);
  return md_agree(
      context, md_dirac_hop(context, &quark->dirac, &out->of[parity], &in->of[1 - parity], NULL));
}

md_status md_quark_apply(md_quark *quark, double mass, md_fermion *out, md_fermion *in) {
  md_operator full = {0};
  MD_TRY(check_fields(quark, out, in));
  md_status status =
      md_agree(quark->context, md_full_create(quark->context, &quark->dirac, mass, &full));
  if (status == MD_OK)
    status =
        md_agree(quark->context, md_operator_apply(quark->context, &full, out->of, in->of, NULL));
  md_operator_destroy(&full);
  return status;
}

md_solve_request md_solve_defaults(double mass) {
  return (md_solve_request){.mass = mass,
                            .tolerance = 1e-10,
                            .max_iterations = 10000,
                            .solver = "cg",
                            .precondition = "none",
                            .degree = MD_SOLVER_DEGREE};
}

static md_status check_solve(md_quark *quark, const md_solve_request *r, const md_fermion *x,
                             const md_fermion *b) {
  md_context *context = quark->context;
  const md_dirac *d = &quark->dirac;
  MD_TRY(md_fermion_alike(context, x, b, false));
  if (b->of->geometry != d->geometry || b->of->n_rhs != d->shape.n_rhs)
    return md_fail(context, MD_INPUT,
                   "the operator takes fields of its lattice with %d right-hand sides, got %d%s",
                   d->shape.n_rhs, b->of->n_rhs,
                   b->of->geometry == d->geometry ? "" : ", and another lattice");
  const bool spins = md_action_has_spin(d->request.action);
  if (b->of->components != md_action_reals(d->request.action))
    return md_fail(context, MD_INPUT,
                   "action %s takes fields of %d reals a site, got %d; %s makes them",
                   md_action_name(d->request.action), md_action_reals(d->request.action),
                   b->of->components, spins ? "md_spinor_create" : "md_fermion_create");
  if (!(r->mass > (spins ? MD_LEAST_SPIN_MASS : 0.0) && r->mass <= 1e6))
    return md_fail(context, MD_INPUT, "the mass must be above %g and at most 1e6, got %g",
                   spins ? MD_LEAST_SPIN_MASS : 0.0, r->mass);
  if (!(r->tolerance > 0.0 && r->tolerance < 1.0) || r->max_iterations < 1)
    return md_fail(context, MD_INPUT,
                   "the tolerance must lie between 0 and 1 and iterations be 1 at least, got %g "
                   "and %d",
                   r->tolerance, r->max_iterations);
  const md_modes_label *have = r->modes ? &r->modes->label : NULL;
  const md_modes_label want = md_quark_label(quark, r->mass);
  if (have &&
      (strcmp(have->lattice_checksum, want.lattice_checksum) != 0 ||
       strcmp(have->action, want.action) != 0 || strcmp(have->boundary, want.boundary) != 0))
    return md_fail(context, MD_INPUT,
                   "modes must be of the links, action and boundary of the operator, '%s' and %s, "
                   "got '%s' and %s%s",
                   want.action, want.boundary, have->action, have->boundary,
                   strcmp(have->lattice_checksum, want.lattice_checksum) ? " of other links" : "");
  if (have && r->modes->converged == 0)
    return md_fail(context, MD_INPUT,
                   "modes to deflate with must have converged, got none of %d; search with more "
                   "restarts or a larger tolerance",
                   r->modes->modes.count);
  if (have && r->modes->modes.vectors->geometry != d->geometry)
    return md_fail(
        context, MD_INPUT,
        "modes must be found on the lattice of the operator, got those of another one of "
        "the same links; find or read them on it");
  if (r->guess && md_action_get(d->request.action)->walls)
    return md_fail(context, MD_INPUT, "action %s takes no guess, which would be of all slices",
                   md_action_name(d->request.action));
  return r->guess ? md_fermion_alike(context, b, r->guess, false) : MD_OK;
}

/* Those of the request that converged, borrowed. */
static md_modes converged_of(const md_solve_request *request) {
  md_modes modes = {0};
  if (request->modes) {
    modes = request->modes->modes;
    modes.count = request->modes->converged;
  }
  return modes;
}

static md_status read_solver(md_quark *quark, const md_solve_request *r, md_solver_request *solve) {
  md_context *context = quark->context;
  int solver, precondition;
  MD_TRY(md_word(context, "solver", &(MD_SOLVER_TABLE(MD_SOLVER_WORD))[1], r->solver, &solver));
  MD_TRY(md_word(context, "precondition", MD_PRECONDITION_WORDS, r->precondition, &precondition));
  if (precondition == MD_PRECONDITION_MODES && !r->modes)
    return md_fail(context, MD_INPUT, "precondition modes needs modes in the request, got none");
  if (precondition == MD_PRECONDITION_CHEBYSHEV &&
      (r->degree < 1 || r->degree > MD_PRECONDITION_MOST_DEGREE))
    return md_fail(context, MD_INPUT, "the degree must be within 1..%d, got %d",
                   MD_PRECONDITION_MOST_DEGREE, r->degree);
  solve->solver = md_solver_find(r->solver);
  solve->precondition = (md_precondition)precondition;
  solve->degree = r->degree;
  return MD_OK;
}

md_status md_quark_solve(md_quark *quark, const md_solve_request *request, md_fermion *x,
                         const md_fermion *b, md_solve_result *result) {
  md_context *context = quark->context;
  const md_modes modes = converged_of(request);
  md_solver_request solve = {.mass = request->mass,
                             .tolerance = request->tolerance,
                             .max_iterations = request->max_iterations,
                             .inner = quark->mixed ? &quark->inner : NULL,
                             .modes = modes.count > 0 ? &modes : NULL};
  md_solver_result found = {0};
  md_fermion copy = {0}, x_copy = {0}, b_copy = {0};
  md_field *x_of = x->of, *b_of = (md_field *)b->of;
  const bool walls = md_action_get(quark->request.action)->walls; /* reads and writes the host's */
  *result = (md_solve_result){0};
  MD_TRY(check_solve(quark, request, x, b));
  md_status status = read_solver(quark, request, &solve);
  if (status == MD_OK && request->guess) {
    md_field *guess;
    status = md_fermion_doubles(request->guess, &copy, &guess);
    solve.guess = guess;
  }
  if (status == MD_OK && walls) status = md_fermion_blank(x, &x_copy, &x_of);
  if (status == MD_OK && walls) status = md_fermion_doubles(b, &b_copy, &b_of);
  if (status == MD_OK)
    status = md_solve_cg(context, &quark->dirac, md_quark_exact(quark), &solve, x_of, b_of, &found);
  if (status == MD_OK) status = md_fermion_finish(x, &x_copy);
  md_fermion_release(&x_copy);
  md_fermion_release(&b_copy);
  md_fermion_release(&copy);
  *result = (md_solve_result){.converged = found.converged,
                              .iterations = found.iterations,
                              .n_rhs = found.n_rhs,
                              .residual = found.relative_residual,
                              .seconds = found.seconds,
                              .gflops = found.gflops,
                              .residuals = found.residuals,
                              .rhs_iterations = found.rhs_iterations,
                              .history = found.history};
  return status;
}

void md_solve_result_free(md_solve_result *result) {
  MD_FREE(result->residuals, result->rhs_iterations, result->history);
  *result = (md_solve_result){0};
}

/* Even sites of a field for the solver: its own, or those of a copy. */
typedef struct even_sites {
  md_fermion copy[MD_MAX_SHIFTS + 1];
  md_field even[MD_MAX_SHIFTS]; /* descriptors, borrowed */
} even_sites;

static md_status solve_shifts(md_quark *quark, const md_multishift_request *request,
                              md_fermion *const *x, const md_fermion *b, double *residuals,
                              even_sites *e, bool *solved) {
  md_multishift_result found = {0};
  md_field *of;
  for (int k = 0; k < request->n_shifts; k++) {
    MD_TRY(md_fermion_doubles(x[k], &e->copy[k], &of));
    e->even[k] = of[MD_EVEN];
  }
  MD_TRY(md_fermion_doubles(b, &e->copy[MD_MAX_SHIFTS], &of));
  md_status status = md_solve_multishift(quark->context, &quark->dirac, md_quark_exact(quark),
                                         request, e->even, &of[MD_EVEN], &found);
  double worst = 0.0;
  *solved = status == MD_OK;
  for (int k = 0; k < found.n_shifts; k++) {
    residuals[k] = found.shifts[k].relative_residual;
    md_raise(&worst, residuals[k]);
  }
  if (status == MD_OK && !found.converged)
    status = md_fail(quark->context, MD_UNREACHED,
                     "the true residual of every shift must be at most %g, got %.3e after %d "
                     "iteration%s; raise max_iterations or tolerance",
                     request->tolerance, worst, found.iterations, md_plural(found.iterations));
  md_multishift_result_free(&found);
  return status;
}

md_status md_quark_multishift(md_quark *quark, const md_solve_request *request, int count,
                              const double *shifts, md_fermion *const *x, const md_fermion *b,
                              double *residuals) {
  md_context *context = quark->context;
  const md_modes modes = converged_of(request);
  const md_multishift_request all = {.mass = request->mass,
                                     .shifts = shifts,
                                     .n_shifts = count,
                                     .tolerance = request->tolerance,
                                     .max_iterations = request->max_iterations,
                                     .refine = true,
                                     .modes = modes.count > 0 ? &modes : NULL};
  if (quark->mixed)
    return md_fail(context, MD_INPUT,
                   "multi-shift iterates in one precision; make an operator with precision %s and "
                   "no inner one",
                   md_precision_name(quark->inner.request.precision));
  if (count < 1 || count > MD_MAX_SHIFTS)
    return md_fail(context, MD_INPUT, "shifts must be 1 to %d, got %d", MD_MAX_SHIFTS, count);
  for (int k = 0; k < count; k++) {
    MD_TRY(check_solve(quark, request, x[k], b));
    if (!isfinite(shifts[k]))
      return md_fail(context, MD_INPUT, "shifts must be finite, got %g", shifts[k]);
    for (int j = 0; j < k; j++)
      if (x[j] == x[k])
        return md_fail(context, MD_INPUT,
                       "each shift needs a field of its own, got one for shifts %g and %g",
                       shifts[j], shifts[k]);
  }
  even_sites *e = md_handle(context, sizeof *e);
  if (!e) return MD_ENVIRONMENT;
  bool solved = false;
  md_status status = solve_shifts(quark, &all, x, b, residuals, e, &solved);
  for (int k = 0; k < count; k++) {
    const md_status taken = solved ? md_fermion_finish(x[k], &e->copy[k]) : MD_OK;
    if (taken != MD_OK) status = taken, solved = false;
    md_fermion_release(&e->copy[k]);
  }
  md_fermion_release(&e->copy[MD_MAX_SHIFTS]);
  free(e);
  return status;
}
