#ifndef MD_IO_MODES_PARTS_H
#define MD_IO_MODES_PARTS_H

#include "io/bundle.h"
#include "io/modes_file.h"

/* Inside of io: what writing and reading modes have in common. */
#define MD_MODES_GROUP "/modes"
#define MD_MODES_VECTORS "/modes/vectors"

/* The dataset of `count` modes. */
static inline md_h5_shape md_modes_shape(int count, md_precision store) {
  if (store == MD_FIXED) return (md_h5_shape){.lead = count, .one_parity = true, .fixed8 = true};
  return (md_h5_shape){.lead = count,
                       .one_parity = true,
                       .inner = {MD_FERMION_REALS / 2},
                       .real_bytes = (int)md_precision_bytes(store)};
}

/* A site of fixed8 in memory, see md_h5_fixed8; its numbers are steps * scale * that of the file.
 */
enum { MD_FIXED8_STEPS = 127 };
typedef struct md_fixed8 {
  uint16_t scale; /* binary16 */
  int8_t steps[2][MD_FERMION_REALS / 2];
} md_fixed8;
/* `sites` times six doubles, (re, im) of each colour, to as many md_fixed8 in place, and back: the
 * scale of a site is the smallest binary16 that brings its largest number to MD_FIXED8_STEPS at
 * most. */
void md_fixed8_pack(void *raw, int64_t sites, double scale);
void md_fixed8_unpack(void *raw, int64_t sites, double scale);

/* What half and the scales of fixed8 are multiplied with on reading: about the size of a unit
 * vector's components, a power of two, so that nothing is lost. */
double md_modes_scale(const int dims[MD_DIMS], md_precision store);

#endif
