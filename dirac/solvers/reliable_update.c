#include "dirac/solvers/reliable_update.h"
#include "base/interrupt.h"
#include "dirac/solvers/cg.h"
#include "lattice/fields/linear.h"
#include "lattice/fields/panel.h"

#include <stdlib.h>
#include <string.h>

md_status md_low_modes_project(md_context *context, const md_modes *modes, double from,
                               const md_field *r, const double *least, md_field *x, double *part2,
                               bool *added) {
  const int n = r->n_rhs;
  const size_t bytes = 2 * (size_t)modes->count * (size_t)n * sizeof(double);
  double *c = malloc(bytes);
  *added = false;
  md_status status = md_agree(context, c ? MD_OK : md_fail_memory(context, bytes, "projection"));
  if (status == MD_OK) status = md_panel_dots(context, modes->count, modes->vectors, r, c);
  for (int i = 0; i < n; i++) part2[i] = 0.0;
  for (int i = 0; status == MD_OK && i < modes->count * n; i++) {
    const double inverse = 1.0 / (from + modes->values[i / n]);
    part2[i % n] += c[2 * i] * c[2 * i] + c[2 * i + 1] * c[2 * i + 1];
    c[2 * i] *= inverse;
    c[2 * i + 1] *= inverse;
  }
  for (int i = 0; i < n; i++) *added = *added || !least || part2[i] > least[i];
  if (status == MD_OK && *added)
    status = md_agree(context, md_panel_add(context, modes->count, modes->vectors, c, x));
  free(c);
  return status;
}

double md_low_modes_kappa(const md_modes *modes, double least, double most) {
  return md_update_kappa(least + md_modes_last(modes), most - least);
}

double md_low_modes_noise(const md_modes *modes, double kappa, double spread, double roundoff) {
  double error = modes->roundoff;
  for (int i = 0; i < modes->count; i++) error = fmax(error, modes->residuals[i] / spread);
  return kappa * fmax(error, roundoff);
}

md_status md_outer_create(md_outer *o, double roundoff) {
  const md_modes *modes = o->request->modes;
  const md_operator *a = o->a;
  if (modes && modes->count > 0) {
    const double kappa = md_low_modes_kappa(modes, a->least, a->most);
    o->low_noise =
        MD_UPDATE_LOW_NOISE * md_low_modes_noise(modes, kappa, a->most - a->least, roundoff);
  }
  for (int r = 0; r < o->state->n_rhs; r++) o->best[r] = sqrt(o->state->r_norm2[r]);
  return md_operator_field(o->context, a, &o->scratch);
}

void md_outer_destroy(md_outer *o) {
  md_field_destroy(&o->scratch);
}

void md_outer_take_units(md_outer *o, bool rest) {
  for (int k = 0; k < o->state->n_rhs; k++) {
    o->unit[k] = sqrt(o->state->r_norm2[k]);
    o->done[k] = o->unit[k] <= md_cg_limit(o->request, o->state, k) ||
                 (rest && o->in_vain[k] >= MD_UPDATES_AT_ROUNDING);
  }
}

md_status md_outer_restart(md_outer *o, const char *rule, md_precision inner) {
  if (o->restarted)
    return md_fail(o->context, MD_UNREACHED,
                   "sums of the inner %s, which failed twice from one solution, last in iteration "
                   "%d; check the links for NaN, or use a wider inner precision than %s",
                   rule, o->state->iteration + 1, md_precision_name(inner));
  o->restarted = true;
  o->state->result.restarts++;
  return MD_OK;
}

/* to = from in units, zero as md_outer_hand_down says. */
static md_status in_units(const md_outer *o, bool rest, md_field *to, const md_field *from) {
  double inverse[MD_MAX_RHS];
  for (int k = 0; k < o->state->n_rhs; k++)
    inverse[k] = (o->done[k] && rest) || o->unit[k] == 0.0 ? 0.0 : 1.0 / o->unit[k];
  return md_agree(o->context, md_field_convert_times(o->context, to, inverse, from));
}

