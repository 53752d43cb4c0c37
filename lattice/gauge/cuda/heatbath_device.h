#pragma once

#include "lattice/fields/sum.h"
#include "lattice/gauge/heatbath_math.h"
#include "lattice/gauge/staple_kernels.h"

/* Inside of the heatbath: renews the links of direction mu at the local sites of `parity`. `lower`
 * holds the staples below them of the three other directions, rising, at the sites of the other
 * parity with halos exchanged. The neighbours are in the space of the links. */
typedef void md_link_renewal(const md_staple_tables *tables, md_gauge *gauge, const md_field *lower,
                             int parity, int mu, const md_link_update *how);

/* That of links on the device: queued; what goes wrong in it is met by the next call that returns a
 * status. */
md_link_renewal md_heatbath_renew_device;

/* Adds Re tr of this rank's plaquettes, those of the planes in space to sums[0] and those with time
 * to sums[1]. Each site's sum is rounded once, to multiples of 2^-50, and what is added then are
 * integers: the same bits for every rank grid. A sum that is not finite stays so. Halos exchanged;
 * waits for the device. Local. */
md_status md_plaquette_sums_device(md_context *context, const md_staple_tables *tables,
                                   const md_gauge *gauge, md_sum sums[2]);
