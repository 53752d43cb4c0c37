#include "dirac/solvers/block_deflation.h"
#include "dirac/solvers/small_matrix.h"

#include <stdlib.h>
#include <string.h>

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
  for (int k = 0; k < MD_BLOCK_DEFLATION_MOST; k++) {
    md_field_destroy(&d->w[k]);
    md_field_destroy(&d->a_w[k]);
  }
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
