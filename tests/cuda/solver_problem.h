#ifndef MD_TESTS_CUDA_SOLVER_PROBLEM_H
#define MD_TESTS_CUDA_SOLVER_PROBLEM_H

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

#endif
