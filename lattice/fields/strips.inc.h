/* Strips of a field for the vector operations of linear_host.inc.h, by the macros that it states.
 *
 * Work goes in strips: `planes` rows of `lanes` consecutive reals, `distance` apart. With one
 * right-hand side a strip is up to MOST_LANES neighbouring sites of a row (6 planes); with many it
 * is one site (3 colours of n_rhs complex numbers). Lanes map to right-hand sides by their index,
 * so both layouts run through the same loops. */

#include "base/precision.h"
#include "lattice/fields/field.h"

enum { MOST_LANES = 2 * MD_MAX_RHS, MOST_PLANES = 6, MOST_REALS = 3 * MOST_LANES };
_Static_assert(MOST_PLANES *(MOST_LANES / 2) <= MOST_REALS, "one right-hand side: half the lanes");

typedef struct strip {
  int64_t site; /* first site */
  int64_t start, distance;
  int planes, lanes;
} strip;

/* The strip of `sites` sites from `site`; sites > 1 only with one right-hand side. */
static strip strip_at(const md_field *f, int64_t site, int sites) {
  if (f->n_rhs == 1) return (strip){site, site, f->stride, f->components, sites};
  const int lanes = 2 * f->n_rhs;
  return (strip){site, site * (f->components / 2) * lanes, lanes, f->components / 2, lanes};
}

/* Where the values of a strip are: lane l of plane c at at[c * distance + l]. */
typedef struct view {
  ARITH *at;
  int64_t distance;
} view;

/* True when the values are used where they lie: nothing to convert. That holds for every operand
 * of a DIRECT type, and for one in the arithmetic type beside 16-bit ones. */
static bool in_place(const md_field *f) {
  return DIRECT || (sizeof(STORED) == sizeof(uint16_t) && f->precision == MD_SINGLE);
}

/* The field's own memory, or `buffer` with the converted values. */
static inline view strip_load(const md_field *f, const strip *s, ARITH *buffer) {
  if (in_place(f)) return (view){(ARITH *)f->data + s->start, s->distance};
  const STORED *data = (const STORED *)f->data + s->start;
  for (int c = 0; c < s->planes; c++)
    for (int l = 0; l < s->lanes; l++) buffer[c * s->lanes + l] = LOAD(data[c * s->distance + l]);
#if SCALED
  const float *scale = f->scale + s->site;
  for (int c = 0; c < s->planes; c++) {
    ARITH *values = buffer + c * s->lanes;
    if (f->n_rhs == 1)
      for (int l = 0; l < s->lanes; l++) values[l] *= scale[l];
    else
      for (int l = 0; l < s->lanes; l++) values[l] *= scale[0];
  }
#endif
  return (view){buffer, s->lanes};
}

#if SCALED
/* A float and its bits, which are ordered as the magnitudes are, NaN above all. */
typedef union word {
  float value;
  int32_t bits;
} word;

static inline int32_t larger(int32_t largest, float value) {
  const int32_t size = (word){value}.bits & INT32_MAX;
  return size > largest ? size : largest;
}

/* Sets new scales; changes `values`. */
static inline void strip_rescale(const md_field *f, const strip *s, float *values) {
  int32_t largest[MOST_LANES] = {0};
  float inverse[MOST_LANES], *scale = f->scale + s->site;
  if (f->n_rhs > 1) { /* one scale for the site */
    for (int i = 0; i < s->planes * s->lanes; i++) largest[0] = larger(largest[0], values[i]);
    scale[0] = (word){.bits = md_field_scale_bits(PRECISION, largest[0])}.value;
    inverse[0] = 1.0f / scale[0];
    for (int i = 0; i < s->planes * s->lanes; i++) values[i] *= inverse[0];
    return;
  }
  for (int c = 0; c < s->planes; c++)
    for (int l = 0; l < s->lanes; l++) largest[l] = larger(largest[l], values[c * s->lanes + l]);
  for (int l = 0; l < s->lanes; l++) {
    scale[l] = (word){.bits = md_field_scale_bits(PRECISION, largest[l])}.value;
    inverse[l] = 1.0f / scale[l];
  }
  for (int c = 0; c < s->planes; c++)
    for (int l = 0; l < s->lanes; l++) values[c * s->lanes + l] *= inverse[l];
}
#endif

/* i times the values: (re, im) are neighbouring planes of one right-hand side, neighbouring lanes
 * of many. */
static inline view strip_turn(const md_field *f, const strip *s, view v, ARITH *buffer) {
  for (int c = 0; c < s->planes; c++) {
    ARITH *turned = buffer + c * s->lanes;
    const ARITH *other = v.at + (f->n_rhs == 1 ? c ^ 1 : c) * v.distance;
    if (f->n_rhs > 1)
      for (int l = 0; l < s->lanes; l += 2) {
        turned[l] = -other[l + 1];
        turned[l + 1] = other[l];
      }
    else if (c & 1)
      for (int l = 0; l < s->lanes; l++) turned[l] = other[l];
    else
      for (int l = 0; l < s->lanes; l++) turned[l] = -other[l];
  }
  return (view){buffer, s->lanes};
}

/* Ends a change of the values of `v`; nothing is left to do where they lie in the field. */
static inline void strip_store(const md_field *f, const strip *s, view v) {
  if (in_place(f)) return;
#if SCALED
  strip_rescale(f, s, v.at);
#endif
  STORED *data = (STORED *)f->data + s->start;
  for (int c = 0; c < s->planes; c++)
    for (int l = 0; l < s->lanes; l++) data[c * s->distance + l] = STORE(v.at[c * s->lanes + l]);
}

/* A coefficient for every lane; NULL: one. */
static void spread(const md_field *f, const double *coefficient, ARITH lane[MOST_LANES]) {
  for (int l = 0; l < MOST_LANES; l++) {
    const int rhs = f->n_rhs > 1 && l / 2 < f->n_rhs ? l / 2 : 0;
    lane[l] = coefficient ? (ARITH)coefficient[rhs] : 1;
  }
}

static int sites_per_strip(const md_field *f) {
  return f->n_rhs == 1 ? MOST_LANES / 2 : 1;
}
