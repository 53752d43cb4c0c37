#ifndef MD_DIRAC_SOLVERS_NEED_H
#define MD_DIRAC_SOLVERS_NEED_H

#include "base/memory_need.h"
#include "dirac/backend.h"
#include "dirac/operator.h"

/* What a solve is going to be, for an estimate before anything is allocated. */
typedef struct md_solver_plan {
  const md_backend *backend;
  md_backend_request request; /* of the operator that iterates; of the inner one where mixed */
  bool mixed;                 /* under a double operator */
  int n_shifts;               /* 0: CG or block CG */
  double mass, tolerance;
  bool block;  /* block CG, or the choice between that and CG in step */
  bool refine; /* multi-shift CG goes on until double-precision answers */
} md_solver_plan;

/* Adds the operators of the solve and the fields that md_solve_cg or md_solve_multishift makes.
 * Tests hold the sum with the lattice to the measured peak. Local. */
void md_solver_need(const md_geometry *geometry, const md_solver_plan *plan, md_memory_need *need);

#endif
