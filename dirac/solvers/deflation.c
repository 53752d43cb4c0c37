#include "dirac/solvers/deflation.h"
#include "dirac/dense.h"
#include "lattice/fields/linear.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = MD_DEFLATION_MOST };
static const double none[MD_MAX_RHS];

md_status md_deflation_create(md_context *context, const md_geometry *geometry,
                              const md_field_shape *shape, md_deflation *deflation) {
  *deflation = (md_deflation){.n_rhs = shape->n_rhs};
  const size_t n = (size_t)shape->n_rhs;
  deflation->gram = calloc(n, sizeof *deflation->gram);
  if (!deflation->gram) return md_fail_memory(context, n * sizeof *deflation->gram, "deflation");
  for (int i = 0; i < MOST; i++) {
    MD_TRY(md_field_create(context, geometry, shape, MD_EVEN, &deflation->w[i]));
    MD_TRY(md_field_create(context, geometry, shape, MD_EVEN, &deflation->a_w[i]));
  }
  return MD_OK;
}

void md_deflation_destroy(md_deflation *deflation) {
  for (int i = 0; i < MOST; i++) MD_FIELDS_DESTROY(&deflation->w[i], &deflation->a_w[i]);
  free(deflation->gram);
  *deflation = (md_deflation){0};
}

static md_status dot(md_context *context, const md_field *x, const md_field *y,
                     double complex *dots) {
  double parts[2 * MD_MAX_RHS];
  MD_TRY(md_linear_dots(context, 1, x, y, parts));
  for (int r = 0; r < x->n_rhs; r++) dots[r] = parts[r] + I * parts[x->n_rhs + r];
  return MD_OK;
}

/* y += sign a x */
static void axpy(double sign, const double complex *a, const md_field *x, md_field *y) {
  double re[MD_MAX_RHS], im[MD_MAX_RHS];
  for (int r = 0; r < x->n_rhs; r++) re[r] = sign * creal(a[r]), im[r] = sign * cimag(a[r]);
  md_linear_axpy_complex(re, im, x, y);
}

/* The unit eigenvector of the smallest eigenvalue of a Hermitian positive n x n matrix, nearly:
 * inverse iteration. False when the matrix is not finite. */
static bool smallest_eigenvector(int n, const double complex gram[MOST][MOST], double complex *u) {
  double complex a[MOST * MOST], factor[MOST * MOST], inverse[MOST * MOST], half[MOST];
  double trace = 0.0;
  for (int i = 0; i < n; i++) trace += creal(gram[i][i]);
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) a[i * n + j] = gram[i][j] + (i == j ? 1e-12 * trace : 0.0);
  if (!(trace > 0.0) || md_matrix_cholesky(n, MD_MATRIX_LEAST_PIVOT, a, factor) < 0.0) return false;
  md_matrix_upper_inverse(n, factor, inverse);
  for (int i = 0; i < n; i++) u[i] = 1.0;
  for (int step = 0; step < 40; step++) {
    double norm2 = 0.0;
    for (int i = 0; i < n; i++) {
      half[i] = 0.0;
      for (int k = 0; k <= i; k++) half[i] += conj(inverse[k * n + i]) * u[k];
    }
    for (int i = 0; i < n; i++) {
      u[i] = 0.0;
      for (int k = i; k < n; k++) u[i] += inverse[i * n + k] * half[k];
      norm2 += creal(u[i]) * creal(u[i]) + cimag(u[i]) * cimag(u[i]);
    }
    if (!(norm2 > 0.0) || !isfinite(norm2)) return false;
    for (int i = 0; i < n; i++) u[i] /= sqrt(norm2);
  }
  return true;
}

/* v of the reflection 1 - 2 v v^H that turns the smallest eigenvector of the Gram matrix into the
 * last unit vector; 0 where there is none. */
static void reflection(const double complex gram[MOST][MOST], double complex v[MOST]) {
  double norm2 = 0.0;
  memset(v, 0, MOST * sizeof *v);
  if (!smallest_eigenvector(MOST, gram, v)) {
    memset(v, 0, MOST * sizeof *v);
    return;
  }
  const double last = cabs(v[MOST - 1]);
  v[MOST - 1] += last > 0.0 ? v[MOST - 1] / last : 1.0;
  for (int i = 0; i < MOST; i++) norm2 += creal(v[i] * conj(v[i]));
  for (int i = 0; i < MOST; i++) v[i] /= sqrt(norm2);
}

