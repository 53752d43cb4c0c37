#ifndef MD_DIRAC_SOLVERS_CG_H
#define MD_DIRAC_SOLVERS_CG_H

#include "dirac/backend.h"
#include "dirac/solvers/solver.h"

/* Fields and arrays for `most` iterations, all zero; x, r and p have the operator's shape. Local.
 */
md_status md_cg_state_create(md_context *context, const md_dirac *dirac, int most,
                             md_cg_state *state);
/* Whether iterations make the next residual from the last two, on a device in double or single, so
 * that a state to go on from needs both; and the room for it. Local. */
bool md_cg_carries(const md_dirac *dirac, const md_solver_request *request);
md_status md_cg_state_carry(md_context *context, const md_dirac *dirac, md_cg_state *state);
void md_cg_state_destroy(md_cg_state *state);

/* Iterates A x = r0 on even sites, from state->r = state->p = r0 and r_norm2 set, until every
 * right-hand side has |r| <= tolerance * mass * b_norm or state->iteration reaches the most. The
 * solution is added to state->x. Collective. */
md_status md_cg_iterate(md_context *context, md_dirac *dirac, const md_solver_request *request,
                        md_cg_state *state);

/* Puts a saved state in the place of the fresh one where the request has one. Collective. */
md_status md_cg_resume(md_context *context, const md_solver_request *request, md_cg_state *state);
/* Whether the observer reads the state's fields after this iteration. Local. */
bool md_cg_is_read(const md_solver_request *request, int iteration);
/* Hands the state of an interrupted solve to request->leave. Collective. */
md_status md_cg_leave(md_context *context, const md_solver_request *request,
                      const md_cg_state *state);

/* For the two ways to iterate. The |r| at which a right-hand side is done; and the history entry
 * of the state's iteration, true when all are done. Local. */
double md_cg_limit(const md_solver_request *request, const md_cg_state *state, int rhs);
bool md_cg_record(const md_solver_request *request, md_cg_state *state);
/* md_cg_iterate for a backend that fuses; only in builds with CUDA. Collective. */
md_status md_cg_iterate_fused(md_context *context, md_dirac *dirac,
                              const md_solver_request *request, md_cg_state *state);

#endif
