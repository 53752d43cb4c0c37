/* Eigenvectors of -Deo Doe, or of S S^dag: found, and in files. */
#include "dirac/eigen/eigen.h"
#include "base/text.h"
#include "dirac/backend.h"
#include "io/modes_file.h"
#include "io/vectors.h"
#include "lattice/fields/linear.h"
#include "lattice/halo/halo.h"
#include "library/library.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

md_eigen_search md_eigen_defaults(int modes) {
  return (md_eigen_search){
      .modes = modes, .tolerance = 1e-8, .max_restarts = 1000, .seed = 1, .mass = NAN};
}

static bool has_spin(const md_quark *quark) {
  return md_action_has_spin(quark->request.action);
}

static md_status check_mass(const md_quark *quark, double mass) {
  const bool spin = has_spin(quark);
  if (spin == isnan(mass))
    return md_fail(quark->context, MD_INPUT,
                   spin ? "action %s needs a mass, on which its modes depend"
                        : "action %s takes no mass: its modes are those of all masses",
                   quark->links->physics.action);
  if (!spin || (mass > MD_LEAST_SPIN_MASS && mass <= MD_MOST_MASS)) return MD_OK;
  return md_fail(quark->context, MD_INPUT, "the mass must be above %g and at most %g, got %g",
                 MD_LEAST_SPIN_MASS, MD_MOST_MASS, mass);
}

static md_status check_search(md_quark *quark, const md_eigen_search *r) {
  md_context *context = quark->context;
  const int64_t unknowns = md_eigen_unknowns(quark->dirac.geometry, quark->dirac.shape.components);
  const long long most = unknowns < MD_EIGEN_MOST ? unknowns : MD_EIGEN_MOST;
  if (r->modes < 1 || r->modes > most)
    return md_fail(context, MD_INPUT, "modes must lie in 1 to %lld on this lattice, got %d", most,
                   r->modes);
  if (r->block < 0 || r->block > MD_MAX_RHS || r->max_restarts < 1)
    return md_fail(context, MD_INPUT,
                   "the block must be within 0..%d and restarts be 1 at least, got %d and %d",
                   MD_MAX_RHS, r->block, r->max_restarts);
  if (!(r->tolerance > 0.0 && r->tolerance < 1.0))
    return md_fail(context, MD_INPUT, "the tolerance must lie between 0 and 1, got %g",
                   r->tolerance);
  return MD_OK;
}

/* Takes over what was found. */
static void keep(md_eigenmodes *m, md_eigen_result *found) {
  m->converged = found->below;
  m->modes = (md_modes){.count = found->modes,
                        .values = found->values,
                        .residuals = found->residuals,
                        .vectors = found->vectors};
  found->modes = 0;
  found->values = found->residuals = NULL;
  found->vectors = NULL;
}

static md_status find(md_quark *quark, const md_eigen_search *r, md_eigenmodes *m) {
  enum { ON_DEVICE = 16 }; /* vectors that fill one */
  md_context *context = quark->context;
  const md_dirac *like = md_quark_exact(quark);
  md_backend_request request = like->request;
  const md_halo_request halo = {.transport = quark->transport};
  const md_eigen_request search = {.mass = has_spin(quark) ? r->mass : 0.0,
                                   .modes = r->modes,
                                   .tolerance = r->tolerance,
                                   .max_restarts = r->max_restarts,
                                   .seed = r->seed};
  md_dirac dirac = {0};
  md_eigen_result found = {0};
  request.n_rhs = r->block > 0 ? r->block : like->shape.space == MD_DEVICE ? ON_DEVICE : 1;
  MD_TRY(md_dirac_create_exact(context, quark->links->field, like->backend->name, &request, &halo,
                               &dirac));
  const md_status status = md_eigen_lowest(context, &dirac, &search, &found);
  const bool converged = found.converged;
  if (status == MD_OK) keep(m, &found);
  md_eigen_result_free(&found);
  md_dirac_destroy(&dirac);
  if (status != MD_OK || converged) return status;
  if (m->converged == r->modes)
    return md_fail(context, MD_UNREACHED,
                   "all %d modes converged, but %d restart%s left none to look for others below "
                   "them; raise max_restarts",
                   r->modes, r->max_restarts, md_plural(r->max_restarts));
  return md_fail(context, MD_UNREACHED,
                 "%d modes were to have residuals of at most %g and none below them, %d have after "
                 "%d restart%s; raise max_restarts or tolerance",
                 r->modes, r->tolerance, m->converged, r->max_restarts, md_plural(r->max_restarts));
}

