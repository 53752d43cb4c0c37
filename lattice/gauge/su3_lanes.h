#pragma once

#include "lattice/fields/field.h"

/* Products of lattice/gauge/su3.h for eight sites at once, the sites innermost, so that the
 * compiler vectorises over them. The sites of one parity are always a multiple of eight: all local
 * extents are even. Outputs are assigned and do not alias inputs. Local. */
enum { MD_LANES = 8 };
typedef struct md_su3_lanes {
  _Alignas(64) double c[MD_LINK_REALS][MD_LANES];
} md_su3_lanes;

/* Matrices of the MD_LANES sites from `site` on, and of the sites listed; MD_DOUBLE fields. */
static inline void md_lanes_load(md_su3_lanes *u, const md_field *f, int64_t site) {
  const double *data = (const double *)f->data + site;
  for (int c = 0; c < MD_LINK_REALS; c++)
    for (int l = 0; l < MD_LANES; l++) u->c[c][l] = data[c * f->stride + l];
}
static inline void md_lanes_gather(md_su3_lanes *u, const md_field *f, const int32_t *sites) {
  const double *data = f->data;
  for (int c = 0; c < MD_LINK_REALS; c++)
    for (int l = 0; l < MD_LANES; l++) u->c[c][l] = data[c * f->stride + sites[l]];
}
static inline void md_lanes_store(const md_su3_lanes *u, md_field *f, int64_t site) {
  double *data = (double *)f->data + site;
  for (int c = 0; c < MD_LINK_REALS; c++)
    for (int l = 0; l < MD_LANES; l++) data[c * f->stride + l] = u->c[c][l];
}

/* How a product reads a factor: element (i, j) is entry row*i + column*j of the matrix, with this
 * sign on its imaginary part. */
typedef struct md_lanes_view {
  int row, column;
  double sign;
} md_lanes_view;

/* out = a b as seen through their views; inlined with constant views. */
static inline __attribute__((always_inline)) void
md_lanes_product(md_su3_lanes *restrict out, const md_su3_lanes *restrict a, md_lanes_view at,
                 const md_su3_lanes *restrict b, md_lanes_view bt) {
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) {
      double re[MD_LANES] = {0}, im[MD_LANES] = {0};
      for (int k = 0; k < 3; k++) {
        const double(*x)[MD_LANES] = a->c + 2 * (at.row * i + at.column * k);
        const double(*y)[MD_LANES] = b->c + 2 * (bt.row * k + bt.column * j);
        for (int l = 0; l < MD_LANES; l++) {
          re[l] += x[0][l] * y[0][l] - at.sign * bt.sign * (x[1][l] * y[1][l]);
          im[l] += bt.sign * (x[0][l] * y[1][l]) + at.sign * (x[1][l] * y[0][l]);
        }
      }
      for (int l = 0; l < MD_LANES; l++) {
        out->c[2 * (3 * i + j)][l] = re[l];
        out->c[2 * (3 * i + j) + 1][l] = im[l];
      }
    }
}

/* out = a b, a b^dag, a^dag b */
static inline void md_lanes_multiply(md_su3_lanes *out, const md_su3_lanes *a,
                                     const md_su3_lanes *b) {
  md_lanes_product(out, a, (md_lanes_view){3, 1, 1.0}, b, (md_lanes_view){3, 1, 1.0});
}
static inline void md_lanes_multiply_adjoint(md_su3_lanes *out, const md_su3_lanes *a,
                                             const md_su3_lanes *b) {
  md_lanes_product(out, a, (md_lanes_view){3, 1, 1.0}, b, (md_lanes_view){1, 3, -1.0});
}
static inline void md_lanes_adjoint_multiply(md_su3_lanes *out, const md_su3_lanes *a,
                                             const md_su3_lanes *b) {
  md_lanes_product(out, a, (md_lanes_view){1, 3, -1.0}, b, (md_lanes_view){3, 1, 1.0});
}
