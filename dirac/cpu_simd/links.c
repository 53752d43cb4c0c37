#include "base/memory.h"
#include "dirac/cpu_simd/cpu_simd.h"

#include <math.h>

static void store(md_precision precision, void *data, int64_t at, double value) {
  switch (precision) {
  case MD_DOUBLE:
    ((double *)data)[at] = value;
    break;
  case MD_SINGLE:
    ((float *)data)[at] = (float)value;
    break;
  case MD_HALF:
    ((uint16_t *)data)[at] = md_half_of_float((float)value);
    break;
  case MD_BF16:
    ((uint16_t *)data)[at] = md_bf16_of_float((float)value);
    break;
  case MD_FIXED:
    ((int16_t *)data)[at] = md_fixed_of_float((float)value);
    break;
  case MD_PRECISIONS:
    break;
  }
}

void md_simd_link_units(const md_links *links, md_precision precision,
                        double unit[MD_MOST_LINK_FIELDS]) {
  for (int f = 0; f < MD_MOST_LINK_FIELDS; f++) {
    const double largest = links->largest[f] > 0.0 ? links->largest[f] : 1.0;
    unit[f] = precision == MD_FIXED ? largest / MD_FIXED_STEPS : 1.0;
  }
}

md_status md_simd_links_create(md_context *context, const md_links *links,
                               const md_backend_request *request, const md_simd_plan *plan,
                               const double unit[MD_MOST_LINK_FIELDS], int parity, void **stored) {
  const int reals = request->reconstruct == MD_RECONSTRUCT_12 ? MD_LINK_12_REALS : MD_LINK_REALS;
  const int lanes = plan->lanes, terms = plan->terms;
  const int64_t per_block = (int64_t)terms * reals * lanes, sites = links->field->geometry->sites;
  MD_TRY(md_allocate(context,
                     (size_t)(plan->blocks * per_block) * md_precision_bytes(request->precision),
                     "links of cpu_simd", stored));
  if (md_counts(context)) return MD_OK;
#pragma omp parallel for schedule(static) num_threads(context->threads)
  for (int64_t block = 0; block < plan->blocks; block++)
    for (int term = 0; term < terms; term++) {
      const int64_t first = plan->site[block];
      const int count = sites - first < lanes ? (int)(sites - first) : lanes;
      const double inverse = 1.0 / unit[term / MD_DIRECTIONS];
      double planes[MD_LINK_REALS * MD_SIMD_MOST_LANES];
      md_links_fold(links, parity, term, first, count, planes);
      for (int c = 0; c < reals; c++)
        for (int l = 0; l < lanes; l++) { /* lanes past the end repeat the last site */
          const int64_t at = lanes > 1 ? (term * reals + c) * lanes + l : c * terms + term;
          store(request->precision, *stored, block * per_block + at,
                inverse * planes[c * count + (l < count ? l : count - 1)]);
        }
    }
  return MD_OK;
}