md_status md_eigen_find(md_quark *quark, const md_eigen_search *request, md_eigenmodes **modes) {
  *modes = NULL;
  MD_TRY(check_mass(quark, request->mass));
  MD_TRY(check_search(quark, request));
  if (!(*modes = md_handle(quark->context, sizeof **modes))) return MD_ENVIRONMENT;
  md_eigenmodes *m = *modes;
  m->context = quark->context;
  m->label = md_quark_label(quark, request->mass);
  m->tolerance = request->tolerance;
  const md_status status = find(quark, request, m);
  if (status == MD_OK || m->modes.count > 0) return status;
  md_eigen_destroy(m);
  *modes = NULL;
  return status;
}

md_status md_eigen_read(md_quark *quark, double mass, const char *path, md_eigenmodes **modes) {
  md_context *context = quark->context;
  md_modes_info info;
  *modes = NULL;
  MD_TRY(check_mass(quark, mass));
  MD_TRY(md_given(context, "the path", path));
  MD_TRY(md_deflation_describe(context, path, &info));
  if (!(*modes = md_handle(context, sizeof **modes))) return MD_ENVIRONMENT;
  md_eigenmodes *m = *modes;
  m->context = context;
  m->label = md_quark_label(quark, mass);
  m->tolerance = info.tolerance;
  m->converged = info.converged;
  const md_status status = md_modes_read(context, path, quark->dirac.geometry, &m->label, &info,
                                         info.count, md_quark_exact(quark)->shape.space, &m->modes);
  if (status == MD_OK) return MD_OK;
  free(m); /* a failed reader leaves nothing to destroy */
  *modes = NULL;
  return status;
}

md_status md_eigen_write(md_eigenmodes *modes, const char *path, const char *store, bool replace) {
  int place;
  MD_TRY(md_word(modes->context, "store", MD_MODES_STORE_WORDS, store, &place));
  MD_TRY(md_given(modes->context, "the path", path));
  if (strcmp(store, "fixed8") == 0 && modes->modes.vectors->components != MD_FERMION_REALS)
    return md_fail(modes->context, MD_INPUT,
                   "store fixed8 is for colour vectors, got '%s'; take half", modes->label.action);
  const md_modes_info info = {.converged = modes->converged,
                              .tolerance = modes->tolerance,
                              .store = md_modes_store_of(store),
                              .label = modes->label,
                              .keep_old = !replace};
  MD_TRY(md_vectors_check_suffix(modes->context, path));
  const md_lattice_format *format = md_vectors_format_of(path, NULL);
  if (strcmp(md_lattice_format_name(format), "hdf5") != 0)
    MD_TRY(md_vectors_check(modes->context, format, info.store, modes->modes.count, true));
  MD_TRY(md_output_path(modes->context, path, replace));
  return md_modes_write(modes->context, path, format, &modes->modes, &info);
}

void md_eigen_destroy(md_eigenmodes *modes) {
  if (!modes) return;
  md_modes_destroy(&modes->modes);
  free(modes);
}

int md_eigen_count(const md_eigenmodes *modes) {
  return modes->modes.count;
}

int md_eigen_converged(const md_eigenmodes *modes) {
  return modes->converged;
}

const double *md_eigen_values(const md_eigenmodes *modes) {
  return modes->modes.values;
}

const double *md_eigen_residuals(const md_eigenmodes *modes) {
  return modes->modes.residuals;
}

md_status md_eigen_vector(const md_eigenmodes *modes, int k, md_fermion *field) {
  md_context *context = modes->context;
  if (k < 0 || k >= modes->modes.count)
    return md_fail(context, MD_INPUT, "modes are numbered 0 to %d, got %d", modes->modes.count - 1,
                   k);
  const md_field *vector = &modes->modes.vectors[k], *f = field->of;
  if (f->n_rhs != 1 || f->geometry != vector->geometry || f->components != vector->components)
    return md_fail(context, MD_INPUT,
                   "a mode goes into a field of its lattice with 1 right-hand side and %d reals a "
                   "site, got %d and %d%s",
                   vector->components, f->n_rhs, f->components,
                   f->geometry == vector->geometry ? "" : ", and another lattice");
  md_linear_zero(&field->of[MD_ODD]);
  return md_agree(context, md_field_convert(context, &field->of[MD_EVEN], vector));
}
