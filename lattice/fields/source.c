#include "lattice/fields/source.h"
#include "base/random_math.h"

#include <math.h>
#include <string.h>

enum {
  PURPOSE_NOISE = 0x6e6f6973,
  PURPOSE_GAUSSIAN = 0x67617573,
  PURPOSE_PHASE = 0x70686173,
  PURPOSE_COLOUR = 0x636f6c6f
};

static md_random stream(const md_source_vector *v, uint64_t purpose, int64_t site) {
  return md_random_begin(v->seed, purpose + ((uint64_t)v->number << 32), (uint64_t)site);
}

static void z2_noise(const md_source_vector *v, int64_t site, int components, double *out) {
  md_random random = stream(v, PURPOSE_NOISE, site);
  uint64_t bits = 0;
  for (int c = 0; c < components; c++) {
    if (c % 64 == 0) bits = md_random_next_bits(&random);
    out[c] = bits >> (63 - c % 64) & 1 ? M_SQRT1_2 : -M_SQRT1_2;
  }
}

static void u1_noise(const md_source_vector *v, int64_t site, int components, double *out) {
  md_random random = stream(v, PURPOSE_PHASE, site);
  for (int c = 0; c < components; c += 2) {
    const double angle = 2.0 * M_PI * md_random_next_uniform(&random);
    out[c] = cos(angle);
    out[c + 1] = sin(angle);
  }
}

static void normal_deviates(md_random random, double scale, int components, double *out) {
  for (int c = 0; c < components; c += 2) {
    md_random_normal(&random, out + c);
    out[c] *= scale;
    out[c + 1] *= scale;
  }
}

/* Normal deviates have no preferred direction. */
static void random_colour(const md_source_vector *v, int64_t site, int components, double *out) {
  double norm2 = 0.0;
  normal_deviates(stream(v, PURPOSE_COLOUR, site), 1.0, components, out);
  for (int c = 0; c < components; c++) norm2 += out[c] * out[c];
  for (int c = 0; c < components; c++) out[c] *= sqrt(0.5 * components / norm2);
}

/* Whether a source that is 1 on some sites is so at x. */
static bool covers(const md_source_vector *v, const int x[MD_DIMS]) {
  const int odd = (x[0] + x[1] + x[2]) & 1;
  if (x[MD_T] != v->at[MD_T]) return false;
  switch (v->kind) {
  case MD_SOURCE_POINT:
    return memcmp(v->at, x, MD_DIMS * sizeof *x) == 0;
  case MD_SOURCE_CORNER:
    return !((x[0] | x[1] | x[2]) & 1);
  case MD_SOURCE_EVEN_WALL:
    return !odd;
  case MD_SOURCE_ODD_WALL:
    return odd;
  default:
    return true;
  }
}

/* The reals of the site with global coordinates x; `out` holds zeros. */
static void value_at(const md_source_vector *v, const md_geometry *g, const int x[MD_DIMS],
                     int components, double *out) {
  const int64_t site = md_global_index(g, x);
  switch (v->kind) {
  case MD_SOURCE_Z2:
    z2_noise(v, site, components, out);
    return;
  case MD_SOURCE_U1:
    u1_noise(v, site, components, out);
    return;
  case MD_SOURCE_GAUSSIAN:
    normal_deviates(stream(v, PURPOSE_GAUSSIAN, site), M_SQRT1_2, components, out);
    return;
  case MD_SOURCE_COLOUR_WALL:
    if (covers(v, x)) random_colour(v, site, components, out);
    return;
  default:
    if (2 * v->colour < components && covers(v, x)) out[2 * v->colour] = 1.0;
  }
}

void md_source_fill(md_field b[MD_PARITIES], const md_source_vector *vectors) {
  for (int p = 0; p < MD_PARITIES; p++) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < b[p].sites; i++) {
      double reals[MD_MAX_COMPONENTS * MD_MAX_RHS];
      int x[MD_DIMS];
      memset(reals, 0, (size_t)(b[p].components * b[p].n_rhs) * sizeof *reals);
      md_global_coordinates(b[p].geometry, p, i, x);
      for (int r = 0; r < b[p].n_rhs; r++)
        value_at(&vectors[r], b[p].geometry, x, b[p].components, reals + r * b[p].components);
      md_field_set(&b[p], i, reals);
    }
  }
}

/* Vectors that differ by colour alone, or by number alone. */
static void fill_alike(md_field b[MD_PARITIES], md_source_vector one, bool colours) {
  md_source_vector vectors[MD_MAX_RHS];
  for (int r = 0; r < b[0].n_rhs; r++) {
    vectors[r] = one;
    if (colours)
      vectors[r].colour = r;
    else
      vectors[r].number = r;
  }
  md_source_fill(b, vectors);
}

void md_source_point(md_field b[MD_PARITIES], const int point[MD_DIMS]) {
  md_source_vector v = {.kind = MD_SOURCE_POINT};
  memcpy(v.at, point, sizeof v.at);
  fill_alike(b, v, true);
}
void md_source_random(md_field b[MD_PARITIES], uint64_t seed) {
  fill_alike(b, (md_source_vector){.kind = MD_SOURCE_Z2, .seed = seed}, false);
}
void md_source_gaussian(md_field b[MD_PARITIES], uint64_t seed) {
  fill_alike(b, (md_source_vector){.kind = MD_SOURCE_GAUSSIAN, .seed = seed}, false);
}
