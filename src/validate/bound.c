#include "lattice/gauge/su3.h"
#include "validate/validate.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The bounds of docs/precision.md, component by component. */

void md_bound_store(const md_backend_request *request, const md_field *value, md_field *bound) {
  const md_rounding of = md_rounding_of(request->precision);
  const int n = value->components;
  for (int64_t i = 0; i < value->sites; i++) {
    double v[MD_MAX_COMPONENTS], e[MD_VALIDATE_MOST_REALS], largest = 0.0;
    for (int r = 0; r < value->n_rhs; r++) {
      double *error = e + n * r;
      md_field_get(value, i, r, v);
      md_field_get(bound, i, r, error);
      for (int c = 0; c < n; c++) {
        largest = fmax(largest, fabs(v[c]) + error[c]);
        error[c] += of.unit * (fabs(v[c]) + error[c]);
      }
    }
    for (int c = 0; of.field_floor > 0.0 && c < n * value->n_rhs; c++)
      e[c] += of.field_floor * largest;
    md_field_set(bound, i, e);
  }
}

/* Adds one term: link errors times |v|, links times the error of v, and accumulation, all times
 * `factor`. */
static void add_term(const double u[18], const double error[18], double gamma, double factor,
                     const double v[6], const double v_error[6], double sum[6]) {
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) {
      for (int part = 0; part < 4; part++) { /* re re, im im -> re; re im, im re -> im */
        const int of_u = 2 * (3 * i + j) + part % 2, of_v = 2 * j + (part == 1 || part == 2);
        const double whole = (fabs(u[of_u]) + error[of_u]) * (fabs(v[of_v]) + v_error[of_v]);
        sum[2 * i + part / 2] += factor * (error[of_u] * (fabs(v[of_v]) + v_error[of_v]) +
                                           fabs(u[of_u]) * v_error[of_v] + gamma * whole);
      }
    }
}

/* The same of H in every spin and slice: (1 -+ gamma_mu) v adds to a spin another one times 1, -1,
 * i or -i, a sum that errs by `unit` of its terms, at most. */
