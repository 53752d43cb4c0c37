#pragma once

#include "base/status.h"

#include <stdint.h>

MD_C_BEGIN

/* Counter-based random numbers: Philox4x64-10 of Random123 (Salmon et al., SC'11,
 * doi:10.1145/2063384.2063405). The stream depends on (seed, purpose, key) alone, so a field
 * that draws with key = global site index is the same for every rank grid and thread count. */
typedef struct md_random {
  uint64_t seed, purpose, key, block;
  uint64_t word[4];
  int left; /* unused words of the block */
} md_random;

/* Two independent normal deviates of unit variance (Box and Muller). */
void md_random_normal(md_random *random, double pair[2]);

MD_C_END
