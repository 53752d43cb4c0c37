#include "validate/link_bound.h"
#include "validate/validate.h"

#include <math.h>
#include <stdlib.h>

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
  (twist > 0.0 ? md_links_fold : md_links_fold_apart)(links, parity, term, site, 1, u);
  md_bound_link(&kept, links->largest[t.field], u, t.backward, error);
  for (int c = 0; c < 18; c++) error[c] += twist * hypot(u[c], u[c ^ 1]);
}

void md_bound_hop(const md_links *links, const md_backend_request *request, const md_field *in,
                  const md_field *in_error, md_field *bound) {
  const int parity = bound->parity, terms = md_action_terms(links->action);
  const double gamma = md_bound_gamma(request);
  for (int64_t i = 0; i < bound->sites; i++) {
    double sums[MD_FERMION_REALS * MD_MAX_RHS] = {0};
    for (int term = 0; term < terms; term++) {
      const int64_t from = md_links_neighbours(links, parity, term)[i];
      double u[MD_LINK_REALS], error[MD_LINK_REALS], v[MD_FERMION_REALS], e[MD_FERMION_REALS];
      folded_link(links, request, parity, term, i, u, error);
      for (int r = 0; r < in->n_rhs; r++) {
        md_field_get(in, from, r, v);
        md_field_get(in_error, from, r, e);
        add_term(u, error, gamma, v, e, sums + MD_FERMION_REALS * r);
      }
    }
    md_field_set(bound, i, sums);
  }
}
