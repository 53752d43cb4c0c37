/* Compiled once for each instruction set, MD_ISA names it: eight sites at a time. */
#include "lattice/gauge/staple_kernels.h"
#include "lattice/gauge/su3_lanes.h"

/* A loop over all sites of both parities in steps of MD_LANES. */
#define FOR_SITES(out, parity, site)                                                               \
  for (int parity = 0; parity < MD_PARITIES; parity++)                                             \
  _Pragma("omp parallel for schedule(static)") for (int64_t site = 0;                              \
                                                    site < (out)->at[parity].sites;                \
                                                    site += MD_LANES)

static inline void add(md_su3_lanes *restrict sum, const md_su3_lanes *restrict a) {
  for (int c = 0; c < MD_LINK_REALS; c++)
    for (int l = 0; l < MD_LANES; l++) sum->c[c][l] += a->c[c][l];
}

static void lower(const md_staple_tables *tables, md_field *out, const md_matrices *u,
                  const md_matrices *a, int mu) {
  const int p = out->parity;
#pragma omp parallel for schedule(static)
  for (int64_t y = 0; y < out->sites; y += MD_LANES) {
    md_su3_lanes first, second, product;
    md_lanes_load(&first, &u->at[p], y);
    md_lanes_load(&second, &a->at[p], y);
    md_lanes_adjoint_multiply(&product, &first, &second);
    md_lanes_gather(&first, &u->at[1 - p], tables->to[p][mu] + y);
    md_lanes_multiply(&second, &product, &first);
    md_lanes_store(&second, out, y);
  }
}

static void staple(const md_staple_tables *tables, md_matrices *out, const md_matrices *base,
                   const md_matrices *u, const md_matrices *a, const md_matrices *lower_part,
                   int mu, int nu) {
  FOR_SITES(out, p, x) {
    md_su3_lanes first, second, product;
    md_lanes_load(&first, &u->at[p], x);
    md_lanes_gather(&second, &a->at[1 - p], tables->to[p][nu] + x);
    md_lanes_multiply(&product, &first, &second);
    md_lanes_gather(&first, &u->at[1 - p], tables->to[p][mu] + x);
    md_lanes_multiply_adjoint(&second, &product, &first);
    if (lower_part) {
      md_lanes_gather(&first, &lower_part->at[1 - p], tables->to[p][MD_DIMS + nu] + x);
      add(&second, &first);
    }
    if (base) {
      md_lanes_load(&first, &base->at[p], x);
      add(&second, &first);
    }
    md_lanes_store(&second, &out->at[p], x);
  }
}

static void shift(const md_staple_tables *tables, md_matrices *out, const md_matrices *in,
                  int direction) {
  FOR_SITES(out, p, x) {
    md_su3_lanes u;
    md_lanes_gather(&u, &in->at[1 - p], tables->to[p][direction] + x);
    md_lanes_store(&u, &out->at[p], x);
  }
}

static void combine(md_matrices *out, double a, const md_matrices *x, double b,
                    const md_matrices *y, const md_matrices *z) {
  FOR_SITES(out, p, i) {
    md_su3_lanes sum, term;
    md_lanes_load(&sum, &x->at[p], i);
    for (int c = 0; c < MD_LINK_REALS; c++)
      for (int l = 0; l < MD_LANES; l++) sum.c[c][l] *= a;
    const md_matrices *const others[2] = {y, z};
    for (int k = 0; k < 2; k++) {
      if (!others[k]) continue;
      md_lanes_load(&term, &others[k]->at[p], i);
      for (int c = 0; c < MD_LINK_REALS; c++)
        for (int l = 0; l < MD_LANES; l++) sum.c[c][l] += b * term.c[c][l];
    }
    md_lanes_store(&sum, &out->at[p], i);
  }
}

static void multiply(const md_staple_tables *tables, md_matrices *out, const md_matrices *u,
                     const md_matrices *v, int mu) {
  FOR_SITES(out, p, x) {
    md_su3_lanes first, second, product;
    md_lanes_load(&first, &u->at[p], x);
    md_lanes_gather(&second, &v->at[1 - p], tables->to[p][mu] + x);
    md_lanes_multiply(&product, &first, &second);
    md_lanes_store(&product, &out->at[p], x);
  }
}

const md_staple_kernels MD_JOIN(md_staple_rows_, MD_ISA) = {
    .lower = lower, .staple = staple, .shift = shift, .combine = combine, .multiply = multiply};
