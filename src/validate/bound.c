#include "validate/validate.h"

#include <math.h>
#include <stdlib.h>

/* The bounds of docs/precision.md, component by component. */

/* Roundings of a component of D v: 6 products for each term of the action, and room for signs, the
 * factor 1/2 and the epilogue. */
static int roundings_of(md_action action) {
  return 6 * md_action_terms(action) + 8;
}

/* Storing changes a real r by at most unit |r| + floor, the floor of a fermion relative to the
 * largest component near it; and a link takes what is beyond `most`. */
typedef struct rounding {
  double unit, link_floor, field_floor, most;
} rounding;

/* fp16: half of the smallest step. Fixed point: half a step, and for fermions a hundredth more for
 * the rounding of the scale and the products with it. */
static rounding rounding_of(md_precision precision) {
  const double unit = md_precision_roundoff(precision), step = 1.0 / MD_FIXED_STEPS;
  if (precision == MD_HALF) return (rounding){unit, 0x1p-25, 0x1p-38, INFINITY};
  if (precision == MD_FIXED) return (rounding){0x1p-23, 0.5 * step, 0.51 * step, 1.0};
  return (rounding){unit, 0.0, 0.0, INFINITY};
}

/* Tensor Cores cut off bits where other units round; in double the reference rounds too. */
static double gamma_of(const md_backend_request *request) {
  const double unit = request->precision == MD_DOUBLE       ? 0x1p-52
                      : request->packing == MD_PACKING_NONE ? 0x1p-24
                                                            : 0x1p-23;
  const double all = roundings_of(request->action) * unit;
  return all / (1.0 - all);
}

/* Third row from the first two: c_k = conj(a_i b_j - a_j b_i). `size` receives the sums of the
 * absolute values of the four products, `parts` those of the factors. */
static void third_row(const double u[18], int k, double value[2], double size[2], double *parts) {
  const int i = (k + 1) % 3, j = (k + 2) % 3;
  const double *ai = u + 2 * i, *aj = u + 2 * j, *bi = u + 6 + 2 * i, *bj = u + 6 + 2 * j;
  value[0] = ai[0] * bj[0] - ai[1] * bj[1] - aj[0] * bi[0] + aj[1] * bi[1];
  value[1] = -(ai[0] * bj[1] + ai[1] * bj[0] - aj[0] * bi[1] - aj[1] * bi[0]);
  size[0] = fabs(ai[0] * bj[0]) + fabs(ai[1] * bj[1]) + fabs(aj[0] * bi[0]) + fabs(aj[1] * bi[1]);
  size[1] = fabs(ai[0] * bj[1]) + fabs(ai[1] * bj[0]) + fabs(aj[0] * bi[1]) + fabs(aj[1] * bi[0]);
  *parts = 0.0;
  for (int c = 0; c < 2; c++) *parts += fabs(ai[c]) + fabs(aj[c]) + fabs(bi[c]) + fabs(bj[c]);
}

/* How far rows 1 and 2 are from orthonormal ones and row 3 from what follows from them. */
static double off_su3(const double u[18]) {
  double off = 0.0;
  for (int i = 0; i < 2; i++)
    for (int j = i; j < 2; j++) {
      double re = i == j ? -1.0 : 0.0, im = 0.0;
      for (int c = 0; c < 3; c++) {
        const double *a = u + 6 * i + 2 * c, *b = u + 6 * j + 2 * c;
        re += a[0] * b[0] + a[1] * b[1];
        im += a[1] * b[0] - a[0] * b[1];
      }
      off += hypot(re, im);
    }
  for (int k = 0; k < 3; k++) {
    double value[2], size[2], parts;
    third_row(u, k, value, size, &parts);
    off += hypot(u[12 + 2 * k] - value[0], u[13 + 2 * k] - value[1]);
  }
  return off;
}

