#include "dirac/eigen/filter.h"
#include "dirac/backend.h"
#include "lattice/fields/linear.h"

#include <math.h>

md_eigen_filter md_eigen_filter_for(double low, double high) {
  enum { STEEP = 2, MOST = 1000 };
  if (!(low < 0.25 * high)) return (md_eigen_filter){1, 0.0, high};
  low = fmax(low, high * STEEP * STEEP / MOST / MOST);
  return (md_eigen_filter){(int)ceil(STEEP * sqrt(high / low)), low, high};
}

/* sigma of the scaled recursion after this one. */
static double next_scale(double first, double sigma) {
  return 1.0 / (2.0 / first - sigma);
}

double md_eigen_filter_value(const md_eigen_filter *filter, double lambda) {
  const double centre = 0.5 * (filter->high + filter->low);
  const double half = 0.5 * (filter->high - filter->low), first = -half / centre;
  double sigma = first, before = 1.0, now = first * (lambda - centre) / half;
  for (int d = 2; d <= filter->degree; d++) {
    const double following = next_scale(first, sigma);
    const double next =
        2.0 * following * (lambda - centre) / half * now - sigma * following * before;
    before = now;
    now = next;
    sigma = following;
  }
  return now;
}

md_status md_eigen_scratch_create(md_context *context, const md_dirac *dirac,
                                  md_eigen_scratch *scratch) {
  *scratch = (md_eigen_scratch){0};
  MD_TRY(md_dirac_field(context, dirac, MD_EVEN, &scratch->before));
  MD_TRY(md_dirac_field(context, dirac, MD_EVEN, &scratch->now));
  MD_TRY(md_dirac_field(context, dirac, MD_EVEN, &scratch->next));
  return md_dirac_field(context, dirac, MD_ODD, &scratch->odd);
}

void md_eigen_scratch_destroy(md_eigen_scratch *scratch) {
  md_field_destroy(&scratch->before);
  md_field_destroy(&scratch->now);
  md_field_destroy(&scratch->next);
  md_field_destroy(&scratch->odd);
}

/* out = factor (A - centre) in */
static md_status shifted(md_context *context, md_dirac *dirac, double factor, double centre,
                         md_field *odd, md_field *out, md_field *in) {
  const md_epilogue end = {.x = in, .a = -factor * centre, .b = -factor};
  MD_TRY(md_dirac_hop(context, dirac, odd, in, NULL));
  return md_dirac_hop(context, dirac, out, odd, &end);
}

md_status md_eigen_filter_apply(md_context *context, md_dirac *dirac, const md_eigen_filter *filter,
                                md_eigen_scratch *s, md_field *out, md_field *in) {
  const double centre = 0.5 * (filter->high + filter->low);
  const double half = 0.5 * (filter->high - filter->low), first = -half / centre;
  double sigma = first, ones[MD_MAX_RHS], minus[MD_MAX_RHS];
  for (int r = 0; r < in->n_rhs; r++) ones[r] = 1.0;
  md_linear_copy(&s->before, in);
  MD_TRY(shifted(context, dirac, first / half, centre, &s->odd, &s->now, in));
  for (int d = 2; d <= filter->degree; d++) {
    const double following = next_scale(first, sigma);
    for (int r = 0; r < in->n_rhs; r++) minus[r] = -sigma * following;
    MD_TRY(shifted(context, dirac, 2.0 * following / half, centre, &s->odd, &s->next, &s->now));
    md_linear_axpby(ones, &s->next, minus, &s->before);
    const md_field swap = s->before;
    s->before = s->now;
    s->now = swap;
    sigma = following;
  }
  md_linear_copy(out, &s->now);
  return MD_OK;
}
