#include "dirac/solvers/need.h"
#include "dirac/solvers/block_deflation.h"
#include "dirac/solvers/block_steps.h"
#include "dirac/solvers/deflation.h"
#include "dirac/solvers/device/cg_device.h"
#include "dirac/solvers/multishift_state.h"
#include "dirac/solvers/reliable_update.h"

/* Fields of one parity by their shape. */
typedef struct counts {
  int exact, own, wide; /* double; of the operator; single where the operator is narrower */
} counts;

/* See set_rules of mixed_cg.c. */
static bool deflates(const md_geometry *g, const md_solver_plan *plan) {
  const double noise = md_update_noise(plan->mass, md_precision_roundoff(plan->request.precision));
  return (md_update_is_coarse(noise) && plan->backend->space == MD_HOST) ||
         md_update_is_small(plan->mass, plan->tolerance, 1.5 * (double)g->volume);
}

/* mixed_block.c beside CG in step, which `auto` tries as well. */
static counts count_block(const md_solver_plan *plan, counts in_step) {
  const bool apart = plan->backend->space == MD_DEVICE;
  const bool short_blocks =
      md_block_deflation_narrows(plan->backend->space, plan->request.precision);
  const int blocks = 2 * MD_BLOCK_DEFLATION_MOST;
  counts n = {.exact = in_step.exact,
              .own = 3 + (apart ? MD_BLOCK_KEPT : 0) + (short_blocks ? blocks : 0),
              .wide = 2 + !apart + (short_blocks ? 0 : blocks)};
  if (n.wide < in_step.wide) n.wide = in_step.wide;
  return n;
}

static counts count(const md_geometry *g, const md_solver_plan *plan) {
  enum { SYSTEM = 6, STATE = 3, WORK = 2 }; /* solver.c, cg.c */
  if (plan->n_shifts > 0) {                 /* multishift.c */
    const bool first =
        md_multishift_narrow_from(&plan->request, plan->tolerance, plan->refine) > 0.0;
    const bool fuses =
        plan->backend->fuses && (first || md_precision_bytes(plan->request.precision) > 2);
    const int n = plan->n_shifts, steps = fuses ? MD_SHIFT_KEPT : n > 1 ? MD_SHIFT_STEPS : 1;
    const int wide = 2 * n + steps - 1;
    return first ? (counts){.exact = 4 + wide + 3} : (counts){.exact = 4, .own = 3, .wide = wide};
  }
  if (!plan->mixed) return (counts){.exact = SYSTEM + plan->block, .own = STATE + WORK};
  const int in_step = deflates(g, plan) ? 2 * MD_DEFLATION_MOST : 0;
  counts n = {.exact = SYSTEM + STATE + WORK, .own = 3, .wide = 2 + in_step}; /* mixed_cg.c */
  return plan->block ? count_block(plan, n) : n;
}

void md_solver_need(const md_geometry *geometry, const md_solver_plan *plan, md_memory_need *need) {
  const counts n = count(geometry, plan);
  const md_backend_request *r = &plan->request;
  md_backend_request exact = *r;
  exact.precision = MD_DOUBLE;
  exact.reconstruct = MD_RECONSTRUCT_18;
  md_backend_need(geometry, plan->backend, r, need);
  if (r->precision != MD_DOUBLE || r->reconstruct != MD_RECONSTRUCT_18)
    md_backend_need(geometry, plan->backend, &exact, need);
  md_field_shape shape = {r->precision, plan->backend->space, MD_FERMION_REALS, r->n_rhs, true};
  int64_t *space = shape.space == MD_DEVICE ? &need->device : &need->host;
  if (plan->backend->fuses && plan->n_shifts == 0 && !plan->block) /* see cg_device.h */
    *space += (MD_CG_DIRECTIONS - 1) * md_field_bytes(geometry, &shape);
  *space += n.own * md_field_bytes(geometry, &shape);
  if (md_precision_bytes(shape.precision) == 2) shape.precision = MD_SINGLE;
  *space += n.wide * md_field_bytes(geometry, &shape);
  shape.precision = MD_DOUBLE;
  *space += n.exact * md_field_bytes(geometry, &shape);
}
