#pragma once

#include "dirac/solvers/solver.h"

MD_C_BEGIN

enum { MD_MAX_SHIFTS = 64 };

typedef struct md_multishift_request {
  double mass;
  const double *shifts; /* mass^2 + shift > 0 for each; with spin shift >= 0 */
  int n_shifts;         /* 1 .. MD_MAX_SHIFTS */
  double tolerance;   /* on norm(b - (A + shift) x) / norm(b) of every shift and right-hand side */
  int max_iterations; /* of the common iteration, and again of each refinement */
  /* Where `dirac` is narrower than double the iterations begin in `exact`, until rounding no longer
   * spoils what the tolerance asks for; shifts whose true residual misses it all the same go on by
   * CG in double, with `dirac` as the inner operator where that is narrower. */
  bool refine;
  /* Lowest modes of -Deo Doe in the space of the exact operator, or NULL: every shift begins with
   * their part of its solution, which leaves the same residual to all but for the modes' own. */
  const md_modes *modes;
  /* Called after each common iteration with the largest residual estimate; may be NULL. */
  md_status (*observe)(void *user, int iteration, double residual);
  void *user;
} md_multishift_request;

typedef struct md_shift_result {
  double shift;
  int iterations;           /* common iterations until this shift was done */
  int refine_iterations;    /* of CG after that */
  double estimate;          /* residual of the recursion, largest of the right-hand sides */
  double relative_residual; /* the true one in double */
  bool converged;           /* by the true one */
} md_shift_result;

typedef struct md_multishift_result {
  md_shift_result *shifts; /* n_shifts entries in the order of the request */
  int n_shifts;
  int iterations;        /* of the common iteration */
  int double_iterations; /* the first of them, in double ahead of narrower ones */
  double *history;       /* iterations + 1 entries: largest estimate of the shifts that go on */
  bool converged;        /* all */
  bool interrupted;      /* a signal ended the iterations early, see base/interrupt.h */
  double seconds, gflops;
} md_multishift_result;

/* Solves (A + shift_k) x_k = b on the even sites for all shifts in one Krylov space, A = M^dag M or
 * S S^dag of Wilson quarks (dirac/wilson/wilson.h), of which another mass is no shift
 * (B. Jegerlehner, hep-lat/9612014): the smallest shift is iterated, the others follow by scalar
 * recursions at the cost of one vector update each, and none once they are done.
 * b and x[k]: host, MD_DOUBLE, parity even, n_rhs as in md_solve_cg; x is assigned.
 * The iteration runs in the precision of `dirac`, with request->refine in double first; residuals
 * and refinements in `exact`, MD_DOUBLE, which may be `dirac`. MD_OK also when not converged;
 * MD_UNREACHED when a sum is not finite: then the result says how far it came, no shift has
 * converged and true residuals are NaN. Free the result also after a failure. Collective. */
md_status md_solve_multishift(md_context *context, md_dirac *dirac, md_dirac *exact,
                              const md_multishift_request *request, md_field *x, const md_field *b,
                              md_multishift_result *result);
void md_multishift_result_free(md_multishift_result *result);

MD_C_END
