#include "validate/validate.h"

#include <math.h>

/* The bounds of docs/precision.md, component by component. */

/* Terms of a component of D v: 48 products, and room for signs, the factor 1/2 and the epilogue. */
enum { TERMS = 56 };

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
  return TERMS * unit / (1.0 - TERMS * unit);
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
  return 1.25 * (of_row + 2.0 * of_phase) + of_spin + ARITHMETIC * gamma_of(request) / TERMS +
         OFF * off_su3(u);
}

/* What storing U, its first two rows or its eight coordinates may change of each component. */
static void row_errors(const md_backend_request *request, const double u[18], double error[18]) {
  const rounding of = rounding_of(request->precision);
  const double unit = of.unit, floor = of.link_floor, arithmetic = gamma_of(request);
  const double eight = request->reconstruct == MD_RECONSTRUCT_8 ? eight_error(request, u) : 0.0;
  for (int c = 0; c < 18; c++)
    error[c] = request->reconstruct == MD_RECONSTRUCT_8
                   ? eight
                   : unit * fabs(u[c]) + floor + fmax(0.0, fabs(u[c]) - of.most);
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
static void link_errors(const md_backend_request *request, const double u[18], bool adjoint,
                        double error[18]) {
  double other[18], other_error[18], back[18];
  row_errors(request, u, error);
  if (!adjoint || request->reconstruct == MD_RECONSTRUCT_18) return;
  adjoint_of(u, -1.0, other);
  row_errors(request, other, other_error);
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

/* Adds one direction: link errors times |v|, links times the error of v, and accumulation. */
static void add_direction(const md_backend_request *request, const double u[18], bool adjoint,
                          const double v[6], const double v_error[6], double sum[6]) {
  double error[18];
  const double gamma = gamma_of(request);
  link_errors(request, u, adjoint, error);
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) {
      const int at = adjoint ? 2 * (3 * j + i) : 2 * (3 * i + j);
      for (int part = 0; part < 4; part++) { /* re re, im im -> re; re im, im re -> im */
        const int of_u = at + part % 2, of_v = 2 * j + (part == 1 || part == 2);
        const double whole = (fabs(u[of_u]) + error[of_u]) * (fabs(v[of_v]) + v_error[of_v]);
        sum[2 * i + part / 2] += 0.5 * (error[of_u] * (fabs(v[of_v]) + v_error[of_v]) +
                                        fabs(u[of_u]) * v_error[of_v] + gamma * whole);
      }
    }
}

void md_bound_hop(const md_gauge *gauge, const md_backend_request *request, const md_field *in,
                  const md_field *in_error, md_field *bound) {
  const md_geometry *g = gauge->geometry;
  const int parity = bound->parity;
  for (int64_t i = 0; i < bound->sites; i++) {
    double sums[MD_FERMION_REALS * MD_MAX_RHS] = {0};
    for (int direction = 0; direction < MD_DIRECTIONS; direction++) {
      const int mu = direction % MD_DIMS;
      const bool backward = direction >= MD_DIMS;
      const int64_t from = g->neighbour[parity][direction][i];
      double u[MD_LINK_REALS], v[MD_FERMION_REALS], e[MD_FERMION_REALS];
      md_gauge_get(gauge, backward ? 1 - parity : parity, mu, backward ? from : i, u);
      for (int r = 0; r < in->n_rhs; r++) {
        md_field_get(in, from, r, v);
        md_field_get(in_error, from, r, e);
        add_direction(request, u, backward, v, e, sums + MD_FERMION_REALS * r);
      }
    }
    md_field_set(bound, i, sums);
  }
}
