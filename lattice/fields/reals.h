#pragma once

/* What loops over fields on the host share: the reals of a field of any precision as numbers of
 * the type of arithmetic MD_REAL, double where the includer says nothing else; the scales of
 * sites; cells of sites; rows of reals. */
#include "lattice/fields/field.h"

#include <string.h>

#define MD_INLINE static inline __attribute__((always_inline))
#ifndef MD_REAL
#define MD_REAL double
#endif

/* md_precision_scaled, of a precision that the compiler may know. */
static inline bool md_is_scaled(md_precision precision) {
  return precision == MD_HALF || precision == MD_FIXED;
}

/* X(precision, stored type, to float, from float) of those that are not MD_DOUBLE. */
#define MD_NARROW_REALS(X)                                                                         \
  X(MD_SINGLE, float, , )                                                                          \
  X(MD_HALF, uint16_t, md_float_of_half, md_half_of_float)                                         \
  X(MD_BF16, uint16_t, md_float_of_bf16, md_bf16_of_float)                                         \
  X(MD_FIXED, int16_t, md_float_of_fixed, md_fixed_of_float)

/* to[i], i < count: the reals of a field's data from element `at` on, as they are stored, without
 * scales. Short runs of doubles are copied in pieces: a call would take longer than the copy. */
MD_INLINE void md_load_reals(md_precision precision, const void *data, int64_t at, int count,
                             MD_REAL *to) {
#define MD_LOAD_EACH(ID, STORED, LOAD, STORE)                                                      \
  case ID:                                                                                         \
    for (int i = 0; i < count; i++) to[i] = (MD_REAL)LOAD(((const STORED *)data)[at + i]);         \
    break;
  enum { AT_ONCE = 4 };
  int done = 0;
  switch (precision) {
    MD_NARROW_REALS(MD_LOAD_EACH)
  case MD_DOUBLE:
    for (; sizeof *to == sizeof(double) && done + AT_ONCE <= count; done += AT_ONCE)
      memcpy(to + done, (const double *)data + at + done, AT_ONCE * sizeof *to);
    for (; done < count; done++) to[done] = (MD_REAL)((const double *)data)[at + done];
    break;
  case MD_PRECISIONS:
    break;
  }
#undef MD_LOAD_EACH
}

/* The way back, each rounded to the type. */
static inline void md_store_reals(md_precision precision, void *restrict data, int64_t at,
                                  int count, const MD_REAL *from) {
#define MD_STORE_EACH(ID, STORED, LOAD, STORE)                                                     \
  case ID:                                                                                         \
    for (int i = 0; i < count; i++) ((STORED *)data)[at + i] = STORE((float)from[i]);              \
    break;
  switch (precision) {
    MD_NARROW_REALS(MD_STORE_EACH)
  case MD_DOUBLE:
    for (int i = 0; i < count; i++) ((double *)data)[at + i] = (double)from[i];
    break;
  case MD_PRECISIONS:
    break;
  }
#undef MD_STORE_EACH
}

/* A real as it is stored, without a scale. */
static inline MD_REAL md_stored(md_precision precision, MD_REAL value) {
  double stored;
  md_store_reals(precision, &stored, 0, 1, &value);
  md_load_reals(precision, &stored, 0, 1, &value);
  return value;
}

/* The bits of the larger magnitude: ordered as the magnitudes are, NaN above all. */
static inline int32_t md_larger_bits(int32_t largest, float value) {
  const union {
    float value;
    int32_t bits;
  } word = {value};
  return (word.bits & INT32_MAX) > largest ? word.bits & INT32_MAX : largest;
}
/* The scale of a site from the bits of its largest component. */
static inline float md_scale_of_bits(md_precision precision, int32_t largest) {
  const int32_t one = 1 << 23, smallest = one; /* in the exponent; MD_SCALE_OF_ZERO */
  union {
    int32_t bits;
    float value;
  } scale = {largest};
  if (precision == MD_FIXED)
    scale.value *= 1.0f / MD_FIXED_STEPS;
  else
    scale.bits = (int32_t)(((uint32_t)largest + MD_HALF_CARRY) & 0x7f800000) - 14 * one;
  if (scale.bits < smallest) scale.bits = smallest;
  return scale.value;
}

/* The sites of a cell, the eight of one parity in an aligned 2x2x2x2 cube, by half the coordinates
 * of its first one; site[corner]: bit 0 is y, 1 z, 2 t. */
enum { MD_CORNERS = 8 };
static inline void md_cell_sites(const md_geometry *g, const int64_t half[MD_DIMS],
                                 int64_t site[MD_CORNERS]) {
  const int64_t row = g->local[0] / 2, plane = row * g->local[1], slice = plane * g->local[2];
  const int64_t first = half[0] + 2 * (half[1] * row + half[2] * plane + half[3] * slice);
  for (int k = 0; k < MD_CORNERS; k++)
    site[k] = first + (k & 1) * row + (k >> 1 & 1) * plane + (k >> 2) * slice;
}

/* A row of (re, im) pairs, and what belongs to the imaginary part of its partner: with sign 1
 * (-im, re), for rows of coefficients, with -1 (im, -re), for the right operand of <x, y>. */
MD_INLINE void md_turn_row(int reals, double sign, const double *from, double *restrict plain,
                           double *restrict turned) {
  for (int l = 0; l < reals; l += 2) {
    plain[l] = from[l];
    plain[l + 1] = from[l + 1];
    turned[l] = -sign * from[l + 1];
    turned[l + 1] = sign * from[l];
  }
}

/* Reals of a padded row of n complex numbers, a multiple of the chunk. */
static inline int md_padded(int n, int chunk) {
  return (2 * n + chunk - 1) / chunk * chunk;
}
