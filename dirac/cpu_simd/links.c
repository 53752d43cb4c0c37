#include "base/memory.h"
#include "dirac/cpu_simd/cpu_simd.h"

/* The link that direction d of a site multiplies its neighbour with: U or U^dag, with sign. */
static void folded_link(const md_gauge *gauge, int parity, int64_t site, int d, bool minus,
                        double u[MD_LINK_REALS]) {
  const double sign = minus ? -1.0 : 1.0;
  double bare[MD_LINK_REALS];
  if (d < MD_DIMS) {
    md_gauge_get(gauge, parity, d, site, bare);
    for (int c = 0; c < MD_LINK_REALS; c++) u[c] = sign * bare[c];
    return;
  }
  md_gauge_get(gauge, 1 - parity, d - MD_DIMS, gauge->geometry->neighbour[parity][d][site], bare);
  for (int row = 0; row < 3; row++)
    for (int column = 0; column < 3; column++) {
      u[(row * 3 + column) * 2] = sign * bare[(column * 3 + row) * 2];
      u[(row * 3 + column) * 2 + 1] = -sign * bare[(column * 3 + row) * 2 + 1];
    }
}

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
    ((int16_t *)data)[at] = md_fixed_of_float((float)(value * MD_FIXED_STEPS));
    break;
  case MD_PRECISIONS:
    break;
  }
}

md_status md_simd_links_create(md_context *context, const md_gauge *gauge,
                               const md_backend_request *request, const md_simd_plan *plan,
                               int parity, void **links) {
  const int reals = request->reconstruct == MD_RECONSTRUCT_12 ? MD_LINK_12_REALS : MD_LINK_REALS;
  const int lanes = plan->lanes;
  const int64_t per_block = (int64_t)MD_DIRECTIONS * reals * lanes, sites = gauge->geometry->sites;
  MD_TRY(md_allocate(context,
                     (size_t)(plan->blocks * per_block) * md_precision_bytes(request->precision),
                     "links of cpu_simd", links));
#pragma omp parallel for schedule(static) num_threads(context->threads)
  for (int64_t block = 0; block < plan->blocks; block++)
    for (int d = 0; d < MD_DIRECTIONS; d++)
      for (int l = 0; l < lanes; l++) {
        const int64_t site = plan->site[block] + l < sites ? plan->site[block] + l : sites - 1;
        const bool minus = plan->sign[block * MD_DIRECTIONS + d] >> l & 1;
        double u[MD_LINK_REALS];
        folded_link(gauge, parity, site, d, minus, u);
        for (int c = 0; c < reals; c++) {
          const int64_t at = lanes > 1 ? (d * reals + c) * lanes + l : c * MD_DIRECTIONS + d;
          store(request->precision, *links, block * per_block + at, u[c]);
        }
      }
  return MD_OK;
}