static void add_spins(const double u[18], const double error[18], double gamma, double unit, int mu,
                      int reals, const double *v, const double *v_error, double *sum) {
  const int imaginary = mu == MD_X || mu == MD_Z;
  for (int at = 0; at < reals; at += 6) {
    const int spin = at / 6 % 4, other = mu == MD_X || mu == MD_Y ? 3 - spin : spin ^ 2;
    const int from = at + 6 * (other - spin);
    double size[6], size_error[6];
    for (int c = 0; c < 6; c++) {
      size[c] = fabs(v[at + c]) + fabs(v[from + (c ^ imaginary)]);
      size_error[c] = v_error[at + c] + v_error[from + (c ^ imaginary)];
      size_error[c] += unit * (size[c] + size_error[c]);
    }
    add_term(u, error, gamma, 1.0, size, size_error, sum + at);
  }
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
static void folded_link(const md_links *links, const md_backend_request *request, int parity,
                        int term, int64_t site, double u[18], double error[18]) {
  const double twist = twist_error(links);
  const md_link_term t = md_links_term(links->action, term);
  md_backend_request kept = *request;
  kept.reconstruct = md_reconstruct_of_field(request->reconstruct, t.field);
  md_links_fold(links, parity, term, site, 1, !(twist > 0.0), u);
  md_bound_link(&kept, links->largest[t.field], u, t.backward, error);
  for (int c = 0; c < 18; c++) error[c] += twist * hypot(u[c], u[c ^ 1]);
}

void md_bound_hop(const md_links *links, const md_backend_request *request, const md_field *in,
                  const md_field *in_error, md_field *bound) {
  const int parity = bound->parity, terms = md_action_terms(links->action);
  const double gamma = md_bound_gamma(request);
  const int n = in->components;
  const bool spins = md_action_has_spin(links->action);
  /* Tensor Cores take the sum of two spins in the storage type, others in that of `gamma`. */
  const double unit =
      request->packing == MD_PACKING_NONE ? 0.0 : md_precision_roundoff(request->precision);
  for (int64_t i = 0; i < bound->sites; i++) {
    double sums[MD_VALIDATE_MOST_REALS];
    memset(sums, 0, (size_t)(n * in->n_rhs) * sizeof *sums);
    for (int term = 0; term < terms; term++) {
      const int64_t from = md_links_neighbours(links, parity, term)[i];
      double u[MD_LINK_REALS], error[MD_LINK_REALS], v[MD_MAX_COMPONENTS], e[MD_MAX_COMPONENTS];
      folded_link(links, request, parity, term, i, u, error);
      for (int r = 0; r < in->n_rhs; r++) {
        md_field_get(in, from, r, v);
        md_field_get(in_error, from, r, e);
        if (spins)
          add_spins(u, error, gamma, unit, term % MD_DIMS, n, v, e, sums + n * r);
        else
          add_term(u, error, gamma, MD_HOP_FACTOR, v, e, sums + n * r);
      }
    }
    md_field_set(bound, i, sums);
  }
}

/* Roundings of a component of D v or H v: 6 products for each term of the action, and room for
 * signs, the factor 1/2 or the projection, and the epilogue. */
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

/* t = tan(phi/2) is stored to unit |t| + floor and is held within 1e18, in half 6e4, beyond which
 * phi is off by 2/most; d phi = 2 dt / (1 + t^2). In fixed point tan(phi/4), at most 1, is stored
 * to half a step and kept one step below 1; d phi = 4 ds / (1 + s^2). The finite difference is
 * taken to the side where it is larger. */
static double angle_error(md_precision precision, double phi) {
  const md_rounding of = md_rounding_of(precision);
  if (precision == MD_FIXED) {
    const double s = fabs(tan(0.25 * phi)), step = 2.0 * of.link_floor;
    const double change = of.unit * s + (s > 1.0 - step ? 2.0 : 1.0) * of.link_floor;
    return 4.0 * (atan(s) - atan(s - change));
  }
  const double t = fabs(tan(0.5 * phi)), most = precision == MD_HALF ? 6e4 : 1e18;
  const double change = of.unit * t + of.link_floor;
  return t > most ? 2.0 / most * (1.0 + of.unit) : 2.0 * (atan(t) - atan(t - change));
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
    const double by =
        which == 4 ? angle_error(precision, e->phi) : of->unit * fabs(*real) + of->link_floor;
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

/* The coordinates of 8 reals, in double and in plain complex algebra: shares no code with the
 * backends that store them. */

static double complex at(const double u[18], int row, int column) {
  return u[2 * (3 * row + column)] + I * u[2 * (3 * row + column) + 1];
}

/* H diag(e^{i theta}, 1, 1) */
static void reflection(const md_eight *e, double complex h[3][3]) {
  const double complex p = e->pq[0] + I * e->pq[1], q = e->pq[2] + I * e->pq[3];
  const double complex first = cexp(2.0 * I * e->phi);
  const double k = 2.0 / (1.0 + creal(p * conj(p)) + creal(q * conj(q)));
  for (int j = 0; j < 3; j++) {
    const double complex v[3] = {j == 0 ? first : 0.0, j == 1, j == 2};
    const double complex s = k * (v[0] + p * v[1] + q * v[2]);
    h[0][j] = s - v[0];
    h[1][j] = v[1] - conj(p) * s;
    h[2][j] = v[2] - conj(q) * s;
  }
}

/* S h^dag = rows 2 and 3 of u, as far as it goes; (a, b) is the part in SU(2) of e^{i phi} S. */
double md_eight_settle(const double u[18], md_eight *e) {
  double complex h[3][3], s[2][2] = {{0.0}};
  reflection(e, h);
  for (int i = 0; i < 2; i++)
    for (int l = 0; l < 2; l++)
      for (int j = 0; j < 3; j++) s[i][l] += cexp(I * e->phi) * at(u, i + 1, j) * conj(h[l + 1][j]);
  const double complex a = s[0][0] + conj(s[1][1]), b = s[0][1] - conj(s[1][0]);
  const double norm = sqrt(creal(a * conj(a)) + creal(b * conj(b)));
  e->g[0] = cimag(a) / (norm + creal(a));
  e->g[1] = creal(b) / (norm + creal(a));
  e->g[2] = cimag(b) / (norm + creal(a));
  return creal(a) / norm;
}

double md_eight_of(const double u[18], bool other_branch, md_eight *e) {
  const double c = hypot(u[0], u[1]), pi = acos(-1.0);
  for (int k = 0; k < 4; k++) e->pq[k] = u[2 + k] / (1.0 + c);
  e->phi = 0.5 * atan2(u[1], u[0]);
  if ((md_eight_settle(u, e) < 0.0) == other_branch) return md_eight_settle(u, e);
  e->phi += e->phi > 0.0 ? -pi : pi;
  return md_eight_settle(u, e);
}

void md_link_of_eight(const md_eight *e, double u[18]) {
  double complex h[3][3];
  const double k = 2.0 / (1.0 + e->g[0] * e->g[0] + e->g[1] * e->g[1] + e->g[2] * e->g[2]);
  const double complex turn = cexp(-I * e->phi);
  const double complex a = (k - 1.0) + I * k * e->g[0], b = k * (e->g[1] + I * e->g[2]);
  const double complex s[2][2] = {{turn * a, turn * b}, {-turn * conj(b), turn * conj(a)}};
  reflection(e, h);
  for (int row = 0; row < 3; row++)
    for (int j = 0; j < 3; j++) {
      const double complex element =
          row == 0 ? h[0][j] : s[row - 1][0] * h[1][j] + s[row - 1][1] * h[2][j];
      u[2 * (3 * row + j)] = creal(element);
      u[2 * (3 * row + j) + 1] = cimag(element);
    }
}
