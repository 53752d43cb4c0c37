#include "base/memory_need.h"
#include "dirac/links/links.h"
#include "lattice/gauge/su3.h"

#include <float.h>
#include <math.h>

/* Bound on the largest singular value of a link: with the eigenvalues of H = u^dag u of mean m and
 * variance s^2 the largest is at most m + sqrt(2) s (H. Wolkowicz, G. Styan, Lin. Alg. Appl. 29,
 * 471, 1980); exact for multiples of unitary matrices. */
static double link_norm(const md_gauge *field, int parity, int mu, int64_t site) {
  double u[MD_LINK_REALS], trace = 0.0, trace2 = 0.0;
  md_gauge_get(field, parity, mu, site, u);
  for (int i = 0; i < 3; i++)
    for (int j = 0; j <= i; j++) { /* H_ij = sum_k conj(u_ki) u_kj */
      double re = 0.0, im = 0.0;
      for (int k = 0; k < 3; k++) {
        const double *a = u + 2 * (3 * k + i), *b = u + 2 * (3 * k + j);
        re += a[0] * b[0] + a[1] * b[1];
        im += a[0] * b[1] - a[1] * b[0];
      }
      if (i == j) trace += re;
      trace2 += (i == j ? 1.0 : 2.0) * (re * re + im * im);
    }
  const double mean = trace / 3.0;
  return sqrt(mean + sqrt(2.0 * fmax(trace2 / 3.0 - mean * mean, 0.0)));
}

static double largest_of(const md_context *context, const md_gauge *gauge) {
  double largest = 0.0;
  for (int p = 0; p < MD_PARITIES; p++)
    for (int mu = 0; mu < MD_DIMS; mu++) {
      const md_field *field = &gauge->links[p][mu];
      const double *data = field->data;
#pragma omp parallel for schedule(static) reduction(max : largest) num_threads(context->threads)
      for (int64_t i = 0; i < field->sites; i++)
        for (int c = 0; c < MD_LINK_REALS; c += 2)
          largest =
              fmax(largest, hypot(data[c * field->stride + i], data[(c + 1) * field->stride + i]));
    }
  return largest;
}

/* The most that a real number of u^dag u / square differs from that of 1; infinite for NaN. */
static double distance_from_unitary(const double u[18], double square) {
  double h[18], most = 0.0;
  md_su3_adjoint_multiply(h, u, u);
  for (int k = 0; k < 18; k++) {
    const double distance = fabs(h[k] / square - (k % 8 == 0 ? 1.0 : 0.0));
    most = distance <= DBL_MAX ? fmax(most, distance) : INFINITY;
  }
  return most;
}

/* *factor <- s of md_links.largest. Collective. */
static void find_factor(const md_context *context, const md_gauge *gauge, double *factor) {
  double square = 0.0;
  long long positive =
      0; /* determinants with a positive real part less those with a negative one */
  for (int p = 0; p < MD_PARITIES; p++)
    for (int mu = 0; mu < MD_DIMS; mu++)
#pragma omp parallel for schedule(static) num_threads(context->threads)                            \
    reduction(max : square) reduction(+ : positive)
      for (int64_t i = 0; i < gauge->geometry->sites; i++) {
        double u[MD_LINK_REALS], det[2], sum = 0.0;
        md_gauge_get(gauge, p, mu, i, u);
        for (int k = 0; k < MD_LINK_REALS; k++) sum += u[k] * u[k];
        square = fmax(square, sum / 3.0);
        md_su3_determinant(u, det);
        positive += (det[0] > 0.0) - (det[0] < 0.0);
      }
  md_maximum(context, &square, 1);
  md_sum_integers(context, &positive, 1);
  *factor = positive < 0 ? -sqrt(square) : sqrt(square);
}

/* Finds s and holds all long links to it. */
static md_status find_multiples(md_context *context, md_reconstruct reconstruct,
                                const md_gauge *gauge, md_links *links) {
  double most = 0.0, *factor = &links->largest[1];
  find_factor(context, gauge, factor);
  const double square = *factor * *factor;
  for (int p = 0; p < MD_PARITIES; p++)
    for (int mu = 0; mu < MD_DIMS; mu++)
#pragma omp parallel for schedule(static) reduction(max : most) num_threads(context->threads)
      for (int64_t i = 0; i < gauge->geometry->sites; i++) {
        double u[MD_LINK_REALS];
        md_gauge_get(gauge, p, mu, i, u);
        most = fmax(most, distance_from_unitary(u, square));
      }
  md_maximum(context, &most, 1);
  links->unitary_error = most;
  if (most <= MD_UNITARY_WITHIN) return MD_OK;
  return md_fail(context, MD_INPUT,
                 "long links of %s reals must be one number times matrices in U(3), L^dag L / s^2 "
                 "within %g of 1; got %.2g for s = %.6g; use --reconstruct 18",
                 md_reconstruct_name(reconstruct), MD_UNITARY_WITHIN, most, *factor);
}

md_status md_request_links(md_context *context, const md_backend_request *request,
                           const md_gauge *field, md_links *links) {
  const md_action_data *action = md_action_get(request->action);
  const int whole = md_reconstruct_has_phase(request->reconstruct) ? 1 : action->fields;
  *links =
      (md_links){request->action, field, request->antiperiodic, request->twist, {1.0, 1.0}, 0.0};
  if (action->special_unitary || md_counts(context)) return MD_OK;
  for (int f = 0; f < whole; f++) links->largest[f] = largest_of(context, &field[f]);
  md_maximum(context, links->largest, whole);
  if (whole == action->fields) return MD_OK;
  return find_multiples(context, request->reconstruct, &field[1], links);
}

double md_links_norm(const md_context *context, const md_links *links) {
  const md_geometry *g = links->field->geometry;
  const int terms = md_action_terms(links->action);
  double largest = 0.0;
  if (md_action_has_spin(links->action)) return terms; /* 2 from each direction */
  if (md_action_get(links->action)->special_unitary) return MD_HOP_FACTOR * terms;
  if (md_counts(context)) return MD_HOP_FACTOR * MD_DIRECTIONS * (9.0 / 8.0 + 1.0 / 24.0);
  for (int p = 0; p < MD_PARITIES; p++)
#pragma omp parallel for schedule(static) reduction(max : largest) num_threads(context->threads)
    for (int64_t i = 0; i < g->sites; i++) {
      double sum = 0.0;
      for (int term = 0; term < terms; term++) {
        const md_link_term t = md_links_term(links->action, term);
        sum += t.backward ? link_norm(&links->field[t.field], 1 - p, t.mu,
                                      md_links_neighbours(links, p, term)[i])
                          : link_norm(&links->field[t.field], p, t.mu, i);
      }
      largest = fmax(largest, sum);
    }
  largest *= MD_HOP_FACTOR;
  md_maximum(context, &largest, 1);
  return largest;
}
