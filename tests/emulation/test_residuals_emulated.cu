/* CG in residuals alone, on the host (emulated.h): the kernel by which the vectors of multi-shift
 * CG take a turn of iterations, against plain loops, in fields whose planes lie apart, for shifts
 * that rest from some iteration on; and the scalars of the three-term form, which must make the
 * residuals of CG. */
#include "emulated.h"

#include <vector>

#include "dirac/solvers/device/shift_update.cuh"

extern "C" {
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
}

namespace {

enum { SITES = 24, SHIFTS = 3, THREADS = 64 };

/* NaN fails. */
void at_most(double value, double limit, const char *what) {
  if (!(value <= limit)) print_error("%s: %g is more than %g\n", what, value, limit);
  assert_true(value <= limit);
}

/* Between -1 and 1, without symmetry. */
double number(int k) {
  return sin(1.7 * k + 0.3 * sin(0.1 * k));
}

/* Reals of a field, with what must stay as it is between the planes of one right-hand side. */
template <class S> std::vector<S> field(int64_t reals, int seed) {
  std::vector<S> f(reals);
  for (int64_t i = 0; i < reals; i++) f[i] = (S)number((int)i + 1000 * seed);
  return f;
}

void fill(scalars &s, int n_rhs, int count) {
  for (int r = 0; r < n_rhs; r++)
    for (int k = 0; k < SHIFTS; k++) {
      s.steps[k][r] = (2 * k + r) % 5 == 0 ? (k + r) % (count + 1) : count;
      for (int j = 0; j < STEPS; j++) {
        const bool rests = j >= s.steps[k][r];
        s.for_x[j][k][r] = rests ? NAN : number(3 * j + 5 * k + 7 * r);
        s.for_p[j][k][r] = rests ? NAN : number(11 * j + 13 * k + 17 * r);
      }
    }
}

/* Where the right-hand side of real i of a field is, -1 for none. */
int side_of(bool one, int64_t i, int64_t stride, int n_rhs) {
  if (!one) return (int)(i / 2 % n_rhs);
  return i % stride < SITES ? 0 : -1;
}

template <class S, bool ONE, int WIDTH> void check_turn(int n_rhs, int count) {
  const int64_t stride = SITES + 8, reals = ONE ? 6 * stride : 6 * SITES * n_rhs;
  const int64_t pieces = 6 * SITES * n_rhs / WIDTH;
  static scalars s;
  pairs<S> of = {};
  std::vector<S> r[STEPS], x[SHIFTS], p[SHIFTS];
  fill(s, n_rhs, count);
  for (int j = 0; j < STEPS; j++) r[j] = field<S>(reals, 1 + j), of.residual[j] = r[j].data();
  for (int k = 0; k < SHIFTS; k++) x[k] = field<S>(reals, 20 + k), of.x[k] = x[k].data();
  for (int k = 0; k < SHIFTS; k++) p[k] = field<S>(reals, 30 + k), of.p[k] = p[k].data();
  std::vector<S> want_x[SHIFTS], want_p[SHIFTS];
  for (int k = 0; k < SHIFTS; k++) {
    want_x[k] = x[k], want_p[k] = p[k];
    for (int64_t i = 0; i < reals; i++) {
      const int rhs = side_of(ONE, i, stride, n_rhs);
      for (int j = 0; rhs >= 0 && j < s.steps[k][rhs]; j++) {
        want_x[k][i] += (S)s.for_x[j][k][rhs] * want_p[k][i];
        want_p[k][i] = r[j][i] + (S)s.for_p[j][k][rhs] * want_p[k][i];
      }
    }
  }
  const int blocks = (int)((pieces + THREADS - 1) / THREADS);
  for (int b = 0; b < blocks; b++)
    assert_true(emulate_block(THREADS, blocks, b, 0, [&] {
      take_turn<S, ONE, WIDTH>(&s, of, stride, SHIFTS, SITES, n_rhs, pieces, count);
    }));
  const double rounding = sizeof(S) == 8 ? 1e-14 : 1e-5;
  for (int k = 0; k < SHIFTS; k++)
    for (int64_t i = 0; i < reals; i++) {
      at_most(fabs(x[k][i] - want_x[k][i]), rounding, "x of a turn");
      at_most(fabs(p[k][i] - want_p[k][i]), rounding, "p of a turn");
    }
}

void turns(void **state) {
  (void)state;
  for (int count = 1; count <= STEPS; count++) {
    check_turn<double, true, 2>(1, count);
    check_turn<float, true, 4>(1, count);
    check_turn<double, false, 2>(3, count);
    check_turn<double, false, 2>(16, count);
    check_turn<float, false, 2>(3, count);
    check_turn<float, false, 4>(16, count);
  }
}

/* A = m^2 + D^T D of a dense matrix D. */
enum { N = 12 };
const double MASS2 = 0.01;

double entry(int i, int j) {
  return number(N * i + j) + (i == j ? 1.5 : 0.0);
}
/* y = D x, or D^T x */
std::vector<double> times(const std::vector<double> &x, bool transposed) {
  std::vector<double> y(N, 0.0);
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) y[i] += (transposed ? entry(j, i) : entry(i, j)) * x[j];
  return y;
}
double dot(const std::vector<double> &x, const std::vector<double> &y) {
  double sum = 0.0;
  for (int i = 0; i < N; i++) sum += x[i] * y[i];
  return sum;
}

