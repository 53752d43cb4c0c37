#include "lattice/fields/panel.h"
#include "lattice/fields/linear.h"
#include "lattice/fields/panel_space.h"
#include "lattice/fields/sum.h"

#include <math.h>
#include <stdlib.h>

static const md_panel_space *space_of(const md_field *f) {
  return MINIDIRAC_HAVE_CUDA && f->space == MD_DEVICE ? &md_panel_device : &md_panel_host;
}

/* For sums whose terms have absolute values that add up to no more than 4 norms (Cauchy and
 * Schwarz). */
static md_panel_units units_for(double norm) {
  enum { SPARE = 4, LOW_BELOW_HIGH = 22 };
  const int exponent = norm > 0.0 && isfinite(norm) ? ilogb(norm) : 0;
  const int high = (exponent < -900 ? -900 : exponent > 900 ? 900 : exponent) + SPARE;
  return (md_panel_units){ldexp(1.5, high), ldexp(1.5, high - LOW_BELOW_HIGH)};
}

static md_status dots_into(md_context *context, int count, const md_field *x, const md_field *y,
                           double *sums, double *dots) {
  md_panel_units units[MD_MAX_RHS];
  double norm2[MD_MAX_RHS];
  const int products = count * y->n_rhs;
  MD_TRY(md_linear_norm2(context, y, norm2));
  for (int r = 0; r < y->n_rhs; r++) units[r] = units_for(sqrt(norm2[r]));
  MD_TRY(md_defer(context, space_of(y)->dots(context, count, x, y, units, sums)));
  MD_TRY(md_sum_whole(context, sums, 4 * products));
  for (int i = 0; i < products; i++) {
    dots[2 * i] = sums[4 * i] + sums[4 * i + 1];
    dots[2 * i + 1] = sums[4 * i + 2] + sums[4 * i + 3];
  }
  return MD_OK;
}

md_status md_panel_dots(md_context *context, int count, const md_field *x, const md_field *y,
                        double *dots) {
  const size_t bytes = (4 * (size_t)count * (size_t)y->n_rhs + 1) * sizeof(double);
  double *sums = malloc(bytes);
  md_status status =
      md_agree(context, sums ? MD_OK : md_fail_memory(context, bytes, "inner products"));
  if (status == MD_OK && count > 0) status = dots_into(context, count, x, y, sums, dots);
  free(sums);
  return status;
}

md_status md_panel_add(md_context *context, int count, const md_field *x, const double *c,
                       md_field *y) {
  return count > 0 ? space_of(y)->add(context, count, x, c, 1, y, false) : MD_OK;
}

md_status md_panel_rotate(md_context *context, int count, const md_field *x, int rows,
                          const double *rotation, md_field *out) {
  const size_t bytes = 2 * (size_t)count * (size_t)rows * sizeof(double);
  if (rows == 0 || count == 0) return MD_OK;
  double *c = malloc(bytes);
  if (!c) return md_fail_memory(context, bytes, "rotation");
  for (int i = 0; i < rows; i++)
    for (int k = 0; k < count; k++)
      for (int part = 0; part < 2; part++)
        c[2 * (k * rows + i) + part] = rotation[2 * (i * count + k) + part];
  const md_status status = space_of(x)->add(context, count, x, c, rows, out, true);
  free(c);
  return status;
}
