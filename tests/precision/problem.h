#pragma once

#include "dirac/backend.h"
#include "dirac/solvers/solver.h"
#include "support.h"

/* M x = b on random links, host fields in double. */
typedef struct problem {
  md_geometry *g;
  md_gauge field[MD_MOST_LINK_FIELDS];
  md_backend_request physics; /* its action, boundary and twist */
  md_field b[MD_PARITIES], x[MD_PARITIES];
} problem;

/* 4x4x4x8, links by seed, sources of normal deviates; naive action, antiperiodic. Collective. */
void problem_make(md_context *context, int n_rhs, problem *p);
/* The same of the action, boundary and twist of a request, for as many right-hand sides. */
void problem_make_of(md_context *context, const md_backend_request *request, problem *p);
/* With the sources b, 0, 2 b, c, b + 1e-9 c: three of the five add nothing, or next to nothing, to
 * a block of them. */
void problem_make_dependent(md_context *context, problem *p);
/* Requires their solutions to this tolerance, and that of 0 to be 0. */
void problem_check_dependent(md_context *context, problem *p, double mass, double tolerance);
void problem_drop(problem *p);
/* Operator of the problem, 18 reals, no packing. */
void problem_dirac(md_context *context, const problem *p, const char *backend,
                   md_precision precision, md_dirac *dirac);
/* |b_r - M x_r| / |b_r| of every right-hand side by cpu_ref, apart from the solver's own. */
void problem_residuals(md_context *context, problem *p, double mass, double *residuals);
