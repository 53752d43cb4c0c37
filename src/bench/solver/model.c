#include "bench/solver/model.h"

#include <math.h>
#include <stdlib.h>

enum { CELLS = 3000 }; /* of the spectrum above the known modes: finer than CG can tell apart */

/* Eigenvalues of -Deo Doe below the square of `mu`, by a straight line between neighbouring knots:
 * in mu, as the density of the Dirac operator's eigenvalues is even near its lower end. */
typedef struct counts {
  int knots;
  double mu[MD_EIGEN_NODES + 2], below[MD_EIGEN_NODES + 2];
} counts;

static void add_knot(counts *c, double mu, double below) {
  if (c->knots > 0 && (mu <= c->mu[c->knots - 1] || below <= c->below[c->knots - 1])) return;
  c->mu[c->knots] = mu;
  c->below[c->knots++] = below;
}

/* From the last mode on. A Ritz value stands for its share of the unknowns, half of it below. */
static counts counts_of(const md_cg_spectrum *s) {
  const md_eigen_density *d = &s->density;
  counts c = {.knots = 0};
  double sum = 0.0;
  add_knot(&c, sqrt(fmax(s->low[s->count - 1], 0.0)), s->count);
  for (int i = 0; i < d->nodes; i++) {
    const double below = (sum + 0.5 * d->share[i]) * s->unknowns;
    sum += d->share[i];
    if (d->value[i] > 0.0) add_knot(&c, sqrt(d->value[i]), below);
  }
  add_knot(&c, 1.001 * c.mu[c.knots - 1], s->unknowns);
  return c;
}

static double count_below(const counts *c, double mu) {
  int k = 1;
  while (k + 1 < c->knots && c->mu[k] < mu) k++;
  const double part = (mu - c->mu[k - 1]) / (c->mu[k] - c->mu[k - 1]);
  return c->below[k - 1] + part * (c->below[k] - c->below[k - 1]);
}

/* Numbers of the diagonal matrix, and how many of A's each stands for; returns how many there are:
 * the known modes, then one for each cell or, where they are rarer, for each eigenvalue. */
static int fill(const md_cg_spectrum *s, double *value, double *weight) {
  const counts c = counts_of(s);
  int n = 0;
  for (; n < s->count; n++) value[n] = fmax(s->low[n], 0.0), weight[n] = 1.0;
  if (c.knots < 2) return n;
  const double first = c.mu[0], cell = (c.mu[c.knots - 1] - first) / CELLS;
  double waiting = 0.0;
  for (int i = 0; i < CELLS; i++) {
    const double mu = first + (i + 0.5) * cell;
    waiting += count_below(&c, mu + 0.5 * cell) - count_below(&c, mu - 0.5 * cell);
    if (waiting < 1.0) continue;
    value[n] = mu * mu, weight[n++] = waiting;
    waiting = 0.0;
  }
  return n;
}

/* CG on the diagonal matrix a from the residual r; work is as long. */
static int iterate(int n, const double *a, double *r, double *p, double target2, int most) {
  double r2 = 0.0;
  for (int i = 0; i < n; i++) p[i] = r[i], r2 += r[i] * r[i];
  for (int k = 0; k < most; k++) {
    double pap = 0.0, next2 = 0.0;
    if (r2 <= target2) return k;
    for (int i = 0; i < n; i++) pap += a[i] * p[i] * p[i];
    const double alpha = r2 / pap;
    for (int i = 0; i < n; i++) {
      r[i] -= alpha * a[i] * p[i];
      next2 += r[i] * r[i];
    }
    for (int i = 0; i < n; i++) p[i] = r[i] + next2 / r2 * p[i];
    r2 = next2;
  }
  return most;
}

md_status md_cg_estimate_of(md_context *context, const md_cg_spectrum *spectrum, int removed,
                            double mass, double tolerance, int most, md_cg_estimate *estimate) {
  const size_t room = (size_t)spectrum->count + CELLS, bytes = 4 * room * sizeof(double);
  double *a = malloc(bytes), first2 = 0.0;
  if (!a) return md_fail_memory(context, bytes, "an estimate of iterations");
  double *weight = a + room, *r = weight + room, *p = r + room;
  const int n = fill(spectrum, a, weight);
  /* A random b has one unit in every eigenvector of both parities; s = m b_e - Deo b_o then has
   * m^2 + lambda, and |r| of the even sites is m times that of M. */
  const double b2 = 2.0 * spectrum->unknowns, unit2 = mass * mass * b2;
  for (int i = 0; i < n; i++) {
    a[i] += mass * mass;
    r[i] = i < removed ? 0.0 : sqrt(weight[i] * a[i]);
    first2 += r[i] * r[i];
  }
  estimate->first = sqrt(first2 / unit2);
  estimate->iterations = iterate(n, a, r, p, tolerance * tolerance * unit2, most);
  free(a);
  return MD_OK;
}
