#ifndef MD_DIRAC_SOLVERS_CG_STEPS_H
#define MD_DIRAC_SOLVERS_CG_STEPS_H

#include "dirac/solvers/solver.h"

/* Iterations of conjugate gradients on the device, handed out one at a time while the next is
 * under way, for solvers that decide between them: alpha = |r|^2 / <p, A p>, r -= alpha A p,
 * x += alpha p, p = r + (|r|^2 / |r|^2 before) p. */
typedef struct md_cg_steps md_cg_steps;
/* What follows the iteration that is waited for: another one under way; nothing, so that x and p
 * still lack its update; or its update alone, after which the fields are as between two iterations,
 * to be read, and to be begun from. */
typedef enum md_cg_next { MD_NEXT_GOES_ON, MD_NEXT_IS_LAST, MD_NEXT_IS_WHOLE } md_cg_next;
struct md_cg_steps {
  /* Goes on from the fields as they are now, norm2[rhs] = |r|^2; a right-hand side that is `done`
   * has alpha = 0 from here on. Steps under way are dropped. Collective. */
  md_status (*begin)(md_context *context, md_cg_steps *steps, const double *norm2,
                     const bool *done);
  /* Waits for the next iteration's alpha and norm2 (|r|^2 after it); *sound is false when <p, A p>
   * was not positive or a sum not finite. Collective. */
  md_status (*next)(md_context *context, md_cg_steps *steps, md_cg_next then, double *alpha,
                    double *norm2, bool *sound);
  void (*destroy)(md_cg_steps *steps);
  /* The steps' own, of which `before`, `carried` and `carries` are for the caller: there, and to be
   * saved, where iterations make the next residual from the last two (as in md_cg_state) and the
   * fields are to be read. Whoever changes r or p sets carries = false. */
  md_cg_state *state;
};

/* For an operator that fuses into fields of r's precision (md_normal_fuses). x, r and p are even
 * fields of the caller's, which outlive the steps; x or both x and r may be MD_SINGLE where p is
 * 16-bit. reads: MD_NEXT_IS_WHOLE will be asked for. *steps is to be destroyed after a failure too,
 * unless NULL. Only in builds with CUDA. Local. */
md_status md_cg_steps_create(md_context *context, md_operator *a, const md_field *x,
                             const md_field *r, const md_field *p, bool reads, md_cg_steps **steps);

#endif
