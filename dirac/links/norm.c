#include "dirac/links/links.h"
#include "lattice/fields/sum.h"

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

md_links md_request_links(const md_context *context, const md_backend_request *request,
                          const md_gauge *field) {
  const md_action_data *action = md_action_get(request->action);
  md_links links = {request->action, field, request->antiperiodic, request->twist, {1.0, 1.0}};
  if (action->special_unitary) return links;
  for (int f = 0; f < action->fields; f++) links.largest[f] = largest_of(context, &field[f]);
  md_maximum(context, links.largest, action->fields);
  return links;
}

double md_links_norm(const md_context *context, const md_links *links) {
  const md_geometry *g = links->field->geometry;
  const int terms = md_action_terms(links->action);
  double largest = 0.0;
  if (md_action_get(links->action)->special_unitary) return MD_HOP_FACTOR * terms;
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
