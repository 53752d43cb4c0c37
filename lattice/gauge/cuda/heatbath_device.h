#ifndef MD_LATTICE_GAUGE_CUDA_HEATBATH_DEVICE_H
#define MD_LATTICE_GAUGE_CUDA_HEATBATH_DEVICE_H

#include "lattice/fields/sum.h"
#include "lattice/gauge/cuda/staples_device.h"
#include "lattice/gauge/heatbath_kernels.h"

/* The steps of the heatbath for links on the device. */
md_heatbath_kernels md_heatbath_kernels_device(void);

/* Adds Re tr of this rank's plaquettes, those of the planes in space to sums[0] and those with time
 * to sums[1]. Each site's sum is rounded once, to multiples of 2^-50, and what is added then are
 * integers: the same bits for every rank grid. A sum that is not finite stays so. Halos exchanged;
 * waits for the device. Local. */
md_status md_plaquette_sums_device(md_context *context, const md_staple_tables *tables,
                                   const md_gauge *gauge, md_sum sums[2]);

#endif
