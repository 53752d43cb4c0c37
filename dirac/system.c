#include "dirac/system.h"
#include "base/memory_need.h"
#include "dirac/backend.h"
#include "lattice/fields/linear.h"

#include <math.h>

static const double LEAST_NORM = 1e-130, MOST_NORM = 1e150;

md_status md_system_norms(md_context *context, int count, const md_field *f, double *norms) {
  double odd[MD_MAX_RHS];
  MD_TRY(md_linear_norm2(context, &f[0], NULL, norms));
  if (count > 1) MD_TRY(md_linear_norm2(context, &f[1], NULL, odd));
  for (int r = 0; r < f[0].n_rhs; r++) norms[r] = sqrt(count > 1 ? norms[r] + odd[r] : norms[r]);
  return MD_OK;
}

md_status md_system_create(md_context *context, const md_system_kind *kind, md_operator *a,
                           int fields, const md_field *b, bool filled, md_system *s) {
  *s = (md_system){.kind = kind, .a = a, .fields = fields, .n_rhs = b->n_rhs};
  for (int k = 0; k < fields; k++) {
    md_field *own[] = {&s->b[k], &s->x[k], &s->work[k]};
    for (int i = 0; i < 3; i++)
      MD_TRY(md_field_create(context, a->geometry, &a->shape, b[k].parity, own[i]));
    if (filled && (b[k].data || md_counts(context)))
      MD_TRY(md_field_resize(context, &s->b[k], &b[k]));
  }
  return MD_OK;
}

void md_system_destroy(md_system *s) {
  for (int k = 0; k < MD_PARITIES; k++) MD_FIELDS_DESTROY(&s->b[k], &s->x[k], &s->work[k]);
  MD_FIELDS_DESTROY(&s->apart, &s->base);
}

md_status md_system_solution(md_context *context, const md_system *s, md_field x[MD_PARITIES],
                             md_field *midpoint) {
  if (s->solution) return s->solution(context, s, x, midpoint);
  for (int k = 0; k < s->fields; k++) MD_TRY(md_field_resize(context, &x[k], &s->x[k]));
  return MD_OK;
}

static double true_factor(const md_system *s) {
  return s->kind->of_true ? s->kind->of_true(s) : 1.0;
}

/* Squares of such sources, or of small residuals, underflow: a norm may be that of zeros, and a
 * solve would stall. Made larger they show which are zeros. work is overwritten. */
static md_status refuse_tiny(md_context *context, md_system *s) {
  double none[MD_MAX_RHS], up[MD_MAX_RHS], norms[MD_MAX_RHS];
  bool tiny = false;
  for (int r = 0; r < s->b[0].n_rhs; r++) {
    none[r] = 0.0, up[r] = s->b_norm[r] < LEAST_NORM ? 0x1p600 : 0.0;
    tiny = tiny || up[r] > 0.0;
  }
  if (!tiny) return MD_OK;
  for (int k = 0; k < s->fields; k++) {
    md_linear_copy(&s->work[k], &s->b[k]);
    md_linear_axpby(none, &s->work[k], up, &s->work[k]);
  }
  MD_TRY(md_system_norms(context, s->fields, s->work, norms));
  for (int r = 0; r < s->b[0].n_rhs; r++)
    if (up[r] > 0.0 && norms[r] > 0.0)
      return md_fail(context, MD_INPUT,
                     "the norm of a source must be 0 or from %g on, got about %g of right-hand "
                     "side %d; scale the source, and the solution back",
                     LEAST_NORM, norms[r] * 0x1p-600, r);
  return MD_OK;
}

md_status md_system_measure(md_context *context, md_system *s) {
  MD_TRY(md_system_norms(context, s->fields, s->b, s->b_norm));
  for (int r = 0; r < s->b[0].n_rhs; r++)
    if (!(s->b_norm[r] <= MOST_NORM))
      return md_fail(context, MD_INPUT,
                     "the norm of a source must be finite and at most %g, got %g of right-hand "
                     "side %d; check the source for NaN, or scale it, and the solution back",
                     MOST_NORM, s->b_norm[r], r);
  MD_TRY(refuse_tiny(context, s));
  for (int r = 0; r < s->b[0].n_rhs; r++) s->scale[r] = true_factor(s) * s->b_norm[r];
  return MD_OK;
}

