#ifndef MD_LATTICE_GAUGE_REUNITARIZE_H
#define MD_LATTICE_GAUGE_REUNITARIZE_H

#include "lattice/gauge/gauge.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Thin links that were rounded in a file, back onto SU(3) in double: each becomes the matrix of
 * U(3) nearest to it (project.h) over the cube root of its determinant. *change: the largest
 * |W - U|_ij of all links. MD_INPUT, naming the file, where that is above MD_THIN_TOLERANCE
 * (smear.h): such links are damaged, or fat, not rounded; they are then of no use. Exchanges halos.
 * Collective. */
md_status md_gauge_reunitarize(md_context *context, const char *path, md_gauge *gauge,
                               double *change);

#ifdef __cplusplus
}
#endif

#endif