/* Eight reals (dirac/cuda/link.cuh): the matrix of rounded coordinates is again in SU(3), and every
 * row of it is as near to that of U as docs/precision.md derives: stereographic coordinates of a
 * sphere move its points by at most twice what they change themselves. `ARITHMETIC` roundings of
 * numbers of size 1 come with their way back. */
static double eight_error(const md_backend_request *request, const double u[18]) {
  enum { ARITHMETIC = 48, OFF = 8 };
  const rounding of = rounding_of(request->precision);
  const double of_row = 2.0 * (of.unit + 2.0 * of.link_floor); /* four coordinates, norm <= 1 */
  const double of_spin = 2.0 * (of.unit + sqrt(3.0) * of.link_floor);
  const double of_phase =
      request->precision == MD_FIXED ? 4.0 * of.link_floor : of.unit + 2.0 * of.link_floor;
  return 1.25 * (of_row + 2.0 * of_phase) + of_spin +
         ARITHMETIC * gamma_of(request) / roundings_of(request->action) + OFF * off_su3(u);
}

/* What storing U, its first two rows or its eight coordinates may change of each component.
 * `largest`: what fixed stores as MD_FIXED_STEPS, 1 for links in SU(3). */
static void row_errors(const md_backend_request *request, double largest, const double u[18],
                       double error[18]) {
  const rounding of = rounding_of(request->precision);
  const double unit = of.unit, arithmetic = gamma_of(request);
  const double floor = of.link_floor * (request->precision == MD_FIXED ? largest : 1.0);
  const double eight = request->reconstruct == MD_RECONSTRUCT_8 ? eight_error(request, u) : 0.0;
  for (int c = 0; c < 18; c++)
    error[c] = request->reconstruct == MD_RECONSTRUCT_8
                   ? eight
                   : unit * fabs(u[c]) + floor + fmax(0.0, fabs(u[c]) - of.most * largest);
  for (int k = 0; request->reconstruct == MD_RECONSTRUCT_12 && k < 3; k++) {
    double value[2], size[2], parts;
    third_row(u, k, value, size, &parts);
    for (int c = 0; c < 2; c++)
      error[12 + 2 * k + c] = (2.0 * unit + unit * unit + arithmetic) * size[c] +
                              2.0 * floor * parts + fabs(u[12 + 2 * k + c] - value[c]);
  }
}

static void adjoint_of(const double u[18], double sign, double out[18]) {
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) {
      out[2 * (3 * i + j)] = u[2 * (3 * j + i)];
      out[2 * (3 * i + j) + 1] = sign * u[2 * (3 * j + i) + 1];
    }
}

/* The same where a backend may keep either U or U^dag: of two rows it matters which. */
static void link_errors(const md_backend_request *request, double largest, const double u[18],
                        bool backward, double error[18]) {
  double other[18], other_error[18], back[18];
  row_errors(request, largest, u, error);
  if (!backward || request->reconstruct == MD_RECONSTRUCT_18) return;
  adjoint_of(u, -1.0, other);
  row_errors(request, largest, other, other_error);
  adjoint_of(other_error, 1.0, back);
  for (int c = 0; c < 18; c++) error[c] = fmax(error[c], back[c]);
}

void md_bound_store(const md_backend_request *request, const md_field *value, md_field *bound) {
  const rounding of = rounding_of(request->precision);
  for (int64_t i = 0; i < value->sites; i++) {
    double v[MD_FERMION_REALS], e[MD_FERMION_REALS * MD_MAX_RHS], largest = 0.0;
    for (int r = 0; r < value->n_rhs; r++) {
      double *error = e + MD_FERMION_REALS * r;
      md_field_get(value, i, r, v);
      md_field_get(bound, i, r, error);
      for (int c = 0; c < MD_FERMION_REALS; c++) {
        largest = fmax(largest, fabs(v[c]) + error[c]);
        error[c] += of.unit * (fabs(v[c]) + error[c]);
      }
    }
    for (int c = 0; of.field_floor > 0.0 && c < MD_FERMION_REALS * value->n_rhs; c++)
      e[c] += of.field_floor * largest;
    md_field_set(bound, i, e);
  }
}

