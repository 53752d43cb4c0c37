#include "dirac/solvers/outer.h"
#include "base/interrupt.h"
#include "dirac/solvers/cg.h"
#include "dirac/solvers/low_modes.h"
#include "dirac/solvers/reliable_update.h"
#include "lattice/fields/linear.h"

#include <math.h>

md_status md_outer_create(md_outer *o, double roundoff) {
  const md_modes *modes = o->request->modes;
  const double norm = o->dirac->norm;
  if (modes && modes->count > 0) { /* 32: of the iterations until an update, as measured */
    const double kappa = md_low_modes_kappa(modes, o->request->mass, norm);
    o->low_noise = 32.0 * md_low_modes_noise(modes, kappa, norm, roundoff);
  }
  for (int r = 0; r < o->state->n_rhs; r++) o->best[r] = sqrt(o->state->r_norm2[r]);
  MD_TRY(md_dirac_field(o->context, o->dirac, MD_EVEN, &o->scratch));
  return md_dirac_field(o->context, o->dirac, MD_ODD, &o->odd);
}

void md_outer_destroy(md_outer *o) {
  md_field_destroy(&o->scratch);
  md_field_destroy(&o->odd);
}

void md_outer_take_units(md_outer *o) {
  for (int k = 0; k < o->state->n_rhs; k++) {
    o->unit[k] = sqrt(o->state->r_norm2[k]);
    o->done[k] = o->unit[k] <= md_cg_limit(o->request, o->state, k);
  }
}

md_status md_outer_hand_down(md_outer *o, bool rest, md_field *r) {
  const md_cg_state *s = o->state;
  double inverse[MD_MAX_RHS];
  md_outer_take_units(o);
  for (int k = 0; k < s->n_rhs; k++)
    inverse[k] = (o->done[k] && rest) || o->unit[k] == 0.0 ? 0.0 : 1.0 / o->unit[k];
  return md_agree(o->context, md_field_convert_times(o->context, r, inverse, &s->r));
}

/* scratch = s - A x in double, and its norm^2. norm2: it should be what the recursion says, where
 * it stagnates not far above the last one; NULL: a projection may have raised it. */
static md_status true_residual(md_outer *o, const double *norm2) {
  md_cg_state *s = o->state;
  const double mass2 = o->request->mass * o->request->mass;
  const md_hop_end minus_a = {.x = &s->x, .a = -mass2, .b = 1.0};
  double one[MD_MAX_RHS], guess[MD_MAX_RHS];
  for (int r = 0; r < s->n_rhs; r++) {
    one[r] = 1.0;
    if (norm2) guess[r] = o->unit[r] * o->unit[r] * fmax(norm2[r], 0x1p-10);
  }
  MD_TRY(md_dirac_hop(o->context, o->dirac, &o->odd, &s->x, NULL));
  MD_TRY(md_dirac_hop(o->context, o->dirac, &o->scratch, &o->odd, &minus_a));
  if (!norm2) return md_linear_axpy_norm2(o->context, one, &s->p, &o->scratch, s->r_norm2);
  return md_linear_axpy_norm2_near(o->context, one, &s->p, &o->scratch, guess, s->r_norm2);
}

/* x += y. The inner operator may work in another space. */
static md_status add_partial(md_outer *o, const md_field *y) {
  md_cg_state *s = o->state;
  if (s->x.space == y->space) return md_field_add_single(o->context, &s->x, o->unit, y);
  MD_TRY(md_field_convert(o->context, &o->scratch, y));
  md_linear_axpy(o->unit, &o->scratch, &s->x);
  return MD_OK;
}

md_status md_outer_add(md_outer *o, const double *norm2, const md_field *y) {
  MD_TRY(md_agree(o->context, add_partial(o, y)));
  return true_residual(o, norm2);
}

/* As long as neither what was there nor what the iterations since can have added come near a tenth
 * it is not even measured. unit is still that of the last update. */
md_status md_outer_project(md_outer *o) {
  enum { TENTH2 = 100 };
  md_cg_state *s = o->state;
  double least[MD_MAX_RHS], part2[MD_MAX_RHS];
  bool near = false;
  o->projected = false;
  if (!o->request->modes || o->request->modes->count == 0) return MD_OK;
  for (int r = 0; r < s->n_rhs; r++) {
    least[r] = s->r_norm2[r] / TENTH2;
    o->low[r] += o->low_noise * o->unit[r];
    near = near || o->low[r] * o->low[r] > least[r];
  }
  if (!near) return MD_OK;
  MD_TRY(md_low_modes_project(o->context, o->request->modes, o->request->mass, &o->scratch, least,
                              &s->x, part2, &o->projected));
  for (int r = 0; r < s->n_rhs; r++) o->low[r] = o->projected ? 0.0 : sqrt(part2[r]);
  if (!o->projected) return MD_OK;
  s->projections++;
  return true_residual(o, NULL);
}

md_status md_outer_take(md_outer *o) {
  md_cg_state *s = o->state;
  const md_field before = s->r;
  s->r = o->scratch;
  o->scratch = before;
  for (int r = 0; r < s->n_rhs; r++) {
    if (!isfinite(s->r_norm2[r]))
      return md_fail(o->context, MD_UNREACHED,
                     "the residual must be finite, got %g in iteration %d of right-hand side %d",
                     s->r_norm2[r], s->iteration, r);
    const double now = sqrt(s->r_norm2[r]);
    if (o->projected) o->best[r] = INFINITY; /* rounded modes leave more behind in high ones */
    o->in_vain[r] = md_update_is_vain(now, o->best[r]) ? o->in_vain[r] + 1 : 0;
    o->best[r] = fmin(o->best[r], now);
  }
  s->updates++;
  return MD_OK;
}

bool md_outer_at_end(const md_outer *o, int since) {
  md_cg_state *s = o->state;
  bool all = true;
  s->stalled = false;
  for (int r = 0; r < s->n_rhs; r++) {
    const bool stalled = !o->done[r] && o->in_vain[r] >= MD_UPDATES_MOST_IN_VAIN;
    all = all && (o->done[r] || stalled);
    s->stalled = s->stalled || stalled;
  }
  s->stalled = s->stalled && all;
  return all || s->iteration >= s->most || (s->interrupted && since == 0);
}

bool md_outer_count(md_outer *o, const double *norm2) {
  md_cg_state *s = o->state;
  bool all = true;
  double worst = 0.0;
  s->iteration++;
  for (int r = 0; r < s->n_rhs; r++) {
    const double size = o->unit[r] * (o->done[r] ? 1.0 : sqrt(norm2[r]));
    if (s->b_norm[r] > 0.0) worst = fmax(worst, size / (o->request->mass * s->b_norm[r]));
    if (o->done[r]) continue;
    s->rhs_iterations[r]++;
    all = all && size <= md_cg_limit(o->request, s, r);
  }
  s->history[s->iteration] = worst;
  s->interrupted = md_interrupted(o->context);
  return all;
}