md_status md_outer_hand_down(md_outer *o, bool rest, md_field *r) {
  md_outer_take_units(o, rest);
  return in_units(o, rest, r, &o->state->r);
}

md_status md_outer_change(md_outer *o, bool rest, md_field *a_y) {
  md_linear_add(-1.0, &o->scratch, &o->state->r);
  return in_units(o, rest, a_y, &o->state->r);
}

/* scratch = s - A x in double, and its norm^2. norm2: it should be what the recursion says, where
 * it stagnates not far above the last one; NULL: a projection may have raised it. */
static md_status true_residual(md_outer *o, const double *norm2) {
  md_cg_state *s = o->state;
  double one[MD_MAX_RHS], minus[MD_MAX_RHS], guess[MD_MAX_RHS];
  for (int r = 0; r < s->n_rhs; r++) {
    one[r] = 1.0;
    minus[r] = -1.0;
    if (norm2) guess[r] = o->unit[r] * o->unit[r] * fmax(norm2[r], 0x1p-10);
  }
  MD_TRY(md_operator_apply(o->context, o->a, &o->scratch, &s->x, NULL));
  return md_linear_axpby_norm2(o->context, one, &s->p, minus, &o->scratch, norm2 ? guess : NULL,
                               s->r_norm2);
}

/* x += y. The inner operator may work in another space. */
static md_status add_partial(md_outer *o, const md_field *y) {
  md_cg_state *s = o->state;
  if (s->x.space == y->space) return md_field_add_single(o->context, &s->x, o->unit, y);
  MD_TRY(md_field_convert(o->context, &o->scratch, y));
  md_linear_axpy(o->unit, &o->scratch, &s->x);
  return MD_OK;
}

/* What has come back of the modes goes into x, where it would be more than MD_UPDATE_LOW of a
 * residual at the next update: as long as neither what was there nor what the iterations since can
 * have added come near that, it is not even measured. unit is still that of the last update. */
static md_status project(md_outer *o) {
  const double most = MD_UPDATE_LOW * o->factor;
  md_cg_state *s = o->state;
  double least[MD_MAX_RHS], part2[MD_MAX_RHS];
  bool near = false;
  o->projected = false;
  if (!o->request->modes || o->request->modes->count == 0) return MD_OK;
  for (int r = 0; r < s->n_rhs; r++) {
    least[r] = most * most * s->r_norm2[r];
    o->low[r] += o->low_noise * o->unit[r];
    near = near || o->low[r] * o->low[r] > least[r];
  }
  if (!near) return MD_OK;
  MD_TRY(md_low_modes_project(o->context, o->request->modes, o->a->modes_from, &o->scratch, least,
                              &s->x, part2, &o->projected));
  for (int r = 0; r < s->n_rhs; r++) o->low[r] = o->projected ? 0.0 : sqrt(part2[r]);
  if (!o->projected) return MD_OK;
  s->result.projections++;
  return true_residual(o, NULL);
}

/* Which right-hand sides are as near as the rounding of A x lets them come: what updates find there
 * is noise. */
static md_status count_rounding(md_outer *o) {
  const md_cg_state *s = o->state;
  double norm2[MD_MAX_RHS];
  bool any = false;
  for (int r = 0; r < s->n_rhs; r++) any = any || o->in_vain[r] >= MD_UPDATES_FEW_IN_VAIN;
  if (!any) return MD_OK;
  MD_TRY(md_linear_norm2(o->context, &s->x, NULL, norm2));
  for (int r = 0; r < s->n_rhs; r++)
    if (o->in_vain[r] >= MD_UPDATES_FEW_IN_VAIN &&
        md_update_is_rounding(sqrt(s->r_norm2[r]), o->a->most, sqrt(norm2[r])))
      o->in_vain[r] = MD_UPDATES_AT_ROUNDING;
  return MD_OK;
}

