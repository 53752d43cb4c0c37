#include "dirac/eigen/basis.h"
#include "dirac/eigen/hermitian.h"
#include "lattice/fields/linear.h"
#include "lattice/fields/panel.h"
#include "lattice/fields/source.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What is left of a vector of f(A), whose norm is 1, when nothing new is in it. */
#define NOTHING_NEW 1e-13

int64_t md_eigen_basis_bytes(int most) {
  const int64_t m = most;
  return m * m * 2 * (int64_t)sizeof(double complex) +
         m * (3 * (int64_t)sizeof(double) + 2 * (int64_t)sizeof(md_field));
}

static md_status create(md_eigen_basis *b) {
  const size_t most = (size_t)b->most;
  b->v = calloc(most + 1, sizeof *b->v);
  b->turned = calloc((size_t)b->kept, sizeof *b->turned);
  b->h = calloc(most * most, sizeof *b->h);
  b->rotation = calloc(most * most, sizeof *b->rotation);
  b->values = calloc(most, sizeof *b->values);
  b->dots = calloc(2 * most, sizeof *b->dots);
  if (!b->v || !b->turned || !b->h || !b->rotation || !b->values || !b->dots)
    return md_fail_memory(b->context, (size_t)md_eigen_basis_bytes(b->most), "the basis of modes");
  for (int i = 0; i <= b->most; i++)
    MD_TRY(md_dirac_field(b->context, b->dirac, MD_EVEN, &b->v[i]));
  for (int i = 0; i < b->kept; i++)
    MD_TRY(md_dirac_field(b->context, b->dirac, MD_EVEN, &b->turned[i]));
  return md_eigen_scratch_create(b->context, b->dirac, &b->scratch);
}

md_status md_eigen_basis_create(md_context *context, md_dirac *dirac, int most, int kept,
                                uint64_t seed, md_eigen_basis *basis) {
  const md_geometry *g = dirac->geometry;
  *basis = (md_eigen_basis){.context = context,
                            .dirac = dirac,
                            .most = most,
                            .kept = kept,
                            .unknowns = 3 * (g->volume / 2),
                            .seed = seed};
  return md_agree(context, create(basis));
}

void md_eigen_basis_destroy(md_eigen_basis *b) {
  for (int i = 0; b->v && i <= b->most; i++) md_field_destroy(&b->v[i]);
  for (int i = 0; b->turned && i < b->kept; i++) md_field_destroy(&b->turned[i]);
  md_eigen_scratch_destroy(&b->scratch);
  free(b->v);
  free(b->turned);
  free(b->h);
  free(b->rotation);
  free(b->values);
  free(b->dots);
  *b = (md_eigen_basis){0};
}

static void swap(md_field *a, md_field *b) {
  const md_field held = *a;
  *a = *b;
  *b = held;
}

static md_status require_finite(md_context *context, double value) {
  if (isfinite(value)) return MD_OK;
  return md_fail(context, MD_UNREACHED,
                 "sums of the search for modes must be finite, got %g; check the links for NaN",
                 value);
}

/* v[last] -= sum over the others of v_i <v_i, v[last]>, twice ("twice is enough": Parlett, The
 * Symmetric Eigenvalue Problem, 6.9; classical Gram-Schmidt, all inner products in one pass over
 * the basis and all subtractions in another); the coefficients are added to column[i * most] where
 * it is not NULL. */
static md_status orthogonalise(md_eigen_basis *b, int last, double complex *column) {
  for (int pass = 0; pass < 2 && last > 0; pass++) {
    MD_TRY(md_panel_dots(b->context, last, b->v, &b->v[last], b->dots));
    for (int i = 0; i < last; i++) {
      const double re = b->dots[2 * i], im = b->dots[2 * i + 1];
      if (column) column[i * b->most] += re + I * im;
      b->dots[2 * i] = -re;
      b->dots[2 * i + 1] = -im;
    }
    MD_TRY(md_defer(b->context, md_panel_add(b->context, last, b->v, b->dots, &b->v[last])));
  }
  return MD_OK;
}

static md_status normalise(md_eigen_basis *b, int i, double *norm) {
  double norm2, none = 0.0;
  MD_TRY(md_linear_norm2(b->context, &b->v[i], &norm2));
  MD_TRY(require_finite(b->context, norm2));
  *norm = sqrt(norm2);
  if (!(*norm > 0.0)) return MD_OK;
  const double scale = 1.0 / *norm;
  md_linear_axpby(&scale, &b->v[i], &none, &b->v[i]);
  return MD_OK;
}

