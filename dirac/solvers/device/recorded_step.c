#include "dirac/solvers/device/recorded_step.h"
#include "lattice/halo/halo.h"

/* Whether steps of this operator are recorded: its halos and the sums over its ranks need no host.
 * By default only with several ranks; context->wishes decides otherwise, for measurements. Local,
 * the same on all ranks. */
static bool records_steps(const md_context *context, const md_dirac *dirac) {
  const md_record_wish wish = context->wishes.record;
  if (context->ranks > 1 && !dirac->peers && !context->nccl) return false;
  if (!md_halo_queued(dirac->halo)) return false;
  return wish == MD_RECORD_ALWAYS || (context->ranks > 1 && wish != MD_RECORD_NEVER);
}

/* What fails on one rank here ends all before any of them replays. */
static md_status record(md_context *context, md_recorded_step *step,
                        md_status (*queue)(md_context *, void *user), void *user) {
  step->times = 2;
  return md_agree(context, md_device_record(context, queue, user, &step->recording));
}

md_status md_recorded_step_queue(md_context *context, md_recorded_step *step, md_dirac *dirac,
                                 md_status (*queue)(md_context *, void *user), void *user,
                                 bool *replayed) {
  const bool again = step->times == 2;
  if (replayed) *replayed = again;
  if (!again && (step->times == 0 || !records_steps(context, dirac))) {
    step->times = 1;
    return queue(context, user);
  }
  if (again)
    dirac->hops += 2;
  else
    MD_TRY(record(context, step, queue, user));
  MD_TRY(md_defer(context, md_device_replay(context, step->recording)));
  return md_halo_verify(dirac->halo);
}

void md_recorded_step_destroy(md_recorded_step *step) {
  md_device_recording_destroy(step->recording);
  *step = (md_recorded_step){0};
}
