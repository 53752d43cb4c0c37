/* The Hermitian gamma_5 S of Wilson quarks in the space of modes of S S^dag. With S^dag = gamma_5 S
 * gamma_5 the square of G = S gamma_5 = gamma_5 S^dag is S S^dag, and G has the eigenvalues and, by
 * gamma_5 of a vector, the chiralities of gamma_5 S. */
#include "dirac/dense.h"
#include "dirac/eigen/basis.h"
#include "dirac/wilson/wilson.h"
#include "lattice/fields/linear.h"
#include "lattice/fields/panel.h"

#include <math.h>

static const md_wall_way gamma5 = {.gamma5 = true, .factor = 1.0};

/* scratch.before = G of `count` vectors from v on, a block at most; *in: they themselves. */
static md_status turn(md_eigen_basis *b, int count, md_field *v, md_field **in) {
  *in = b->block > 1 ? &b->columns : v;
  if (b->block > 1) MD_TRY(md_defer(b->context, md_columns_join(b->context, count, v, *in)));
  MD_TRY(md_wilson_schur(b->context, b->a, true, &b->scratch.now, *in));
  md_wall_apply(NULL, &gamma5, &b->scratch.now, &b->scratch.before);
  return MD_OK;
}

/* h = <v_i, G v_j> of the first n vectors. */
static md_status project(md_eigen_basis *b, int n) {
  for (int j = 0; j < n; j += b->block) {
    const int count = n - j < b->block ? n - j : b->block;
    md_field *in;
    MD_TRY(turn(b, count, &b->v[j], &in));
    MD_TRY(md_panel_dots(b->context, n, b->v, &b->scratch.before, b->dots));
    for (int i = 0; i < n; i++)
      for (int r = 0; r < count; r++) {
        const double *dot = b->dots + 2 * (i * b->block + r);
        b->h[i * n + j + r] = dot[0] + I * dot[1];
      }
  }
  return MD_OK;
}

static md_status judge(md_eigen_basis *b, int count, md_field *u, md_eigen_sign *signs) {
  double minus[MD_MAX_RHS] = {0.0}, rest2[MD_MAX_RHS], dot[MD_MAX_RHS];
  md_field *in;
  MD_TRY(turn(b, count, u, &in));
  for (int r = 0; r < count; r++) minus[r] = -signs[r].value;
  md_linear_axpy(minus, in, &b->scratch.before);
  MD_TRY(md_linear_norm2(b->context, &b->scratch.before, NULL, rest2));
  md_wall_apply(NULL, &gamma5, in, &b->scratch.now);
  MD_TRY(md_linear_dot(b->context, in, &b->scratch.now, NULL, dot));
  for (int r = 0; r < count; r++) {
    signs[r].residual = sqrt(rest2[r]);
    signs[r].chirality = dot[r];
  }
  return MD_OK;
}

md_status md_eigen_basis_signs(md_eigen_basis *b, int n, md_eigen_sign *signs) {
  MD_TRY(project(b, n));
  const md_status status =
      md_hermitian_eigen(n, b->h, b->values, b->rotation)
          ? md_panel_rotate(b->context, n, b->v, n, (const double *)b->rotation, b->turned)
          : md_fail(b->context, MD_UNREACHED,
                    "gamma_5 S of %d modes must be finite; check the links for NaN", n);
  MD_TRY(md_agree(b->context, status));
  for (int i = 0; i < n; i++) {
    signs[i].value = b->values[i];
    for (int j = i; j > 0 && fabs(signs[j].value) < fabs(signs[j - 1].value); j--) {
      const double value = signs[j].value;
      signs[j].value = signs[j - 1].value, signs[j - 1].value = value;
      md_field_swap(&b->turned[j], &b->turned[j - 1]);
    }
  }
  for (int i = 0; i < n; i += b->block) {
    const int left = n - i;
    MD_TRY(judge(b, left < b->block ? left : b->block, &b->turned[i], &signs[i]));
  }
  return MD_OK;
}
