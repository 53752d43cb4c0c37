#ifndef MD_DIRAC_SOLVER_H
#define MD_DIRAC_SOLVER_H

#include "dirac/operator.h"

typedef struct md_solver_request {
  double mass;
  double tolerance; /* on norm(b - M x) / norm(b) of every right-hand side */
  int max_iterations;
  /* Called after each iteration with the largest recursive residual over right-hand sides; NULL:
   * not called. */
  void (*progress)(void *user, int iteration, double relative_residual);
  void *user;
} md_solver_request;

typedef struct md_solver_result {
  int iterations;           /* of the right-hand side that took longest */
  bool converged;           /* every right-hand side: its true residual meets the tolerance */
  double relative_residual; /* largest true one, norm(b - M x) / norm(b) in double */
  double *residuals;        /* true one of each right-hand side, n_rhs entries */
  int *rhs_iterations;      /* of each right-hand side */
  double *history;          /* largest relative recursive residual of the even system after each
                               iteration, history[0] = 1 before the first; iterations + 1 entries */
  double seconds;           /* in the solver */
  double gflops; /* 570 flops per hop, site and right-hand side over those seconds, all ranks */
} md_solver_result;

/* Solves M x = b for all right-hand sides at once by conjugate gradients on the even sites:
 *   (m^2 - Deo Doe) x_e = m b_e - Deo b_o,   x_o = (b_o - Doe x_e) / m.
 * b and x: host, MD_DOUBLE, n_rhs as the operator's, [even, odd]; x is assigned (start: zero).
 * The iteration runs in the operator's precision; the residual that decides is recomputed in
 * double with `exact`, a MD_DOUBLE operator of the same links (may be `dirac` itself).
 * MD_OK also when not converged (see result); MD_UNREACHED with a message when a sum is NaN or
 * infinite or the operator is not positive. Free the result with md_solver_result_free.
 * Collective. */
md_status md_solve_cg(md_context *context, md_dirac *dirac, md_dirac *exact,
                      const md_solver_request *request, md_field x[MD_PARITIES],
                      md_field b[MD_PARITIES], md_solver_result *result);
void md_solver_result_free(md_solver_result *result);

#endif
