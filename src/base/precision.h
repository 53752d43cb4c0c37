#pragma once

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

MD_C_BEGIN

/* The table of storage types: X(id, name, bytes of a real, unit roundoff, fermions carry scales).
 * Everything that lists precisions is made from it. The roundoff of MD_FIXED is half a step,
 * relative to the unit. */
#define MD_NARROW_PRECISION_TABLE(X)                                                               \
  X(MD_SINGLE, "single", 4, 0x1p-24, false)                                                        \
  X(MD_HALF, "half", 2, 0x1p-11, true)                                                             \
  X(MD_BF16, "bf16", 2, 0x1p-8, false)                                                             \
  X(MD_FIXED, "fixed", 2, 0x1p-16, true)
#define MD_PRECISION_TABLE(X) X(MD_DOUBLE, "double", 8, 0x1p-53, false) MD_NARROW_PRECISION_TABLE(X)

/* The names of such a table as words of a choice: "all" MD_PRECISION_WORDS is "all|double|...",
 * &(MD_PRECISION_WORDS)[1] is "double|...". */
#define MD_WORD(id, name, ...) "|" name
#define MD_PRECISION_WORDS MD_PRECISION_TABLE(MD_WORD)
#define MD_NARROW_PRECISION_WORDS MD_NARROW_PRECISION_TABLE(MD_WORD)

/* Arithmetic is double for MD_DOUBLE and float for the others. MD_FIXED is a 16-bit
 * integer of MD_FIXED_STEPS steps to the unit, which is 1 for links and the largest component of a
 * site for fermions. */
typedef enum md_precision {
#define MD_ROW(id, ...) id,
  MD_PRECISION_TABLE(MD_ROW)
#undef MD_ROW
      MD_PRECISIONS
} md_precision;
enum { MD_FIXED_STEPS = 32767 };
/* The largest number of a site in MD_HALF. A float in [2^14, 2^15) that rounds to a larger one
 * takes the scale above: MD_HALF_CARRY, half a step of MD_HALF, brings its bits to the next
 * exponent. */
enum { MD_HALF_MOST = (1 << 15) - 16, MD_HALF_CARRY = 1 << 12 };

/* Bytes of one stored real: 8, 4, 2, 2, 2. */
size_t md_precision_bytes(md_precision precision);
/* "double", "single", "half", "bf16", "fixed". */
const char *md_precision_name(md_precision precision);
/* The precision of that name, or -1. */
int md_precision_of(const char *name);
/* Unit roundoff of the storage type: 2^-53, 2^-24, 2^-11, 2^-8; 2^-16 for MD_FIXED, half a step,
 * relative to the unit. */
double md_precision_roundoff(md_precision precision);
/* True where fermions carry a scale for each site (lattice/fields/field.h): half and fixed. */
bool md_precision_scaled(md_precision precision);

/* IEEE binary16 <-> float, round to nearest even, overflow to infinity, NaN kept. Integer and
 * float arithmetic only, no branches, so that the compiler can vectorise loops of them. */
static inline float md_float_of_half(uint16_t h) {
  const uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
  const uint32_t shifted = (uint32_t)(h & 0x7fffu) << 13;
  union {
    uint32_t u;
    float f;
  } value = {shifted}, magic = {0x77800000u /* 2^112 */}, special;
  value.f *= magic.f; /* exponent bias 15 -> 127; subnormals become normal, exactly */
  special.u = shifted | 0x7f800000u;
  value.u = ((h & 0x7c00u) == 0x7c00u ? special.u : value.u) | sign;
  return value.f;
}

static inline uint16_t md_half_of_float(float f) {
  union {
    float f;
    uint32_t u;
  } v = {f}, sub = {f};
  const uint32_t sign = (v.u >> 16) & 0x8000u;
  v.u &= 0x7fffffffu;
  sub.u = v.u;
  sub.f += 0.5f; /* result below 2^-14: the sum's last bit is worth 2^-24, rounding to even */
  const uint32_t small = sub.u - 0x3f000000u;
  const uint32_t normal = (v.u - 0x38000000u + 0xfffu + ((v.u >> 13) & 1u)) >> 13;
  /* Masks, as compilers make jumps of nested conditions, which keeps loops from vectorising. */
  const uint32_t nan = -(uint32_t)(v.u > 0x7f800000u), large = -(uint32_t)(v.u >= 0x47800000u);
  const uint32_t tiny = -(uint32_t)(v.u < 0x38800000u);
  const uint32_t finite = (tiny & small) | (~tiny & normal);
  return (uint16_t)(sign | (nan & 0x0200u) | (large & 0x7c00u) | (~large & finite));
}

/* bfloat16: the upper half of a float, round to nearest even, NaN kept. */
static inline float md_float_of_bf16(uint16_t b) {
  union {
    uint32_t u;
    float f;
  } value = {(uint32_t)b << 16};
  return value.f;
}

static inline uint16_t md_bf16_of_float(float f) {
  union {
    float f;
    uint32_t u;
  } v = {f};
  const uint32_t rounded = (v.u + 0x7fffu + ((v.u >> 16) & 1u)) >> 16;
  const uint32_t quiet_nan = (v.u >> 16) | 0x40u;
  return (uint16_t)((v.u & 0x7fffffffu) > 0x7f800000u ? quiet_nan : rounded);
}

/* Steps: to nearest even, saturating; NaN gives any number, so that a scale has to carry it. */
static inline float md_float_of_fixed(int16_t steps) {
  return (float)steps;
}

static inline int16_t md_fixed_of_float(float f) {
  const float most = (float)MD_FIXED_STEPS, low = f < -most ? -most : f;
  union {
    float f;
    uint32_t u;
  } v = {(low > most ? most : low) + 0x1.8p23f};
  return (int16_t)(uint16_t)(v.u - 0x4b400000u); /* the bits of 1.5 * 2^23 */
}

MD_C_END
