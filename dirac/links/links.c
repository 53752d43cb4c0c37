#include "dirac/links/links.h"
#include "dirac/links/fold.h"

#include <math.h>

bool md_links_reach_halo(const md_links *links, int parity, int64_t site) {
  const md_geometry *g = links->field->geometry;
  for (int term = 0; term < md_action_terms(links->action); term++)
    if (md_links_neighbours(links, parity, term)[site] >= g->sites) return true;
  return false;
}

/* n / d and what is left of it, 0 <= n - d q < d, for n of any sign. */
static int64_t floor_of(int64_t n, int64_t d) {
  return n >= 0 ? n / d : -((d - 1 - n) / d);
}

/* How often the hop of a term at x goes round the torus along its direction. */
static int turns_of(const md_geometry *g, const md_link_term *t, const int x[MD_DIMS]) {
  const int end = t->backward ? x[t->mu] - t->hop : x[t->mu] + t->hop;
  const int64_t turns = floor_of(end, g->global[t->mu]);
  return (int)(turns < 0 ? -turns : turns);
}

/* eta, boundary sign, and the minus of backward terms: true when their product is -1. */
static bool is_minus(const md_links *links, const md_link_term *t, const int x[MD_DIMS]) {
  const bool crosses =
      links->antiperiodic && t->mu == MD_T && turns_of(links->field->geometry, t, x) % 2 == 1;
  if (md_action_has_spin(links->action)) return crosses;
  return ((md_eta(t->mu, x) < 0) != t->backward) != crosses;
}

/* The angle of the twist. Flux: in whole fractions of a turn, reduced before they become real, so
 * that the torus closes exactly. */
static double angle_of(const md_links *links, const md_link_term *t, const int x[MD_DIMS]) {
  const md_geometry *g = links->field->geometry;
  const int64_t plane = (int64_t)g->global[MD_X] * g->global[MD_Y],
                flux = links->twist.flux % plane;
  int64_t steps = 0; /* of 2 pi / plane, forward */
  if (t->mu == MD_T) return (t->backward ? -t->hop : t->hop) * links->twist.imaginary_mu;
  if (t->mu == MD_X) steps = -flux * g->global[MD_X] * x[MD_Y] * turns_of(g, t, x);
  if (t->mu == MD_Y) steps = flux * x[MD_X] * t->hop;
  steps -= plane * floor_of(steps, plane);
  if (2 * steps > plane) steps -= plane;
  return (t->backward ? -2.0 : 2.0) * M_PI * (double)steps / (double)plane;
}

static void phase_at(const md_links *links, const md_link_term *t, const int x[MD_DIMS],
                     double phase[2]) {
  const double sign = is_minus(links, t, x) ? -1.0 : 1.0;
  phase[0] = sign;
  phase[1] = 0.0;
  if (!md_links_twisted(&links->twist)) return;
  const double angle = angle_of(links, t, x);
  phase[0] = sign * cos(angle);
  phase[1] = sign * sin(angle);
}

void md_links_phase(const md_links *links, int parity, int term, int64_t site, double phase[2]) {
  const md_link_term t = md_links_term(links->action, term);
  int x[MD_DIMS];
  md_global_coordinates(links->field->geometry, parity, site, x);
  phase_at(links, &t, x, phase);
}

bool md_links_minus(const md_links *links, int parity, int term, int64_t site) {
  const md_link_term t = md_links_term(links->action, term);
  int x[MD_DIMS];
  md_global_coordinates(links->field->geometry, parity, site, x);
  return is_minus(links, &t, x);
}

void md_links_fold(const md_links *links, int parity, int term, int64_t first, int count,
                   bool apart, double *planes) {
  const md_link_term t = md_links_term(links->action, term);
  const md_gauge *field = &links->field[t.field];
  const md_geometry *g = field->geometry;
  const md_field *bare = &field->links[t.backward ? 1 - parity : parity][t.mu];
  const int32_t *neighbour = md_neighbours(g, t.hop, parity, t.direction);
  const int half = g->local[MD_X] / 2;
  int x[MD_DIMS] = {0};
  for (int i = 0; i < count; i++) {
    const int64_t site = first + i;
    double u[MD_LINK_REALS], phase[2] = {1.0, 0.0};
    if (i == 0 || site % half == 0)
      md_global_coordinates(g, parity, site, x);
    else
      x[MD_X] += 2; /* along the row */
    if (!apart) phase_at(links, &t, x, phase);
    md_fold_matrix(bare->data, bare->stride, t.backward ? neighbour[site] : site, t.backward,
                   phase[0], phase[1], u);
    for (int c = 0; c < MD_LINK_REALS; c++) planes[c * count + i] = u[c];
  }
}
