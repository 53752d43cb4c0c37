#include "validate/link_bound.h"
#include "validate/validate.h"

#include <math.h>

/* The bounds of docs/precision.md, component by component. */

void md_bound_store(const md_backend_request *request, const md_field *value, md_field *bound) {
  const md_rounding of = md_rounding_of(request->precision);
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
static void add_direction(const double u[18], const double error[18], double gamma, bool adjoint,
                          const double v[6], const double v_error[6], double sum[6]) {
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
  const double gamma = md_bound_gamma(request);
  for (int64_t i = 0; i < bound->sites; i++) {
    double sums[MD_FERMION_REALS * MD_MAX_RHS] = {0};
    for (int direction = 0; direction < MD_DIRECTIONS; direction++) {
      const int mu = direction % MD_DIMS;
      const bool backward = direction >= MD_DIMS;
      const int64_t from = g->neighbour[parity][direction][i];
      double u[MD_LINK_REALS], u_error[MD_LINK_REALS], v[MD_FERMION_REALS], e[MD_FERMION_REALS];
      md_gauge_get(gauge, backward ? 1 - parity : parity, mu, backward ? from : i, u);
      md_bound_link(request, u, backward, u_error);
      for (int r = 0; r < in->n_rhs; r++) {
        md_field_get(in, from, r, v);
        md_field_get(in_error, from, r, e);
        add_direction(u, u_error, gamma, backward, v, e, sums + MD_FERMION_REALS * r);
      }
    }
    md_field_set(bound, i, sums);
  }
}
