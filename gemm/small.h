#ifndef MD_GEMM_SMALL_H
#define MD_GEMM_SMALL_H

#include "gemm/gemm.h"

/* What the small kernels (transpose, shift, gemv) have in common: dense matrices of 4-byte
 * elements, int32_t or float. Integers are added as they are: the caller keeps sums below 2^31. */
typedef enum md_small_type { MD_SMALL_INTEGER, MD_SMALL_SINGLE, MD_SMALL_TYPES } md_small_type;

enum { MD_SMALL_BYTES = 4 }; /* of an element */

/* Where a tile from `begin` ends in a matrix of `extent`. */
static inline int64_t md_small_tile_end(int64_t begin, int tile, int64_t extent) {
  return begin + tile < extent ? begin + tile : extent;
}

#endif