static md_status residual_of(md_context *context, md_system *s) {
  const md_operator_end less = {s->b, 1.0, -1.0};
  return md_operator_apply(context, s->a, s->work, s->x, &less);
}

md_status md_system_true_residuals(md_context *context, md_system *s, double *residuals) {
  MD_TRY(residual_of(context, s));
  MD_TRY(md_system_norms(context, s->fields, s->work, residuals));
  for (int r = 0; r < s->x[0].n_rhs; r++) {
    if (!isfinite(residuals[r]))
      return md_fail(context, MD_UNREACHED,
                     "the true residual must be finite, got %g for right-hand side %d",
                     residuals[r], r);
    residuals[r] = s->b_norm[r] > 0.0 ? residuals[r] / s->b_norm[r] : residuals[r];
  }
  return MD_OK;
}

void md_system_go_on(md_system *s) {
  const double factor = true_factor(s);
  if (factor != 1.0) md_linear_add(factor - 1.0, &s->work[0], &s->work[0]);
}

/* Even and odd sites. */
static md_dirac *dirac_of(const md_system *s) {
  return md_full_dirac(s->a);
}

static double mass_of(const md_system *s) {
  return s->a->least;
}

/* s = m b_e - Deo b_o */
static md_status even_source(md_context *context, md_system *s) {
  const md_hop_end end = {.x = &s->b[MD_EVEN], .a = mass_of(s), .b = -1.0};
  return md_dirac_hop(context, dirac_of(s), &s->work[MD_EVEN], &s->b[MD_ODD], &end);
}

/* s - A x_e = m (b_e - m x_e) + Deo (Doe x_e - b_o) */
static md_status even_residual(md_context *context, md_system *s) {
  const double mass = mass_of(s);
  const md_hop_end less_b = {.x = &s->b[MD_ODD], .a = -1.0, .b = 1.0};
  const md_hop_end plus_b = {.x = &s->b[MD_EVEN], .a = mass, .b = 1.0};
  MD_TRY(md_dirac_hop(context, dirac_of(s), &s->work[MD_ODD], &s->x[MD_EVEN], &less_b));
  MD_TRY(md_dirac_hop(context, dirac_of(s), &s->work[MD_EVEN], &s->work[MD_ODD], &plus_b));
  md_linear_add(-mass * mass, &s->x[MD_EVEN], &s->work[MD_EVEN]);
  return MD_OK;
}

/* x_o = (b_o - Doe x_e) / m */
static md_status reconstruct_odd(md_context *context, md_system *s) {
  const double mass = mass_of(s);
  const md_hop_end end = {.x = &s->b[MD_ODD], .a = 1.0 / mass, .b = -1.0 / mass};
  return md_dirac_hop(context, dirac_of(s), &s->x[MD_ODD], &s->x[MD_EVEN], &end);
}

md_status md_system_even_odd(md_context *context, md_operator *full, bool direct,
                             const md_field b[MD_PARITIES], md_system *s) {
  static const md_system_kind kind = {even_source, even_residual, reconstruct_odd, mass_of};
  if (full->even_odd) return full->even_odd(context, full, direct, b, s);
  return md_system_create(context, &kind, full, MD_PARITIES, b, true, s);
}

/* The equation itself. */
static md_status copy_source(md_context *context, md_system *s) {
  (void)context;
  md_linear_copy(&s->work[0], &s->b[0]);
  return MD_OK;
}

static md_status nothing(md_context *context, md_system *s) {
  (void)context, (void)s;
  return MD_OK;
}

md_status md_system_plain(md_context *context, md_operator *a, const md_field *b, md_system *s) {
  static const md_system_kind kind = {copy_source, residual_of, nothing, NULL};
  return md_system_create(context, &kind, a, 1, b, true, s);
}
