#pragma once

#include "base/status.h"
#include <stdint.h>

/* Division of whole numbers by one that the host knows, as a multiplication and a shift: a division
 * takes a GPU more than a hundred cycles. */

typedef struct md_divisor {
  uint32_t by, magic, shift;
} md_divisor;

/* by >= 1. q = (2 n * magic) >> (32 + shift), magic = ceil(2^(31 + shift) / by), 2^(shift-1) < by
 * <= 2^shift: exact for n < 2^31 (T. Granlund, P. Montgomery, PLDI 1994). */
static inline md_divisor md_divisor_of(int by) {
  uint32_t shift = 0;
  while (1u << shift < (uint32_t)by) shift++;
  const uint64_t power = (uint64_t)1 << (31 + shift), d = (uint64_t)by;
  const md_divisor divisor = {(uint32_t)by, (uint32_t)((power + d - 1) / d), shift};
  return divisor;
}

/* n / by for 0 <= n < 2^31. */
MD_HOST_DEVICE int md_quotient(int n, md_divisor d) {
#ifdef __CUDA_ARCH__
  return (int)(__umulhi(2u * (unsigned)n, d.magic) >> d.shift);
#else
  return (int)((uint32_t)((uint64_t)(2u * (uint32_t)n) * d.magic >> 32) >> d.shift);
#endif
}
