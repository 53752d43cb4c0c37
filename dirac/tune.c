#include "dirac/tune.h"
#include "base/device.h"
#include "base/timer.h"
#include "dirac/backend.h"

#include <math.h>
#include <stdio.h>

enum { ROUNDS = 5, MOST_PAIRS = 50 };
static const double ROUND_S = 2e-3; /* about: launches and clock then count for little */

typedef struct trial {
  md_dirac *dirac;
  md_field field[MD_PARITIES]; /* made by the first candidate's trial */
  md_device_timer *timer;
} trial;

/* Deo and Doe in turn, without halo. */
static md_status time_pairs(md_context *context, trial *t, int pairs, double *time_s) {
  md_dirac *d = t->dirac;
  md_device_timer_start(t->timer);
  for (int n = 0; n < MD_PARITIES * pairs; n++) {
    const md_hop_call call = {.out = &t->field[n % 2], .in = &t->field[1 - n % 2]};
    MD_TRY(d->backend->hop(context, d->state, &call));
  }
  *time_s = md_device_timer_stop_s(t->timer);
  return isnan(*time_s) ? md_device_synchronise(context) : MD_OK;
}

static void name(const void *user, int shape, char text[MD_TUNE_NAME_BYTES]) {
  const md_dirac *d = ((const trial *)user)->dirac;
  d->backend->shapes->name(d->state, shape, text);
}

static md_status time_shape(md_context *context, void *user, int shape, double *time_s) {
  trial *t = user;
  md_dirac *d = t->dirac;
  double once_s = 0.0, round_s[ROUNDS];
  if (!t->timer) MD_TRY(md_device_timer_create(context, &t->timer));
  for (int p = 0; p < MD_PARITIES; p++)
    if (!t->field[p].data) MD_TRY(md_dirac_field(context, d, p, &t->field[p]));
  d->backend->shapes->take(d->state, shape);
  for (int warm = 0; warm < 2; warm++) MD_TRY(time_pairs(context, t, 1, &once_s));
  const int pairs = once_s * MOST_PAIRS < ROUND_S ? MOST_PAIRS : 1 + (int)(ROUND_S / once_s);
  for (int r = 0; r < ROUNDS; r++) MD_TRY(time_pairs(context, t, pairs, &round_s[r]));
  *time_s = md_median(round_s, ROUNDS) / (MD_PARITIES * pairs);
  return MD_OK;
}

md_status md_dirac_tune(md_context *context, md_dirac *dirac) {
  const md_launch_shapes *shapes = dirac->backend->shapes;
  const md_backend_request *r = &dirac->request;
  const int *local = dirac->geometry->local;
  if (!shapes || !context->tune || md_counts(context)) return MD_OK;
  trial t = {.dirac = dirac};
  char work[160];
  const int slices = md_request_slices(r);
  char walls[32] = "";
  if (slices > 1) snprintf(walls, sizeof walls, " of %d slices", slices);
  snprintf(work, sizeof work, "%s, %s%s, packing %s, %s, %s reals, %d rhs, %dx%dx%dx%d a rank",
           dirac->backend->name, md_action_name(r->action), walls, md_packing_name(r->packing),
           md_precision_name(r->precision), md_reconstruct_name(r->reconstruct), r->n_rhs, local[0],
           local[1], local[2], local[3]);
  const md_tune_case of = {work, shapes->count(dirac->state), &t, name, time_shape};
  int shape = 0;
  const md_status status = md_tune_choose(context, &of, &shape);
  shapes->take(dirac->state, shape);
  for (int p = 0; p < MD_PARITIES; p++) md_field_destroy(&t.field[p]);
  md_device_timer_destroy(t.timer);
  return status;
}
