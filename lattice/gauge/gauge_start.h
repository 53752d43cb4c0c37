#ifndef MD_LATTICE_GAUGE_GAUGE_START_H
#define MD_LATTICE_GAUGE_GAUGE_START_H

#include "lattice/gauge/gauge.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Assign all links, halos included. Collective. Cold: unit links. Hot: links uniform over SU(3),
 * drawn by (seed, mu, global site) and thus the same for every rank grid and thread count. */
md_status md_gauge_start_cold(md_context *context, md_gauge *gauge);
md_status md_gauge_start_hot(md_context *context, md_gauge *gauge, uint64_t seed);

#ifdef __cplusplus
}
#endif

#endif
