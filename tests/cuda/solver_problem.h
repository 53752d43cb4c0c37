#pragma once

#include "dirac/backend.h"
#include "dirac/solvers/solver.h"
#include "support.h"

/* M x = b on random links with a random first guess, host fields in double. */
typedef struct problem {
  md_geometry *geometry;
  md_gauge gauge;
  md_field b[MD_PARITIES], x[MD_PARITIES];
} problem;

/* halo: also in directions that are not split. Collective. */
void problem_make(md_context *context, const int extent[4], int n_rhs, bool halo, problem *p);
void problem_drop(problem *p);

/* The tolerance that CG in this precision alone is asked for: within what it attains at mass 0.3.
 */
double problem_tolerance(md_precision precision);
/* Holds a solution by CG in one precision to that of `exact` (converged to 1e-11 or better):
 *
 * - The true residual is the recursive one, at most the tolerance, and what rounding puts between
 *   the two: in each of N iterations x and r are stored, wrong by 0.4 u of their size (u the
 * roundoff, all relative errors up to it about equally likely), and A p is off by 0.9 u. A = m^2 +
 * D^dag D enlarges noise by ((2 + m^2)^2 + 56/16)^(1/2) = 2.8 on random links, |x| is 0.7 |b|, the
 * steps alpha A p add up to some 4 |b|, and |r| over m is the residual: sqrt(N) 0.4 2.8 0.7 u / m =
 * 14 u and 0.9 * 4 u / m = 12 u at N = 30, m = 0.3. Their sum, 26 u, is allowed; 10 u is seen.
 * - x - x* = M^-1 (b - M x) and |M^-1| <= 1/m, as D is antihermitian: |x - x*| <= residual |b| / m.
 *
 * Collective. */
void problem_check(md_context *context, const problem *p, const problem *exact,
                   md_precision precision, const md_solver_request *solver,
                   const md_solver_result *result);
