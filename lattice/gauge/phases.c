#include "lattice/gauge/phases.h"
#include "lattice/fields/sum.h"
#include "lattice/gauge/su3.h"

#include <math.h>
#include <string.h>

const char *md_link_kind_name(md_link_kind kind) {
  static const char *const names[] = {"thin", "fat", "long"};
  return names[kind];
}

const char *md_phase_name(md_phase_convention convention) {
  static const char *const names[] = {"none", "xyzt", "txyz (MILC)"};
  return names[convention];
}

static int eta(md_phase_convention convention, int mu, const int x[MD_DIMS]) {
  if (convention == MD_PHASES_NONE) return 1;
  if (convention == MD_PHASES_XYZT) return md_eta(mu, x);
  const int rotated[MD_DIMS] = {x[MD_T], x[MD_X], x[MD_Y], x[MD_Z]};
  return md_eta((mu + 1) % MD_DIMS, rotated);
}

/* The link steps over the boundary in t an odd number of times. */
static bool crosses(const md_geometry *g, md_link_kind kind, int mu, const int x[MD_DIMS]) {
  const int hops = kind == MD_LINKS_LONG ? 3 : 1;
  return mu == MD_T && ((x[MD_T] + hops) / g->global[MD_T]) % 2 == 1;
}

/* Sums of s Re det for each convention and of |Re det|; of links that cross the boundary, and of
 * the others. */
enum { ABSOLUTE = MD_PHASE_CONVENTIONS, COLUMNS, SUMS = 2 * COLUMNS };

static void add_site(const md_gauge *gauge, md_link_kind kind, int p, int64_t site,
                     md_sum sums[SUMS]) {
  double value[2][COLUMNS] = {0};
  int x[MD_DIMS];
  md_global_coordinates(gauge->geometry, p, site, x);
  for (int mu = 0; mu < MD_DIMS; mu++) {
    double u[MD_LINK_REALS], det[2];
    md_gauge_get(gauge, p, mu, site, u);
    md_su3_determinant(u, det);
    if (kind == MD_LINKS_LONG) det[0] = -det[0];
    double *mine = value[crosses(gauge->geometry, kind, mu, x)];
    for (int c = 0; c < MD_PHASE_CONVENTIONS; c++)
      mine[c] += eta((md_phase_convention)c, mu, x) * det[0];
    mine[ABSOLUTE] += fabs(det[0]);
  }
  for (int k = 0; k < SUMS; k++) md_sum_add(&sums[k], value[k / COLUMNS][k % COLUMNS]);
}

static md_status sum_determinants(md_context *context, const md_gauge *gauge, md_link_kind kind,
                                  double values[SUMS]) {
  md_sum sums[SUMS] = {0};
#pragma omp parallel
  {
    md_sum mine[SUMS] = {0};
    for (int p = 0; p < MD_PARITIES; p++) {
#pragma omp for schedule(static)
      for (int64_t i = 0; i < gauge->geometry->sites; i++) add_site(gauge, kind, p, i, mine);
    }
#pragma omp critical
    for (int k = 0; k < SUMS; k++) md_sum_merge(&sums[k], &mine[k]);
  }
  return md_sum_finish(context, sums, SUMS, values);
}

/* Links that are all zero tell nothing. */
static double share(double part, double whole) {
  return whole == 0.0 ? 0.0 : part / whole;
}

md_status md_phases_score(md_context *context, const md_gauge *gauge, md_link_kind kind,
                          md_phases *phases) {
  double values[SUMS], scores[MD_PHASE_CONVENTIONS];
  MD_TRY(sum_determinants(context, gauge, kind, values));
  int best = MD_PHASES_NONE;
  for (int c = 0; c < MD_PHASE_CONVENTIONS; c++) {
    scores[c] = share(values[c], values[ABSOLUTE]);
    if (scores[c] > scores[best]) best = c;
  }
  const double boundary = share(values[COLUMNS + best], values[COLUMNS + ABSOLUTE]);
  *phases = (md_phases){.convention = (md_phase_convention)best,
                        .antiperiodic = boundary < 0.0,
                        .score = scores[best],
                        .boundary_score = fabs(boundary)};
  bool clear = phases->score >= MD_PHASE_SCORE && phases->boundary_score >= MD_PHASE_SCORE;
  for (int c = 0; c < MD_PHASE_CONVENTIONS; c++)
    clear = clear && (c == best || fabs(scores[c]) <= 0.5 * phases->score);
  phases->clear = clear;
  memcpy(phases->scores, scores, sizeof scores);
  return MD_OK;
}

md_status md_phases_find(md_context *context, const md_gauge *gauge, md_link_kind kind,
                         const char *name, md_phases *phases) {
  const double *scores = phases->scores;
  MD_TRY(md_phases_score(context, gauge, kind, phases));
  if (phases->clear) return MD_OK;
  if (phases->convention == MD_PHASES_NONE && !phases->antiperiodic &&
      phases->score >= MD_PHASE_DOUBT && phases->boundary_score >= MD_PHASE_DOUBT) {
    md_warn(context,
            "%s: the signs of these %s links are not clear (scores: no phases %.2f, boundary "
            "periodic %.2f; clear is above %.2f); they are taken as bare",
            name, md_link_kind_name(kind), phases->score, phases->boundary_score, MD_PHASE_SCORE);
    return MD_OK;
  }
  if (scores[MD_PHASES_NONE] <= -MD_PHASE_SCORE)
    return md_fail(context, MD_INPUT,
                   "%s: determinants of %s links must be mostly %s, these have the other sign "
                   "(score %.2f)%s",
                   name, md_link_kind_name(kind), kind == MD_LINKS_LONG ? "negative" : "positive",
                   scores[MD_PHASES_NONE],
                   kind == MD_LINKS_LONG ? "; the Naik coefficient -1/24 must be in them" : "");
  return md_fail(context, MD_INPUT,
                 "%s: phases and boundary sign of %s links must be clear, with a score above "
                 "%.2f, the scores are: none %.2f, xyzt %.2f, txyz %.2f, boundary %s %.2f",
                 name, md_link_kind_name(kind), MD_PHASE_SCORE, scores[MD_PHASES_NONE],
                 scores[MD_PHASES_XYZT], scores[MD_PHASES_TXYZ],
                 phases->antiperiodic ? "antiperiodic" : "periodic", phases->boundary_score);
}

static void apply_site(md_gauge *gauge, md_link_kind kind, const md_phases *phases, int p,
                       int64_t site) {
  int x[MD_DIMS];
  md_global_coordinates(gauge->geometry, p, site, x);
  for (int mu = 0; mu < MD_DIMS; mu++) {
    double u[MD_LINK_REALS];
    const bool crossing = crosses(gauge->geometry, kind, mu, x);
    const int sign = (phases->antiperiodic && crossing ? -1 : 1) * eta(phases->convention, mu, x);
    if (sign > 0) continue;
    md_gauge_get(gauge, p, mu, site, u);
    for (int c = 0; c < MD_LINK_REALS; c++) u[c] = -u[c];
    md_gauge_set(gauge, p, mu, site, u);
  }
}

md_status md_phases_apply(md_context *context, md_gauge *gauge, md_link_kind kind,
                          const md_phases *phases) {
  for (int p = 0; p < MD_PARITIES; p++) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < gauge->geometry->sites; i++) apply_site(gauge, kind, phases, p, i);
  }
  return md_gauge_exchange(context, gauge);
}
