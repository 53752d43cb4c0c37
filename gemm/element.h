#ifndef MD_GEMM_ELEMENT_H
#define MD_GEMM_ELEMENT_H

#include "base/precision.h"
#include "gemm/gemm.h"
#include <math.h>

/* Single elements of a matrix in its storage type, as double. For the oracle and the checks; no
 * kernel that is timed for its speed goes through here. */

static inline double md_gemm_load(md_gemm_precision precision, const void *data, int64_t at) {
  switch (precision) {
  case MD_GEMM_DOUBLE:
    return ((const double *)data)[at];
  case MD_GEMM_HALF:
    return md_float_of_half(((const uint16_t *)data)[at]);
  case MD_GEMM_BF16:
    return md_float_of_bf16(((const uint16_t *)data)[at]);
  default:
    return ((const float *)data)[at];
  }
}

/* The value rounded to what the kernel sees: TF32 operands keep 10 mantissa bits. */
static inline void md_gemm_store(md_gemm_precision precision, void *data, int64_t at,
                                 double value) {
  switch (precision) {
  case MD_GEMM_DOUBLE:
    ((double *)data)[at] = value;
    return;
  case MD_GEMM_HALF:
    ((uint16_t *)data)[at] = md_half_of_float((float)value);
    return;
  case MD_GEMM_BF16:
    ((uint16_t *)data)[at] = md_bf16_of_float((float)value);
    return;
  case MD_GEMM_TF32: {
    union {
      float f;
      uint32_t u;
    } v = {(float)value};
    v.u = (v.u + 0xfffu + ((v.u >> 13) & 1u)) & ~0x1fffu;
    ((float *)data)[at] = v.f;
    return;
  }
  default:
    ((float *)data)[at] = (float)value;
  }
}

/* The type of C that belongs to inputs of `precision`. */
static inline md_gemm_precision md_gemm_output(md_gemm_precision precision) {
  return precision == MD_GEMM_DOUBLE ? MD_GEMM_DOUBLE : MD_GEMM_SINGLE;
}

#endif