static md_status fill(md_eigen_basis *b, md_field *out) {
  const md_field_shape host = {MD_DOUBLE, MD_HOST, MD_FERMION_REALS, 1, true};
  md_field noise[MD_PARITIES] = {{0}, {0}};
  md_status status = MD_OK;
  for (int p = 0; p < MD_PARITIES && status == MD_OK; p++)
    status = md_field_create(b->context, b->dirac->geometry, &host, p, &noise[p]);
  if (status == MD_OK) {
    md_source_gaussian(noise, b->seed + b->drawn);
    status = md_field_convert(b->context, out, &noise[MD_EVEN]);
  }
  for (int p = 0; p < MD_PARITIES; p++) md_field_destroy(&noise[p]);
  b->drawn++;
  return md_agree(b->context, status);
}

md_status md_eigen_basis_draw(md_eigen_basis *b) {
  double norm;
  MD_TRY(fill(b, &b->v[b->count]));
  for (int again = 0; again < 2; again++) { /* where little is left, what is left is cleaned */
    MD_TRY(orthogonalise(b, b->count, NULL));
    MD_TRY(normalise(b, b->count, &norm));
  }
  return MD_OK;
}

md_status md_eigen_basis_take(md_eigen_basis *b, const md_field *vector) {
  double norm;
  MD_TRY(md_agree(b->context, md_field_convert(b->context, &b->v[b->count], vector)));
  MD_TRY(normalise(b, b->count, &norm));
  MD_TRY(orthogonalise(b, b->count, NULL));
  MD_TRY(normalise(b, b->count, &norm));
  if (norm > 1e-3) b->count++;
  return MD_OK;
}

md_status md_eigen_basis_step(md_eigen_basis *b) {
  const int j = b->count;
  double norm;
  MD_TRY(
      md_eigen_filter_apply(b->context, b->dirac, &b->filter, &b->scratch, &b->v[j + 1], &b->v[j]));
  b->applied++;
  for (int i = 0; i <= j; i++) b->h[i * b->most + j] = 0.0;
  MD_TRY(orthogonalise(b, j + 1, b->h + j));
  b->count++;
  MD_TRY(normalise(b, b->count, &norm));
  if (norm > NOTHING_NEW || b->count >= b->unknowns) return MD_OK;
  return md_eigen_basis_draw(b); /* the vectors so far span a space that A does not leave */
}

md_status md_eigen_basis_solve(md_eigen_basis *b) {
  const int n = b->count;
  /* Dense rows in place, of -f(A), so that the largest comes first. */
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      const int row = i < j ? i : j, column = i < j ? j : i;
      const double complex e = b->h[row * b->most + column];
      b->rotation[i * n + j] = i < j ? -e : i > j ? -conj(e) : -creal(e);
    }
  memcpy(b->h, b->rotation, (size_t)n * (size_t)n * sizeof *b->h);
  if (!md_hermitian_eigen(n, b->h, b->values, b->rotation))
    return md_fail(b->context, MD_UNREACHED,
                   "the projected operator must be finite, which failed after %d filters; check "
                   "the links for NaN",
                   b->applied);
  for (int i = 0; i < n; i++) b->values[i] = -b->values[i];
  return MD_OK;
}

void md_eigen_basis_settle(md_eigen_basis *b) {
  memset(b->h, 0, (size_t)b->most * (size_t)b->most * sizeof *b->h);
  for (int i = 0; i < b->count; i++) b->h[i * b->most + i] = b->values[i];
}

md_status md_eigen_basis_restart(md_eigen_basis *b, int keep) {
  const int n = b->count;
  MD_TRY(md_agree(b->context, md_panel_rotate(b->context, n, b->v, keep,
                                              (const double *)b->rotation, b->turned)));
  for (int i = 0; i < keep; i++) swap(&b->v[i], &b->turned[i]);
  if (keep < n) swap(&b->v[keep], &b->v[n]);
  b->count = keep;
  md_eigen_basis_settle(b);
  return MD_OK;
}

md_status md_eigen_basis_gather(md_eigen_basis *b) {
  const double one = 1.0;
  double norm;
  for (int i = 1; i < b->count; i++) md_linear_axpy(&one, &b->v[i], &b->v[0]);
  b->count = 0;
  return normalise(b, 0, &norm);
}

md_status md_eigen_basis_pair(md_eigen_basis *b, int i, double *value, double *residual) {
  md_field *v = &b->v[i], *a_v = &b->scratch.now;
  double norm2, dot, rest2;
  MD_TRY(md_dirac_mdag_m(b->context, b->dirac, 0.0, a_v, v, &b->scratch.odd));
  MD_TRY(md_linear_norm2(b->context, v, &norm2));
  MD_TRY(md_linear_dot(b->context, v, a_v, &dot));
  *value = dot / norm2;
  const double minus = -*value;
  md_linear_axpy(&minus, v, a_v);
  MD_TRY(md_linear_norm2(b->context, a_v, &rest2));
  *residual = sqrt(rest2 / norm2);
  return require_finite(b->context, *residual);
}