/* Adds one term: link errors times |v|, links times the error of v, and accumulation. */
static void add_term(const double u[18], const double error[18], double gamma, const double v[6],
                     const double v_error[6], double sum[6]) {
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) {
      for (int part = 0; part < 4; part++) { /* re re, im im -> re; re im, im re -> im */
        const int of_u = 2 * (3 * i + j) + part % 2, of_v = 2 * j + (part == 1 || part == 2);
        const double whole = (fabs(u[of_u]) + error[of_u]) * (fabs(v[of_v]) + v_error[of_v]);
        sum[2 * i + part / 2] += MD_HOP_FACTOR * (error[of_u] * (fabs(v[of_v]) + v_error[of_v]) +
                                                  fabs(u[of_u]) * v_error[of_v] + gamma * whole);
      }
    }
}

/* The largest |re + i im| of a link field on this rank, 1 at least for links in SU(3). */
static double largest_of(const md_links *links, int f) {
  double largest = 0.0;
  if (md_action_get(links->action)->special_unitary) return 1.0;
  for (int p = 0; p < MD_PARITIES; p++)
    for (int mu = 0; mu < MD_DIMS; mu++) {
      const md_field *field = &links->field[f].links[p][mu];
      for (int64_t i = 0; i < field->sites + field->halo; i++) {
        double u[MD_LINK_REALS];
        md_gauge_get(&links->field[f], p, mu, i, u);
        for (int c = 0; c < MD_LINK_REALS; c += 2) largest = fmax(largest, hypot(u[c], u[c + 1]));
      }
    }
  return largest;
}

/* What a twist adds to the error of a link, relative to the size of its complex numbers: phases of
 * the backend and of the reference, whose angles are not reduced. */
static double twist_error(const md_links *links) {
  if (!md_links_twisted(&links->twist)) return 0.0;
  const double angle =
      3.0 * (fabs(links->twist.imaginary_mu) + 2.0 * M_PI * abs(links->twist.flux));
  return 0x1p-52 * (16.0 + 4.0 * angle);
}

/* A term's link, phase included where it is not a sign, and what may be wrong with it. */
static void folded_link(const md_links *links, const md_backend_request *request, double largest,
                        int parity, int term, int64_t site, double u[18], double error[18]) {
  const double twist = twist_error(links);
  (twist > 0.0 ? md_links_fold : md_links_fold_apart)(links, parity, term, site, 1, u);
  link_errors(request, largest, u, md_links_term(links->action, term).backward, error);
  for (int c = 0; c < 18; c++) error[c] += twist * hypot(u[c], u[c ^ 1]);
}

void md_bound_hop(const md_links *links, const md_backend_request *request, const md_field *in,
                  const md_field *in_error, md_field *bound) {
  const int parity = bound->parity, terms = md_action_terms(links->action);
  const double gamma = gamma_of(request);
  double largest[MD_MOST_LINK_FIELDS];
  for (int f = 0; f < md_action_get(links->action)->fields; f++) largest[f] = largest_of(links, f);
  for (int64_t i = 0; i < bound->sites; i++) {
    double sums[MD_FERMION_REALS * MD_MAX_RHS] = {0};
    for (int term = 0; term < terms; term++) {
      const int64_t from = md_links_neighbours(links, parity, term)[i];
      double u[MD_LINK_REALS], error[MD_LINK_REALS], v[MD_FERMION_REALS], e[MD_FERMION_REALS];
      folded_link(links, request, largest[term / MD_DIRECTIONS], parity, term, i, u, error);
      for (int r = 0; r < in->n_rhs; r++) {
        md_field_get(in, from, r, v);
        md_field_get(in_error, from, r, e);
        add_term(u, error, gamma, v, e, sums + MD_FERMION_REALS * r);
      }
    }
    md_field_set(bound, i, sums);
  }
}
