#ifndef MD_LATTICE_GAUGE_CUDA_STAPLES_DEVICE_H
#define MD_LATTICE_GAUGE_CUDA_STAPLES_DEVICE_H

#include "lattice/gauge/staple_kernels.h"

/* The kernels of smearing for links on the device. They are queued; what goes wrong in them is met
 * by the next call that returns a status. */
md_staple_kernels md_staple_kernels_device(void);
/* Neighbours and counters on the device. MD_ENVIRONMENT for memory or no GPU. Local. */
md_status md_staple_tables_create_device(md_context *context, const md_geometry *geometry,
                                         md_staple_tables *tables);
void md_staple_tables_destroy_device(md_staple_tables *tables);

#endif
