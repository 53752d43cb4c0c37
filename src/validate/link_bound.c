#include "validate/link_bound.h"
#include "lattice/gauge/su3.h"

#include <math.h>
#include <string.h>

/* Roundings of a component of D v: 6 products for each term of the action, and room for signs, the
 * factor 1/2 and the epilogue. */
static int roundings_of(md_action action) {
  return 6 * md_action_terms(action) + 8;
}

/* fp16: half of the smallest step. Fixed point: half a step, and for fermions a hundredth more for
 * the rounding of the scale and the products with it. */
md_rounding md_rounding_of(md_precision precision) {
  const double unit = md_precision_roundoff(precision), step = 1.0 / MD_FIXED_STEPS;
  if (precision == MD_HALF) return (md_rounding){unit, 0x1p-25, 0x1p-38, INFINITY};
  if (precision == MD_FIXED) return (md_rounding){0x1p-23, 0.5 * step, 0.51 * step, 1.0};
  return (md_rounding){unit, 0.0, 0.0, INFINITY};
}

/* Tensor Cores cut off bits where other units round; in double the reference rounds too. */
double md_bound_gamma(const md_backend_request *request) {
  const double unit = request->precision == MD_DOUBLE       ? 0x1p-52
                      : request->packing == MD_PACKING_NONE ? 0x1p-24
                                                            : 0x1p-23;
  const double all = roundings_of(request->action) * unit;
  return all / (1.0 - all);
}

/* Third row from the first two, where each factor stands in one product: c_k = conj(a_i b_j - a_j
 * b_i). `size` receives the sums of the absolute values of the four products, `parts` those of the
 * factors. */
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

static void errors_of_18(const md_rounding *of, const double u[18], double error[18]) {
  for (int c = 0; c < 18; c++)
    error[c] = of->unit * fabs(u[c]) + of->link_floor + fmax(0.0, fabs(u[c]) - of->most);
}

static void errors_of_12(const md_rounding *of, double gamma, const double u[18],
                         double error[18]) {
  errors_of_18(of, u, error);
  for (int k = 0; k < 3; k++) {
    double value[2], size[2], parts;
    third_row(u, k, value, size, &parts);
    for (int c = 0; c < 2; c++)
      error[12 + 2 * k + c] =
          (2.0 * of->unit + of->unit * of->unit + gamma * (1.0 + 3.0 * of->unit)) * size[c] +
          of->link_floor * ((1.0 + of->unit) * parts + 4.0 * of->link_floor) +
          fabs(u[12 + 2 * k + c] - value[c]);
  }
}

/* change[c] += |link of `e` with coordinate `which` moved - whole|, the larger of both ways;
 * returns the norm of the change. g is found anew for moved p, q and phi, as a backend does. */
static double add_coordinate(const md_rounding *of, md_precision precision, const double u[18],
                             const md_eight *e, const double whole[18], int which,
                             double change[18]) {
  double largest[18] = {0.0}, norm2 = 0.0;
  for (int sign = -1; sign <= 1; sign += 2) {
    md_eight moved = *e;
    double link[18];
    double *const real = which < 4    ? &moved.pq[which]
                         : which == 4 ? &moved.phi
                                      : &moved.g[which - 5];
    const double by = which == 4 ? md_eight_angle_error(precision, e->phi)
                                 : of->unit * fabs(*real) + of->link_floor;
    *real += sign * by;
    if (which < 5) md_eight_settle(u, &moved);
    md_link_of_eight(&moved, link);
    for (int c = 0; c < 18; c++) largest[c] = fmax(largest[c], fabs(link[c] - whole[c]));
  }
  for (int c = 0; c < 18; c++) {
    change[c] += largest[c];
    norm2 += largest[c] * largest[c];
  }
  return sqrt(norm2);
}

/* The changes by the eight coordinates; by their products, which the square of the sum of the
 * changes' norms bounds; by the arithmetic that makes a row of them: a chain of fewer than 112
 * operations on numbers of size one at most; and the distance of u from the link of its own
 * coordinates, as a file's links are not exactly unitary. */
static void errors_of_branch(const md_rounding *of, md_precision precision, double gamma,
                             const double u[18], const md_eight *e, double error[18]) {
  double whole[18], norms = 0.0;
  md_link_of_eight(e, whole);
  for (int c = 0; c < 18; c++) error[c] = 2.0 * gamma + fabs(whole[c] - u[c]);
  for (int which = 0; which < 8; which++)
    norms += add_coordinate(of, precision, u, e, whole, which, error);
  for (int c = 0; c < 18; c++) error[c] += norms * norms;
}