/* p = r + b q with <q, A p> = 0, as in the midst of a solve, for a q with <q, r> = 0. */
std::vector<double> direction(const std::vector<double> &r) {
  std::vector<double> q(N), p = r;
  for (int i = 0; i < N; i++) q[i] = number(50 + i);
  const double of_r = dot(q, r) / dot(r, r);
  for (int i = 0; i < N; i++) q[i] -= of_r * r[i];
  const std::vector<double> dq = times(q, false), dr = times(r, false);
  const double b = -dot(dq, dr) / (MASS2 * dot(q, q) + dot(dq, dq));
  for (int i = 0; i < N; i++) p[i] += b * q[i];
  return p;
}

/* Residuals of a few iterations of CG that begin in the midst of a solve. */
void three_terms(void **state) {
  (void)state;
  enum { ITERATIONS = 6, RHS = 2 };
  double step[3][MD_MAX_RHS] = {};
  std::vector<double> r(N), before, other;
  for (int i = 0; i < N; i++) r[i] = number(i);
  std::vector<double> p = direction(r);
  other = r; /* by three terms */
  three_term last = {};
  for (int k = 0; k < ITERATIONS; k++) {
    /* As Hestenes and Stiefel have it. */
    const std::vector<double> dp = times(p, false), ddp = times(dp, true);
    const double norm2 = dot(r, r), alpha = norm2 / (MASS2 * dot(p, p) + dot(dp, dp));
    for (int i = 0; i < N; i++) r[i] -= alpha * (MASS2 * p[i] + ddp[i]);
    const double beta = dot(r, r) / norm2;
    /* In residuals: the stencil takes p at the beginning. The second hop is Deo, so -D^T here. */
    const bool anew = k == 0;
    const std::vector<double> from = anew ? p : other, d = times(from, false), dd = times(d, true);
    const double p_ap = p_ap_of(last, MASS2, dot(from, from), dot(d, d));
    const double own_norm2 = dot(other, other), own_alpha = own_norm2 / p_ap;
    set_step(step, RHS, anew, last, own_alpha, MASS2);
    const std::vector<double> &add = anew ? other : before;
    std::vector<double> next(N);
    for (int i = 0; i < N; i++)
      next[i] = -step[0][RHS] * dd[i] + step[1][RHS] * from[i] + step[2][RHS] * add[i];
    before = other, other = next;
    last = {own_alpha, dot(other, other) / own_norm2, p_ap};
    at_most(fabs(own_alpha / alpha - 1.0), 1e-8, "alpha");
    for (int i = 0; i < N; i++) p[i] = r[i] + beta * p[i];
    double difference = 0.0;
    for (int i = 0; i < N; i++) difference = fmax(difference, fabs(other[i] - r[i]));
    at_most(difference, 1e-10 * sqrt(norm2), "a residual");
  }
}

/* With alpha = 0 a right-hand side that is done stays as it is. */
void rests(void **state) {
  (void)state;
  double step[3][MD_MAX_RHS];
  set_step(step, 0, false, {0.5, 0.25, 2.0}, 0.0, MASS2);
  assert_true(step[0][0] == 0.0 && step[1][0] == 1.0 && step[2][0] == 0.0);
  set_step(step, 0, true, {}, 0.0, MASS2);
  assert_true(step[0][0] == 0.0 && step[1][0] == 0.0 && step[2][0] == 1.0);
}

} // namespace

int main(void) {
  const CMUnitTest tests[] = {{"turns", turns}, {"three_terms", three_terms}, {"rests", rests}};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
