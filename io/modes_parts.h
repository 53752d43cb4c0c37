#ifndef MD_IO_MODES_PARTS_H
#define MD_IO_MODES_PARTS_H

#include "io/bundle.h"
#include "io/modes_file.h"

/* Inside of io: what writing and reading modes have in common. */
#define MD_MODES_GROUP "/modes"
#define MD_MODES_VECTORS "/modes/vectors"

/* The dataset of `count` modes. */
static inline md_h5_shape md_modes_shape(int count, md_precision store) {
  return (md_h5_shape){.lead = count,
                       .one_parity = true,
                       .inner = {MD_FERMION_REALS / 2},
                       .real_bytes = (int)md_precision_bytes(store)};
}

/* What half is multiplied with on reading: about the size of a unit vector's components, a power of
 * two, so that nothing is lost. */
double md_modes_scale(const int dims[MD_DIMS], md_precision store);

#endif
