#include "dirac/solvers/deflation.h"
#include "dirac/dense.h"
#include "lattice/fields/linear.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = MD_DEFLATION_MOST };
static const double none[MD_MAX_RHS];
typedef double complex coefficients[MD_MAX_RHS];

md_status md_deflation_create(md_context *context, const md_geometry *geometry,
                              const md_field_shape *shape, int kept, double most,
                              md_deflation *deflation) {
  *deflation = (md_deflation){.n_rhs = shape->n_rhs, .kept = kept, .most = most};
  const size_t n = (size_t)shape->n_rhs;
  deflation->gram = calloc(n, sizeof *deflation->gram);
  if (!deflation->gram) return md_fail_memory(context, n * sizeof *deflation->gram, "deflation");
  for (int i = 0; i <= kept; i++) {
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

/* h[i] = <x[i], y>, of about the size |w_i| size[rhs]. */
static md_status dots(md_context *context, const md_deflation *d, int count, const md_field *x,
                      const md_field *y, const double *size, coefficients *h) {
  const int n = d->n_rhs;
  double guess[2 * MOST * MD_MAX_RHS] = {0}, parts[2 * MOST * MD_MAX_RHS];
  for (int i = 0; i < 2 * count * n; i++)
    guess[i] = sqrt(creal(d->gram[i % n][i / n / 2][i / n / 2])) * size[i % n];
  MD_TRY(md_linear_dots(context, count, x, y, guess, parts));
  for (int i = 0; i < count * n; i++) {
    const double *part = parts + i / n * 2 * n + i % n;
    h[i / n][i % n] = part[0] + I * part[n];
  }
  return MD_OK;
}

/* y += sign (a[0] x[0] + a[1] x[1] + ...) */
static void add(double sign, int count, const coefficients *a, const md_field *x, md_field *y) {
  double re[MOST][MD_MAX_RHS], im[MOST][MD_MAX_RHS];
  for (int i = 0; i < count; i++)
    for (int r = 0; r < y->n_rhs; r++)
      re[i][r] = sign * creal(a[i][r]), im[i][r] = sign * cimag(a[i][r]);
  md_linear_add_complex(count, re, im, x, y);
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
static void reflection(int n, const double complex gram[MOST][MOST], double complex *v) {
  double norm2 = 0.0;
  memset(v, 0, (size_t)n * sizeof *v);
  if (!smallest_eigenvector(n, gram, v)) {
    memset(v, 0, (size_t)n * sizeof *v);
    return;
  }
  const double last = cabs(v[n - 1]);
  v[n - 1] += last > 0.0 ? v[n - 1] / last : 1.0;
  for (int i = 0; i < n; i++) norm2 += creal(v[i] * conj(v[i]));
  for (int i = 0; i < n; i++) v[i] /= sqrt(norm2);
}

/* columns (1 - 2 v v^H) but the last, which is overwritten. v[i][rhs]. */
static void reflect(int n, md_field *columns, const coefficients *v) {
  const int n_rhs = columns[0].n_rhs;
  md_field *sum = &columns[n - 1];
  coefficients a;
  for (int r = 0; r < n_rhs; r++) a[r] = v[n - 1][r] - 1.0;
  add(1.0, 1, &a, sum, sum);
  add(1.0, n - 1, v, columns, sum);
  for (int i = 0; i < n - 1; i++) {
    for (int r = 0; r < n_rhs; r++) a[r] = conj(v[i][r]);
    add(-2.0, 1, &a, sum, &columns[i]);
  }
}

static void reflect_gram(int n, double complex gram[MOST][MOST], const double complex *v) {
  double complex row[MOST], column[MOST];
  for (int j = 0; j < n; j++) {
    row[j] = 0.0;
    for (int i = 0; i < n; i++) row[j] += conj(v[i]) * gram[i][j];
  }
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) gram[i][j] -= 2.0 * v[i] * row[j];
  for (int i = 0; i < n; i++) {
    column[i] = 0.0;
    for (int j = 0; j < n; j++) column[i] += gram[i][j] * v[j];
  }
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) gram[i][j] -= 2.0 * column[i] * conj(v[j]);
}

/* What is left of a direction beside the others, by its A-norm squared: below that it is rounding,
 * of half too, which a projection would take for a direction. */
static const double LEAST_LEFT = 0x1p-30;

/* The last direction becomes conjugate to the others and of unit A-norm, or zero where it lies
 * among them; its norm is not above size[rhs]. */
static md_status orthonormalise(md_context *context, md_deflation *d, double *size) {
  md_field *w = &d->w[d->count], *a_w = &d->a_w[d->count];
  coefficients h[MOST];
  double norm2[MD_MAX_RHS], scale[MD_MAX_RHS], norm_a[MD_MAX_RHS];
  MD_TRY(md_linear_norm2(context, w, NULL, norm2));
  /* |A w_i| <= most |w_i| */
  for (int r = 0; r < d->n_rhs; r++) size[r] = sqrt(norm2[r]), norm_a[r] = d->most * size[r];
  MD_TRY(dots(context, d, d->count, d->a_w, w, norm_a, h));
  add(-1.0, d->count, h, d->w, w);
  add(-1.0, d->count, h, d->a_w, a_w);
  MD_TRY(md_linear_dot(context, w, a_w, NULL, norm2));
  for (int r = 0; r < d->n_rhs; r++) {
    double whole = norm2[r];
    for (int i = 0; i < d->count; i++) {
      whole += creal(h[i][r] * conj(h[i][r]));
      size[r] += cabs(h[i][r]) * sqrt(creal(d->gram[r][i][i]));
    }
    scale[r] = norm2[r] > LEAST_LEFT * whole && isfinite(norm2[r]) ? 1.0 / sqrt(norm2[r]) : 0.0;
    size[r] *= scale[r];
  }
  md_linear_axpby(scale, w, none, w);
  md_linear_axpby(scale, a_w, none, a_w);
  return MD_OK;
}

md_status md_deflation_insert(md_context *context, md_deflation *d) {
  const int last = d->count;
  coefficients v[MOST], h[MOST];
  double size[MD_MAX_RHS];
  MD_TRY(orthonormalise(context, d, size));
  for (int r = 0; r < d->n_rhs; r++) d->gram[r][last][last] = size[r] * size[r];
  MD_TRY(dots(context, d, last + 1, d->w, &d->w[last], size, h));
  for (int i = 0; i <= last; i++)
    for (int r = 0; r < d->n_rhs; r++) {
      d->gram[r][last][i] = conj(h[i][r]);
      d->gram[r][i][last] = h[i][r];
    }
  if (last < d->kept) {
    d->count++;
    return MD_OK;
  }
  for (int r = 0; r < d->n_rhs; r++) {
    double complex own[MOST];
    reflection(last + 1, d->gram[r], own);
    reflect_gram(last + 1, d->gram[r], own);
    for (int i = 0; i <= last; i++) v[i][r] = own[i];
  }
  reflect(last + 1, d->w, v);
  reflect(last + 1, d->a_w, v);
  return MD_OK;
}

md_status md_deflation_project(md_context *context, const md_deflation *d, md_field *r,
                               md_field *x) {
  double one[MD_MAX_RHS];
  coefficients h[MOST];
  for (int k = 0; k < d->n_rhs; k++) one[k] = 1.0;
  MD_TRY(dots(context, d, d->count, d->w, r, one, h));
  add(1.0, d->count, h, d->w, x);
  add(-1.0, d->count, h, d->a_w, r);
  return MD_OK;
}

bool md_deflation_forget(md_deflation *d, const bool *of) {
  double keep[MD_MAX_RHS];
  bool any = false;
  for (int r = 0; r < d->n_rhs; r++) {
    keep[r] = of[r] ? 0.0 : 1.0;
    for (int i = 0; of[r] && i < d->count; i++) any = any || creal(d->gram[r][i][i]) != 0.0;
    if (of[r]) memset(d->gram[r], 0, sizeof d->gram[r]);
  }
  for (int i = 0; any && i < d->count; i++) {
    md_linear_axpby(keep, &d->w[i], none, &d->w[i]);
    md_linear_axpby(keep, &d->a_w[i], none, &d->a_w[i]);
  }
  return any;
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