/* Near Re a = 0 rounding decides which of the two phi is kept. */
static void errors_of_8(const md_rounding *of, md_precision precision, double gamma,
                        const double u[18], double error[18]) {
  md_eight e;
  double other[18];
  const double re_a = md_eight_of(u, false, &e);
  errors_of_branch(of, precision, gamma, u, &e, error);
  if (re_a > 8.0 * fmax(of->unit, of->link_floor)) return;
  md_eight_of(u, true, &e);
  errors_of_branch(of, precision, gamma, u, &e, other);
  for (int c = 0; c < 18; c++) error[c] = fmax(error[c], other[c]);
}

/* Links whose R reals stand for the link itself. */
static void errors_without_phase(const md_backend_request *request, double largest,
                                 const double u[18], double error[18]) {
  md_rounding of = md_rounding_of(request->precision);
  if (request->precision == MD_FIXED) of.link_floor *= largest, of.most *= largest;
  const double gamma = md_bound_gamma(request);
  if (request->reconstruct == MD_RECONSTRUCT_18)
    errors_of_18(&of, u, error);
  else if (request->reconstruct == MD_RECONSTRUCT_12)
    errors_of_12(&of, gamma, u, error);
  else
    errors_of_8(&of, request->precision, gamma, u, error);
}

/* u = s e^{i phi} V: V is kept as 12 or 8 reals and t = tan(phi/2) as one more, in every type, so
 * that phi is off by d = 2 dt / (1 + t^2), in the finite difference to its larger side. That turns
 * the number by at most d, and shortens its parts by d^2/2. The phase, its product with the source
 * and s come with fewer than 16 operations. */
static void errors_at_phase(const md_backend_request *request, double s, double phi,
                            const double u[18], double error[18]) {
  const md_rounding of = md_rounding_of(request->precision);
  const double re = cos(phi), im = sin(phi), gamma = md_bound_gamma(request);
  const double t = fabs(tan(0.5 * phi));
  const double d = 2.0 * (atan(t) - atan(t - of.unit * t - of.link_floor));
  double v[18], e[18];
  md_backend_request rest = *request;
  rest.reconstruct =
      request->reconstruct == MD_RECONSTRUCT_13 ? MD_RECONSTRUCT_12 : MD_RECONSTRUCT_8;
  for (int c = 0; c < 18; c += 2) {
    v[c] = (re * u[c] + im * u[c + 1]) / s;
    v[c + 1] = (re * u[c + 1] - im * u[c]) / s;
  }
  errors_without_phase(&rest, 1.0, v, e);
  for (int c = 0; c < 18; c += 2) {
    double whole[2], turned[2];
    for (int part = 0; part < 2; part++) {
      turned[part] = fabs(re) * e[c + part] + fabs(im) * e[c + 1 - part];
      whole[part] = fabs(u[c + part] / s) + turned[part];
    }
    for (int part = 0; part < 2; part++)
      error[c + part] = fabs(s) * (turned[part] + d * whole[1 - part] + 0.5 * d * d * whole[part] +
                                   gamma * (whole[0] + whole[1]));
  }
}

/* Where the determinant is near -1, its rounding decides which third of the circle is taken. */
static void errors_with_phase(const md_backend_request *request, double s, const double u[18],
                              double error[18]) {
  const double third = acos(-1.0) / 3.0;
  double w[18], det[2], other[18];
  for (int c = 0; c < 18; c++) w[c] = u[c] / s;
  md_su3_determinant(w, det);
  const double phi = atan2(det[1], det[0]) / 3.0;
  errors_at_phase(request, s, phi, u, error);
  if (third - fabs(phi) > 1e-12) return;
  errors_at_phase(request, s, -phi, u, other);
  for (int c = 0; c < 18; c++) error[c] = fmax(error[c], other[c]);
}

static void errors_as_kept(const md_backend_request *request, double largest, const double u[18],
                           double error[18]) {
  if (md_reconstruct_has_phase(request->reconstruct))
    errors_with_phase(request, largest, u, error);
  else
    errors_without_phase(request, largest, u, error);
}

static void adjoint_of(const double u[18], double sign, double out[18]) {
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) {
      out[2 * (3 * i + j)] = u[2 * (3 * j + i)];
      out[2 * (3 * i + j) + 1] = sign * u[2 * (3 * j + i) + 1];
    }
}

void md_bound_link(const md_backend_request *request, double largest, const double u[18],
                   bool adjoint, double error[18]) {
  double other[18], other_error[18], back[18];
  errors_as_kept(request, largest, u, error);
  if (!adjoint || request->reconstruct == MD_RECONSTRUCT_18) return;
  adjoint_of(u, -1.0, other);
  errors_as_kept(request, largest, other, other_error);
  adjoint_of(other_error, 1.0, back);
  for (int c = 0; c < 18; c++) error[c] = fmax(error[c], back[c]);
}
