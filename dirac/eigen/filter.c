#include "dirac/eigen/filter.h"
#include "base/device.h"
#include "dirac/backend.h"
#include "lattice/fields/linear.h"

#include <math.h>

md_eigen_filter md_eigen_filter_for(double low, double high) {
  enum { STEEP = 2, MOST = 1000 };
  if (!(low < 0.25 * high)) return (md_eigen_filter){1, 0.0, high};
  low = fmax(low, high * STEEP * STEEP / MOST / MOST);
  return (md_eigen_filter){(int)ceil(STEEP * sqrt(high / low)), low, high};
}

/* T_degree(x), for any x. */
static double chebyshev(int degree, double x) {
  if (fabs(x) <= 1.0) return cos(degree * acos(x));
  const double size = cosh(degree * acosh(fabs(x)));
  return x < 0.0 && degree % 2 ? -size : size;
}

double md_eigen_filter_value(const md_eigen_filter *filter, double lambda) {
  const double centre = 0.5 * (filter->high + filter->low);
  const double half = 0.5 * (filter->high - filter->low);
  return chebyshev(filter->degree, (lambda - centre) / half) /
         chebyshev(filter->degree, -centre / half);
}

md_status md_eigen_scratch_create(md_context *context, const md_dirac *dirac,
                                  md_eigen_scratch *scratch) {
  *scratch = (md_eigen_scratch){0};
  MD_TRY(md_dirac_field(context, dirac, MD_EVEN, &scratch->before));
  MD_TRY(md_dirac_field(context, dirac, MD_EVEN, &scratch->now));
  MD_TRY(md_dirac_field(context, dirac, MD_ODD, &scratch->odd));
  if (!md_dirac_fuses(dirac, MD_DOUBLE))
    return md_dirac_field(context, dirac, MD_EVEN, &scratch->next);
  const size_t bytes = (size_t)dirac->shape.n_rhs * sizeof(double);
  double ones[MD_MAX_RHS];
  void *memory;
  for (int r = 0; r < dirac->shape.n_rhs; r++) ones[r] = 1.0;
  MD_TRY(md_device_allocate(context, bytes, "the filter", &memory));
  scratch->ones = memory;
  return md_device_upload(context, scratch->ones, ones, bytes);
}

void md_eigen_scratch_destroy(md_eigen_scratch *scratch) {
  md_field_destroy(&scratch->before);
  md_field_destroy(&scratch->now);
  md_field_destroy(&scratch->next);
  md_field_destroy(&scratch->odd);
  md_device_free(scratch->ones);
  scratch->ones = NULL;
}

/* out = factor (A - centre) in; added to out where `ones` is not NULL */
static md_status shifted(md_context *context, md_dirac *dirac, double factor, double centre,
                         const double *ones, md_field *odd, md_field *out, md_field *in) {
  const md_hop_end end = {.x = in, .a = -factor * centre, .b = -factor};
  const md_hop_step step = {.by = ones};
  MD_TRY(md_dirac_hop(context, dirac, odd, in, NULL));
  return md_dirac_hop_step(context, dirac, out, odd, &end, &step);
}

/* T_{k+1} = 2 x T_k - T_{k-1} with signs s_k, s_{k+1} = -s_{k-1}: then s_{k-1} T_{k-1} only has
 * something added to become s_{k+1} T_{k+1}, which an operator that fuses does on its way. */
md_status md_eigen_filter_apply(md_context *context, md_dirac *dirac, const md_eigen_filter *filter,
                                md_eigen_scratch *s, md_field *out, md_field *in) {
  const double centre = 0.5 * (filter->high + filter->low);
  const double half = 0.5 * (filter->high - filter->low),
               last = filter->degree % 4 < 2 ? 1.0 : -1.0;
  double scale[MD_MAX_RHS], none[MD_MAX_RHS] = {0.0};
  for (int r = 0; r < in->n_rhs; r++) scale[r] = last / chebyshev(filter->degree, -centre / half);
  md_linear_copy(&s->before, in);
  MD_TRY(shifted(context, dirac, 1.0 / half, centre, NULL, &s->odd, &s->now, in));
  for (int k = 1; k < filter->degree; k++) {
    const double factor = (k % 2 ? -2.0 : 2.0) / half;
    md_field *to = s->ones ? &s->before : &s->next;
    MD_TRY(shifted(context, dirac, factor, centre, s->ones, &s->odd, to, &s->now));
    if (!s->ones) md_linear_add(1.0, &s->next, &s->before);
    const md_field swap = s->before;
    s->before = s->now;
    s->now = swap;
  }
  md_linear_axpby(scale, &s->now, none, out);
  return MD_OK;
}
