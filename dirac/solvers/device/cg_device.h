#pragma once

#include "dirac/backend.h"
#include "dirac/solvers/solver.h"

/* The scalars of conjugate gradients on the device, one of each per right-hand side, so that an
 * iteration needs nothing from the host. The host reads reports one iteration behind. Functions
 * without a status queue work; its failure is met when a report is awaited. */
typedef struct md_cg_device md_cg_device;

/* What the host learns of an iteration. failure: 0, or 1: <p, A p> not finite, 2: not positive,
 * 3: |r|^2 not finite; then `value` is what was found. */
typedef struct md_cg_report {
  double r_norm2, alpha, value;
  int iterations, failure;
} md_cg_report;

/* In 16 bits an iteration makes the next direction p from r, and so many directions are kept until
 * x takes them all. In double and single it makes the next residual from the last two
 * (three_term.cuh), and so many residuals are kept until x and p take them all: most iterations
 * have no pass over vectors. */
enum { MD_CG_DIRECTIONS = 8 };

/* For a normal operator, which outlives it, and search directions of its shape, a few of which it
 * keeps. Local. */
md_status md_cg_device_create(md_context *context, const md_operator *a, md_cg_device **cg);
void md_cg_device_destroy(md_cg_device *cg);

/* Before the first iteration and wherever the host has changed the fields: scalars from the
 * state's r_norm2 and rhs_iterations, and |p|^2 as md_cg_device_update sums it; limit[r]: |r| at
 * which a right-hand side is done. x or both x and r of the state may be MD_SINGLE beside a 16-bit
 * p.
 * Collective. */
md_status md_cg_device_start(md_context *context, md_cg_device *cg, md_cg_state *state,
                             const double *limit);
/* The first four kernels of an iteration: D p or D r with its |.|^2; alpha = |r|^2 / <p, A p>, 0
 * for right-hand sides that are done; r -= alpha A p with |r|^2; beta = |r|^2 / the one before, and
 * the iteration's report. Collective. */
md_status md_cg_device_queue_step(md_context *context, md_cg_device *cg, md_cg_state *state);
/* The last one: p = r + beta p with |p|^2; and every few iterations x takes what it lacks, in
 * double and single p too. Until md_cg_device_complete the state's x lags behind and its p and r
 * may be older ones. */
void md_cg_device_update(md_cg_device *cg, md_cg_state *state);
/* Both, the last one of the iteration before first or that of this one last: recorded where
 * recorded_step.h says, always with the same state. Collective. */
md_status md_cg_device_queue(md_context *context, md_cg_device *cg, md_cg_state *state,
                             bool update_first);
void md_cg_device_complete(md_cg_device *cg, md_cg_state *state);
/* Waits for the next report that was not waited for yet; at most two may be under way. Agrees.
 * Collective. */
md_status md_cg_device_wait(md_context *context, md_cg_device *cg, md_cg_report *reports);

/* Iterations of conjugate gradients on the device, handed out one at a time while the next is
 * under way, for solvers that decide between them: alpha = |r|^2 / <p, A p>, r -= alpha A p,
 * x += alpha p, p = r + (|r|^2 / |r|^2 before) p. */
typedef struct md_cg_steps {
  md_cg_device *device;
  /* The steps' own, of which `before`, `carried` and `carries` are for the caller: there, and to be
   * saved, where iterations make the next residual from the last two (as in md_cg_state) and the
   * fields are to be read. Whoever changes r or p sets carries = false. The rest is borrowed. */
  md_cg_state state;
  double norm2[MD_MAX_RHS];
  int rhs_iterations[MD_MAX_RHS];
  int queued, reported; /* since the beginning */
} md_cg_steps;
/* For an operator that fuses into fields of r's precision (md_normal_fuses). x, r and p are even
 * fields of the caller's, which outlive the steps; x or both x and r may be MD_SINGLE where p is
 * 16-bit. reads: MD_NEXT_IS_WHOLE will be asked for. *steps is to be destroyed after a failure too,
 * where NULL is fine. These functions are only in builds with CUDA. Local. */
md_status md_cg_steps_create(md_context *context, md_operator *a, const md_field *x,
                             const md_field *r, const md_field *p, bool reads, md_cg_steps **steps);
void md_cg_steps_destroy(md_cg_steps *steps);
/* Goes on from the fields as they are now, norm2[rhs] = |r|^2; a right-hand side that is `done`
 * has alpha = 0 from here on. Steps under way are dropped. Collective. */
md_status md_cg_steps_begin(md_context *context, md_cg_steps *steps, const double *norm2,
                            const bool *done);
/* What follows the iteration that is waited for: another one under way; nothing, so that x and p
 * still lack its update; or its update alone, after which the fields are as between two iterations,
 * to be read, and to be begun from. */
typedef enum md_cg_next { MD_NEXT_GOES_ON, MD_NEXT_IS_LAST, MD_NEXT_IS_WHOLE } md_cg_next;
/* Waits for the next iteration's alpha and norm2 (|r|^2 after it); *sound is false when <p, A p>
 * was not positive or a sum not finite. Collective. */
md_status md_cg_steps_next(md_context *context, md_cg_steps *steps, md_cg_next then, double *alpha,
                           double *norm2, bool *sound);
