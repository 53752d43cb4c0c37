#pragma once

#include "lattice/fields/field.h"

MD_C_BEGIN

/* Bare SU(3) links in double: no phases, no boundary signs. links[p][mu] holds U_mu(x) of the
 * sites x of parity p as 18 planes, with halo. */
typedef struct md_gauge {
  md_field links[MD_PARITIES][MD_DIMS];
  const md_geometry *geometry;
} md_gauge;

/* Allocates unit links on the host. Local. */
md_status md_gauge_create(md_context *context, const md_geometry *geometry, md_gauge *gauge);
/* Allocates links of zeros in a space; the functions on links below want them on the host, but for
 * the copy and the destruction. Local. */
md_status md_gauge_allocate(md_context *context, const md_geometry *geometry, md_space space,
                            md_gauge *gauge);
/* Bytes that it allocates. */
int64_t md_gauge_bytes(const md_geometry *geometry);
void md_gauge_destroy(md_gauge *gauge);

/* to = from over the local sites, in any two spaces; what is queued on the device is waited for
 * where links come to the host. Local. */
md_status md_gauge_copy(md_context *context, md_gauge *to, const md_gauge *from);

/* Assign all links, halos included. Collective. Cold: unit links. Hot: links uniform over SU(3),
 * drawn by (seed, mu, global site) and thus the same for every rank grid and thread count. */
md_status md_gauge_start_cold(md_context *context, md_gauge *gauge);
md_status md_gauge_start_hot(md_context *context, md_gauge *gauge, uint64_t seed);

/* One matrix of a field of them, [row][column][re, im]; the site may lie in the halo for the
 * getter. */
static inline void md_matrix_get(const md_field *f, int64_t site, double u[MD_LINK_REALS]) {
  for (int c = 0; c < MD_LINK_REALS; c++) u[c] = ((const double *)f->data)[c * f->stride + site];
}
static inline void md_matrix_set(const md_field *f, int64_t site, const double u[MD_LINK_REALS]) {
  for (int c = 0; c < MD_LINK_REALS; c++) ((double *)f->data)[c * f->stride + site] = u[c];
}
/* The same of one link. */
static inline void md_gauge_get(const md_gauge *g, int parity, int mu, int64_t site,
                                double u[MD_LINK_REALS]) {
  md_matrix_get(&g->links[parity][mu], site, u);
}
/* As a file in MD_SINGLE, or MD_DOUBLE, has it. GCC 12 at -O3 leaves the last two of 18 as they are
 * where it may vectorise the loop, which volatile forbids. */
static inline void md_gauge_get_in(const md_gauge *g, md_precision precision, int parity, int mu,
                                   int64_t site, double u[MD_LINK_REALS]) {
  md_gauge_get(g, parity, mu, site, u);
  for (int c = 0; c < MD_LINK_REALS && precision == MD_SINGLE; c++) {
    const volatile float stored = (float)u[c];
    u[c] = stored;
  }
}
static inline void md_gauge_set(md_gauge *g, int parity, int mu, int64_t site,
                                const double u[MD_LINK_REALS]) {
  md_matrix_set(&g->links[parity][mu], site, u);
}

/* Fills the halos of all links. Collective; after any change of links and before
 * md_gauge_observe or a backend's load. */
md_status md_gauge_exchange(md_context *context, md_gauge *gauge);

/* Means of Re tr / 3 over the six planes, the three space-space ones, the three space-time ones. */
typedef struct md_plaquettes {
  double mean, space_space, space_time;
} md_plaquettes;
/* From the sums of Re tr over the whole lattice. */
static inline md_plaquettes md_plaquettes_of(double space, double time, const md_geometry *g) {
  const double planes = 9.0 * (double)g->volume; /* three planes, trace of three */
  const md_plaquettes means = {(space + time) / (2.0 * planes), space / planes, time / planes};
  return means;
}

typedef struct md_gauge_observables {
  double plaquette;           /* Re tr / 3, mean of the six planes; 1 on a cold lattice */
  double plaquette_ss;        /* mean of the three space-space planes */
  double plaquette_st;        /* mean of the three space-time planes */
  double link_trace;          /* Re tr / 3, mean of the 4V links */
  double norm2;               /* sum of the nine |elements|^2, / 3, likewise */
  double unitarity_deviation; /* largest |(U U^dag - 1)_ij| or |det U - 1| of all links, infinite
                                 where that is no number; NaN where a link is not finite */
  long long bad_links;        /* links with a component that is NaN or infinite */
} md_gauge_observables;

/* Needs exchanged halos. The same to the last bit for every rank grid and thread count. Collective.
 */
md_status md_gauge_observe(md_context *context, const md_gauge *gauge,
                           md_gauge_observables *observables);
/* The same of the links that a file in MD_SINGLE, or MD_DOUBLE, has of these. */
md_status md_gauge_observe_in(md_context *context, const md_gauge *gauge, md_precision precision,
                              md_gauge_observables *observables);

/* loop = {re, im} of the mean over space of tr[U_t(x,0) U_t(x,1) ... U_t(x,T-1)] / 3 of the bare
 * links that a file in MD_SINGLE, or MD_DOUBLE, has of these, without the fermions' boundary sign:
 * 1 on a cold lattice, 0 but for fluctuations where quarks are confined. Halos are not read. The
 * same to the last bit for every rank grid and thread count. Collective. */
md_status md_polyakov_loop(md_context *context, const md_gauge *gauge, md_precision precision,
                           double loop[2]);

MD_C_END
