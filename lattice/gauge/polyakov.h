#ifndef MD_LATTICE_GAUGE_POLYAKOV_H
#define MD_LATTICE_GAUGE_POLYAKOV_H

#include "lattice/gauge/gauge.h"

#ifdef __cplusplus
extern "C" {
#endif

/* loop = {re, im} of the mean over space of tr[U_t(x,0) U_t(x,1) ... U_t(x,T-1)] / 3 of the bare
 * links, without the fermions' boundary sign: 1 on a cold lattice, 0 but for fluctuations where
 * quarks are confined. Halos are not read. The same to the last bit for every rank grid and thread
 * count. Collective. */
md_status md_polyakov_loop(md_context *context, const md_gauge *gauge, double loop[2]);

#ifdef __cplusplus
}
#endif

#endif
