#pragma once

#include "lattice/fields/sum.h"
#include "lattice/gauge/heatbath_math.h"
#include "lattice/gauge/staple_kernels.h"

/* Inside of the heatbath: its two steps, each one pass over the local sites of one parity, for
 * links on the host or on the device. Those of the device are queued; what goes wrong in them is
 * met by the next call that returns a status. The neighbours are in the space of the links. */
typedef struct md_heatbath_kernels {
  /* lower(y) = U_nu(y)^dag U_mu(y) U_nu(y+mu) at the sites y of `parity`: the staple that the site
   * y+nu reads. */
  void (*lower)(const md_staple_tables *tables, const md_gauge *gauge, int parity, int mu, int nu,
                md_field *lower);
  /* The links of direction mu at the sites of `parity`; `lower` holds the staples below them of the
   * three other directions, rising, at the sites of the other parity with halos exchanged. */
  void (*renew)(const md_staple_tables *tables, md_gauge *gauge, const md_field *lower, int parity,
                int mu, const md_link_update *how);
} md_heatbath_kernels;

/* Those for links on the device. */
md_heatbath_kernels md_heatbath_kernels_device(void);

/* Adds Re tr of this rank's plaquettes, those of the planes in space to sums[0] and those with time
 * to sums[1]. Each site's sum is rounded once, to multiples of 2^-50, and what is added then are
 * integers: the same bits for every rank grid. A sum that is not finite stays so. Halos exchanged;
 * waits for the device. Local. */
md_status md_plaquette_sums_device(md_context *context, const md_staple_tables *tables,
                                   const md_gauge *gauge, md_sum sums[2]);
