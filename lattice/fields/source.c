#include "lattice/fields/source.h"
#include "base/random.h"

#include <math.h>
#include <string.h>

enum { PURPOSE_NOISE = 0x6e6f6973, PURPOSE_GAUSSIAN = 0x67617573 };

/* Writes the reals of all right-hand sides of the site with global coordinates x. */
typedef void (*site_source)(const void *user, const md_geometry *g, const int x[MD_DIMS], int n_rhs,
                            double *reals);

static void fill(md_field b[MD_PARITIES], site_source at, const void *user) {
  for (int p = 0; p < MD_PARITIES; p++) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < b[p].sites; i++) {
      double reals[MD_FERMION_REALS * MD_MAX_RHS] = {0};
      int x[MD_DIMS];
      md_global_coordinates(b[p].geometry, p, i, x);
      at(user, b[p].geometry, x, b[p].n_rhs, reals);
      md_field_set(&b[p], i, reals);
    }
  }
}

static void unit_colours(int n_rhs, double *reals) {
  for (int c = 0; c < n_rhs && c < 3; c++) reals[c * MD_FERMION_REALS + 2 * c] = 1.0;
}

static void point_site(const void *user, const md_geometry *g, const int x[MD_DIMS], int n_rhs,
                       double *reals) {
  (void)g;
  if (memcmp(user, x, MD_DIMS * sizeof *x) == 0) unit_colours(n_rhs, reals);
}

static void wall_site(const void *user, const md_geometry *g, const int x[MD_DIMS], int n_rhs,
                      double *reals) {
  (void)g;
  if (x[MD_T] == *(const int *)user) unit_colours(n_rhs, reals);
}

static void random_site(const void *user, const md_geometry *g, const int x[MD_DIMS], int n_rhs,
                        double *reals) {
  const uint64_t seed = *(const uint64_t *)user;
  for (int r = 0; r < n_rhs; r++) {
    md_random random =
        md_random_at(seed, PURPOSE_NOISE + ((uint64_t)r << 32), (uint64_t)md_global_index(g, x));
    const uint64_t bits = md_random_bits(&random);
    for (int c = 0; c < MD_FERMION_REALS; c++)
      reals[r * MD_FERMION_REALS + c] = bits >> (63 - c) & 1 ? M_SQRT1_2 : -M_SQRT1_2;
  }
}

static void gaussian_site(const void *user, const md_geometry *g, const int x[MD_DIMS], int n_rhs,
                          double *reals) {
  const uint64_t seed = *(const uint64_t *)user;
  for (int r = 0; r < n_rhs; r++) {
    md_random random =
        md_random_at(seed, PURPOSE_GAUSSIAN + ((uint64_t)r << 32), (uint64_t)md_global_index(g, x));
    double *out = reals + r * MD_FERMION_REALS;
    for (int c = 0; c < MD_FERMION_REALS; c += 2) {
      md_random_normal(&random, out + c);
      out[c] *= M_SQRT1_2;
      out[c + 1] *= M_SQRT1_2;
    }
  }
}

void md_source_point(md_field b[MD_PARITIES], const int point[MD_DIMS]) {
  fill(b, point_site, point);
}
void md_source_wall(md_field b[MD_PARITIES], int t) {
  fill(b, wall_site, &t);
}
void md_source_random(md_field b[MD_PARITIES], uint64_t seed) {
  fill(b, random_site, &seed);
}
void md_source_gaussian(md_field b[MD_PARITIES], uint64_t seed) {
  fill(b, gaussian_site, &seed);
}