/* columns (1 - 2 v v^H) but the last, which is overwritten. */
static void reflect(md_field columns[MOST], double complex (*v)[MOST]) {
  const int n_rhs = columns[0].n_rhs;
  md_field *sum = &columns[MOST - 1];
  double complex a[MD_MAX_RHS];
  for (int r = 0; r < n_rhs; r++) a[r] = v[r][MOST - 1] - 1.0;
  axpy(1.0, a, sum, sum);
  for (int i = 0; i < MOST - 1; i++) {
    for (int r = 0; r < n_rhs; r++) a[r] = v[r][i];
    axpy(1.0, a, &columns[i], sum);
  }
  for (int i = 0; i < MOST - 1; i++) {
    for (int r = 0; r < n_rhs; r++) a[r] = conj(v[r][i]);
    axpy(-2.0, a, sum, &columns[i]);
  }
}

static void reflect_gram(double complex gram[MOST][MOST], const double complex v[MOST]) {
  double complex row[MOST], column[MOST];
  for (int j = 0; j < MOST; j++) {
    row[j] = 0.0;
    for (int i = 0; i < MOST; i++) row[j] += conj(v[i]) * gram[i][j];
  }
  for (int i = 0; i < MOST; i++)
    for (int j = 0; j < MOST; j++) gram[i][j] -= 2.0 * v[i] * row[j];
  for (int i = 0; i < MOST; i++) {
    column[i] = 0.0;
    for (int j = 0; j < MOST; j++) column[i] += gram[i][j] * v[j];
  }
  for (int i = 0; i < MOST; i++)
    for (int j = 0; j < MOST; j++) gram[i][j] -= 2.0 * column[i] * conj(v[j]);
}

/* The last direction becomes conjugate to the others and of unit A-norm. */
static md_status orthonormalise(md_context *context, md_deflation *d) {
  md_field *w = &d->w[d->count], *a_w = &d->a_w[d->count];
  double complex h[MD_MAX_RHS];
  double norm2[MD_MAX_RHS], scale[MD_MAX_RHS];
  for (int i = 0; i < d->count; i++) {
    MD_TRY(dot(context, &d->a_w[i], w, h));
    axpy(-1.0, h, &d->w[i], w);
    axpy(-1.0, h, &d->a_w[i], a_w);
  }
  MD_TRY(md_linear_dot(context, w, a_w, NULL, norm2));
  for (int r = 0; r < d->n_rhs; r++)
    scale[r] = norm2[r] > 0.0 && isfinite(norm2[r]) ? 1.0 / sqrt(norm2[r]) : 0.0;
  md_linear_axpby(scale, w, none, w);
  md_linear_axpby(scale, a_w, none, a_w);
  return MD_OK;
}

md_status md_deflation_insert(md_context *context, md_deflation *d) {
  const int last = d->count;
  double complex v[MD_MAX_RHS][MOST];
  double parts[2 * MOST * MD_MAX_RHS];
  MD_TRY(orthonormalise(context, d));
  MD_TRY(md_linear_dots(context, last + 1, d->w, &d->w[last], parts));
  for (int i = 0; i <= last; i++)
    for (int r = 0; r < d->n_rhs; r++) {
      const double *part = parts + 2 * i * d->n_rhs + r;
      d->gram[r][i][last] = part[0] + I * part[d->n_rhs];
      d->gram[r][last][i] = part[0] - I * part[d->n_rhs];
    }
  if (last < MD_DEFLATION_KEPT) {
    d->count++;
    return MD_OK;
  }
  for (int r = 0; r < d->n_rhs; r++) {
    reflection(d->gram[r], v[r]);
    reflect_gram(d->gram[r], v[r]);
  }
  reflect(d->w, v);
  reflect(d->a_w, v);
  return MD_OK;
}

md_status md_deflation_project(md_context *context, const md_deflation *d, md_field *r,
                               md_field *x) {
  double complex h[MD_MAX_RHS];
  for (int i = 0; i < d->count; i++) {
    MD_TRY(dot(context, &d->w[i], r, h));
    axpy(1.0, h, &d->w[i], x);
    axpy(-1.0, h, &d->a_w[i], r);
  }
  return MD_OK;
}