/* state->r becomes the new residual. */
static md_status take(md_outer *o) {
  md_cg_state *s = o->state;
  md_field_swap(&s->r, &o->scratch);
  for (int r = 0; r < s->n_rhs; r++) {
    if (!isfinite(s->r_norm2[r]))
      return md_fail(o->context, MD_UNREACHED,
                     "the residual must be finite, got %g in iteration %d of right-hand side %d",
                     s->r_norm2[r], s->iteration, r);
    const double now = sqrt(s->r_norm2[r]);
    if (!o->early) o->in_vain[r] = md_update_is_vain(now, o->best[r]) ? o->in_vain[r] + 1 : 0;
    o->best[r] = fmin(o->best[r], now);
  }
  s->result.updates++;
  return count_rounding(o);
}

md_status md_outer_update(md_outer *o, const md_field *y, md_status (*deflate)(void *user),
                          void *user) {
  MD_TRY(md_agree(o->context, add_partial(o, y)));
  MD_TRY(true_residual(o, o->norm2));
  if (deflate) MD_TRY(deflate(user));
  MD_TRY(project(o));
  o->restarted = false;
  return take(o);
}

bool md_outer_at_end(const md_outer *o) {
  md_cg_state *s = o->state;
  bool all = true;
  s->result.stalled = s->result.at_rounding = false;
  for (int r = 0; r < s->n_rhs; r++) {
    const bool stalled =
        o->in_vain[r] >= MD_UPDATES_MOST_IN_VAIN && !(o->unit[r] <= md_cg_limit(o->request, s, r));
    all = all && (o->done[r] || stalled);
    s->result.stalled = s->result.stalled || stalled;
    if (stalled && o->in_vain[r] >= MD_UPDATES_AT_ROUNDING) s->result.at_rounding = true;
  }
  s->result.stalled = s->result.stalled && all;
  return all || s->iteration >= s->most || (s->result.interrupted && o->since == 0);
}

void md_outer_go_on(md_outer *o) {
  memcpy(o->largest, o->norm2, sizeof o->largest);
  o->since = 0;
}

static double measured_noise(const md_outer *o, int rhs, double roundoff) {
  const double fallen = sqrt(o->norm2[rhs] / o->largest[rhs]);
  return md_update_noise(md_update_measured(o->since, fallen), roundoff);
}

double md_outer_noise(const md_outer *o, double roundoff) {
  const md_cg_state *s = o->state;
  double least = INFINITY;
  for (int r = 0; r < s->n_rhs; r++)
    if (!o->done[r] && o->unit[r] * sqrt(o->norm2[r]) > md_cg_limit(o->request, s, r))
      least = fmin(least, measured_noise(o, r, roundoff));
  return isfinite(least) ? least : 0.0;
}

/* By how much |r| of a right-hand side falls until an update, which comes the earlier the more
 * iterations it has taken. */
static double factor_of(const md_outer *o, int rhs) {
  return fmax(o->factor, md_update_factor(false, measured_noise(o, rhs, o->roundoff)));
}

bool md_outer_count(md_outer *o) {
  md_cg_state *s = o->state;
  bool all = true, far = false;
  double worst = 0.0;
  s->iteration++;
  o->since++;
  for (int r = 0; r < s->n_rhs; r++) {
    const double size = o->unit[r] * (o->done[r] ? 1.0 : sqrt(o->norm2[r]));
    if (s->scale[r] > 0.0) worst = fmax(worst, size / s->scale[r]);
    if (o->done[r]) continue;
    s->result.rhs_iterations[r]++;
    all = all && size <= md_cg_limit(o->request, s, r);
    o->largest[r] = fmax(o->largest[r], o->norm2[r]);
    far = far || md_update_due(o->norm2[r], o->largest[r], factor_of(o, r));
  }
  s->result.history[s->iteration] = worst;
  s->result.interrupted = md_interrupted(o->context);
  far = far || all || o->since >= o->latest;
  o->early = !far && o->often > 0 && o->since >= o->often;
  return far || o->early;
}