md_status md_block_deflation_create(md_context *context, const md_geometry *geometry,
                                    const md_field_shape *shape, md_block *block,
                                    md_block_deflation *d) {
  const size_t entries = (size_t)shape->n_rhs * (size_t)shape->n_rhs;
  const size_t all = (MD_BLOCK_DEFLATION_MOST + 3) * entries;
  const int64_t half = 3 * geometry->volume / 4 / shape->n_rhs; /* of the even unknowns */
  const int most = half < MD_BLOCK_DEFLATION_MOST ? (int)half : MD_BLOCK_DEFLATION_MOST;
  *d = (md_block_deflation){.block = block, .n = shape->n_rhs, .most = most > 1 ? most : 1};
  d->product = calloc(all, sizeof *d->product);
  if (!d->product) return md_fail_memory(context, all * sizeof *d->product, "deflation of a block");
  d->factor = d->product + MD_BLOCK_DEFLATION_MOST * entries;
  d->inverse = d->factor + entries;
  d->one = d->inverse + entries;
  for (int j = 0; j < d->n; j++) d->one[j * d->n + j] = 1.0;
  for (int k = 0; k < d->most; k++) {
    MD_TRY(md_field_create(context, geometry, shape, MD_EVEN, &d->w[k]));
    MD_TRY(md_field_create(context, geometry, shape, MD_EVEN, &d->a_w[k]));
  }
  return MD_OK;
}

void md_block_deflation_destroy(md_block_deflation *d) {
  for (int k = 0; k < MD_BLOCK_DEFLATION_MOST; k++) MD_FIELDS_DESTROY(&d->w[k], &d->a_w[k]);
  free(d->product);
  *d = (md_block_deflation){0};
}

static md_status multiply(md_context *context, const md_block_deflation *d, md_field *y) {
  const md_block_step step = {.b = (double *)d->inverse, .slot = -1};
  return md_block_update(context, d->block, y, &step);
}

md_status md_block_deflation_insert(md_context *context, md_block_deflation *d, md_field *w,
                                    md_field *a_w) {
  const int n = d->n;
  MD_TRY(md_block_cross(context, d->block, w, a_w, (double *)d->product));
  for (int i = 0; i < n; i++)
    for (int j = i; j < n; j++) {
      const double complex mean = 0.5 * (d->product[i * n + j] + conj(d->product[j * n + i]));
      d->product[i * n + j] = mean;
      d->product[j * n + i] = conj(mean);
    }
  if (md_matrix_cholesky(n, MD_MATRIX_LEAST_PIVOT, d->product, d->factor) < 0.0)
    memset(d->inverse, 0, (size_t)n * (size_t)n * sizeof *d->inverse); /* drops it */
  else
    md_matrix_upper_inverse(n, d->factor, d->inverse);
  MD_TRY(multiply(context, d, w));
  MD_TRY(multiply(context, d, a_w));
  MD_TRY(md_agree(context, md_field_convert(context, &d->w[d->next], w)));
  MD_TRY(md_agree(context, md_field_convert(context, &d->a_w[d->next], a_w)));
  d->next = (d->next + 1) % d->most;
  if (d->count < d->most) d->count++;
  return MD_OK;
}

void md_block_deflation_forget(md_block_deflation *d) {
  d->count = d->next = 0;
}

/* r -= A W_k c, minus = -c; product: W_(k+1)^H r, or NULL. */
static md_status take_out(md_context *context, const md_block_deflation *d, int k, md_field *r,
                          const double *minus, double *product) {
  const md_block_step step = {.b = (const double *)d->one, .x = &d->a_w[k], .a = minus, .slot = -1};
  if (r->precision != MD_SINGLE)
    return product ? md_block_update_cross(context, d->block, r, &step, &d->w[k + 1], product)
                   : md_block_update(context, d->block, r, &step);
  MD_TRY(md_block_add(context, d->block, r, 1, &d->a_w[k], minus, NULL));
  return product ? md_block_cross(context, d->block, &d->w[k + 1], r, product) : MD_OK;
}

md_status md_block_deflation_project(md_context *context, const md_block_deflation *d, md_field *r,
                                     md_field *x) {
  const int reals = 2 * d->n * d->n;
  double *minus = (double *)d->factor;
  double *c = (double *)d->product;
  if (d->count > 0) MD_TRY(md_block_cross(context, d->block, &d->w[0], r, c));
  for (int k = 0; k < d->count; k++, c += reals) {
    for (int e = 0; e < reals; e++) minus[e] = -c[e];
    MD_TRY(take_out(context, d, k, r, minus, k + 1 < d->count ? c + reals : NULL));
  }
  return md_block_add(context, d->block, x, d->count, d->w, (double *)d->product, NULL);
}
