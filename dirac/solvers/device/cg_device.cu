#include <new>

extern "C" {
#include "base/device_peers.h"
#include "dirac/solvers/device/cg_device.h"
#include "dirac/solvers/device/recorded_step.h"
}
#include "dirac/solvers/device/cg_scalars.cuh"
#include "dirac/solvers/device/cg_update.cuh"

extern "C" {
#include "lattice/fields/linear.h"
#include "lattice/fields/sum.h"
#include "lattice/halo/halo.h"
}
#include <math.h>

struct md_cg_device {
  int n_rhs, multiprocessors;
  md_normal *of;   /* the operator */
  md_dirac *dirac; /* of it */
  cg_scalars *scalars;
  cg_slot *slots; /* [SLOTS][n_rhs] */
  md_partial_sums stencil, update;
  bool residuals; /* are kept and iterated, see cg_device.h; else directions p are */
  md_field more[MD_CG_DIRECTIONS - 1]; /* r, or p, is the state's or one of these; */
  int at; /* which: 0 the state's. So many steps x lacks, and of residuals p too */
  /* Of residuals: which had the iteration before, with its scalars; -1: the next one begins anew,
   * from p. */
  int before;
  bool carried;      /* that residual is the state's copy */
  bool stepped;      /* r of an iteration is there whose update is not counted yet */
  long long serial;  /* of the last iteration that was queued */
  long long awaited; /* of the last report */
  /* Order of sites of the last kernel over a field: each pass begins where the one before ended,
   * with what it left in the cache. */
  bool backwards;
  /* Of iterations that begin at a direction and in an order of sites. */
  md_recorded_step step[MD_CG_DIRECTIONS][2];
};

/* One of those that are kept, whatever they are. */
static md_field *kept(md_cg_device *cg, md_cg_state *state, int k) {
  const int which = k % MD_CG_DIRECTIONS;
  md_field *own = cg->residuals ? &state->r : &state->p;
  return which == 0 ? own : &cg->more[which - 1];
}

/* x and p take the first `count` steps. sum: with |p|^2 after them. */
template <class S>
static void take_residuals(md_cg_device *cg, md_cg_state *state, int count, bool sum) {
  residual_pass<S> a = {};
  for (int k = 0; k < MD_CG_DIRECTIONS; k++)
    a.residual[k] = linear_view_of<S>(kept(cg, state, k + 1));
  a.x = linear_view_of<S>(&state->x);
  a.p = linear_view_of<S>(&state->p);
  a.count = count;
  a.alpha = cg->scalars->alpha[0];
  a.beta = cg->scalars->beta[0];
  a.sites = state->x.sites;
  a.n_rhs = cg->n_rhs;
  a.backwards = cg->backwards = !cg->backwards;
  if (sum) a.norm2 = {cg->update.sum, cg->update.units};
  launch_residual_pass(a, &state->x);
}

/* x takes the first `count` directions; then the next direction is made, or not. sum: with |p|^2 of
 * the last direction that there is then. */
template <class S, class R, class W>
static void launch_pass(md_cg_device *cg, md_cg_state *state, int count, bool next, bool sum) {
  cg_pass<S, R, W> a = {};
  for (int k = 0; k < MD_CG_DIRECTIONS; k++) a.direction[k] = linear_view_of<S>(kept(cg, state, k));
  a.p = a.direction[cg->at];
  if (next) a.next = a.direction[(cg->at + 1) % MD_CG_DIRECTIONS];
  a.r = linear_view_of<R>(&state->r);
  a.x = linear_view_of<W>(&state->x);
  a.count = count;
  a.alpha = cg->scalars->alpha[0];
  a.beta = cg->scalars->beta[cg->at];
  a.sites = state->x.sites;
  a.n_rhs = cg->n_rhs;
  a.backwards = cg->backwards = !cg->backwards;
  if (sum) a.norm2 = {cg->update.sum, cg->update.units};
  launch_vectors(a, &state->x, cg->multiprocessors);
}

/* With directions of 16 bits r and x are that narrow too, or x alone is not, or neither is. */
template <class S>
static void launch_narrow_pass(md_cg_device *cg, md_cg_state *state, int count, bool next,
                               bool sum) {
  if (state->x.precision != MD_SINGLE)
    launch_pass<S, S, S>(cg, state, count, next, sum);
  else if (state->r.precision != MD_SINGLE)
    launch_pass<S, S, float>(cg, state, count, next, sum);
  else
    launch_pass<S, float, float>(cg, state, count, next, sum);
}

/* What x takes, and the next direction; of residuals there is no `next`. */
static void pass(md_cg_device *cg, md_cg_state *state, int count, bool next, bool sum) {
  switch (state->p.precision) {
  case MD_DOUBLE:
    return take_residuals<double>(cg, state, count, sum);
  case MD_SINGLE:
    return take_residuals<float>(cg, state, count, sum);
  case MD_HALF:
    return launch_narrow_pass<__half>(cg, state, count, next, sum);
  case MD_FIXED:
    return launch_narrow_pass<fixed16>(cg, state, count, next, sum);
  default:
    return launch_narrow_pass<__nv_bfloat16>(cg, state, count, next, sum);
  }
}

extern "C" void md_cg_device_update(md_cg_device *cg, md_cg_state *state) {
  const bool last = cg->at == MD_CG_DIRECTIONS - 1;
  cg->stepped = false;
  if (last || !cg->residuals) pass(cg, state, last ? MD_CG_DIRECTIONS : 0, true, !cg->residuals);
  cg->at = (cg->at + 1) % MD_CG_DIRECTIONS;
}

extern "C" void md_cg_device_complete(md_cg_device *cg, md_cg_state *state) {
  const int latest = cg->at + (cg->residuals && cg->stepped);
  if (cg->at > 0) pass(cg, state, cg->at, false, false);
  if (state->before.data && cg->before >= 0 && !cg->carried) {
    md_linear_copy(&state->before, kept(cg, state, cg->before));
    state->carries = cg->carried = true;
  }
  if (latest % MD_CG_DIRECTIONS > 0)
    md_linear_copy(cg->residuals ? &state->r : &state->p, kept(cg, state, latest));
  if (!cg->carried) cg->before = -1;
  cg->at = 0;
  cg->stepped = false;
}

/* Adds the words that `settle` left over the ranks, exactly; a failure of the device is met here.
 */
static md_status add_ranks_on_host(md_context *context, md_cg_device *cg) {
  const int count = cg->n_rhs * MD_RANK_SUM_WORDS;
  double word[MD_MAX_RHS * MD_RANK_SUM_WORDS], total[MD_MAX_RHS];
  cudaError_t error =
      cudaMemcpy(word, cg->scalars->word, count * sizeof(double), cudaMemcpyDeviceToHost);
  MD_TRY(md_defer(context, md_cuda_status(context, error, "a sum of the solver")));
  for (int pair = 0; pair < MD_RANK_SUM_WORDS; pair += 2) { /* high and low of one quantity */
    md_sum sums[MD_MAX_RHS] = {};
    for (int i = 0; i < 2 * cg->n_rhs; i++) {
      const double value = word[i / 2 * MD_RANK_SUM_WORDS + pair + i % 2];
      md_sum_add(&sums[i / 2], error == cudaSuccess ? value : NAN);
    }
    MD_TRY(md_sum_finish(context, sums, cg->n_rhs, total));
    for (int r = 0; r < cg->n_rhs; r++) {
      word[r * MD_RANK_SUM_WORDS + pair] = total[r];
      word[r * MD_RANK_SUM_WORDS + pair + 1] = 0.0;
    }
  }
  error = cudaMemcpy(cg->scalars->word, word, count * sizeof(double), cudaMemcpyHostToDevice);
  return md_defer(context, md_cuda_status(context, error, "a sum of the solver"));
}

static md_status run_phase(md_context *context, md_cg_device *cg, cg_phase phase) {
  const rank_sums ranks = rank_sums_over(context, cg->dirac->peers);
  const bool whole = context->ranks == 1 || cg->dirac->peers;
  const dim3 blocks(cg->n_rhs), threads(MD_SUM_SLOTS);
  md_launch_early(settle, blocks, threads, 0, cg->scalars, cg->stencil, cg->update, phase, cg->at,
                  cg->before, true, whole, ranks, cg->slots);
  if (whole) return md_defer(context, md_cuda_launched(context, "the solver's scalars"));
  if (context->nccl) {
    MD_TRY(md_defer(context,
                    md_nccl_sum(context, cg->scalars->word[0], cg->n_rhs * MD_RANK_SUM_WORDS)));
  } else {
    MD_TRY(md_defer(context, md_device_synchronise(context)));
    MD_TRY(add_ranks_on_host(context, cg));
  }
  settle<<<blocks, threads, 0, md_stream()>>>(cg->scalars, cg->stencil, cg->update, phase, cg->at,
                                              cg->before, false, true, ranks, cg->slots);
  return md_defer(context, md_cuda_launched(context, "the solver's scalars"));
}

static md_status allocate(md_context *context, md_cg_device *cg, const md_operator *a) {
  const int n_rhs = a->shape.n_rhs;
  for (int k = 0; k < MD_CG_DIRECTIONS - 1; k++)
    MD_TRY(md_operator_field(context, a, &cg->more[k]));
  MD_TRY(md_device_allocate(context, sizeof *cg->scalars, "scalars", (void **)&cg->scalars));
  MD_TRY(partial_sums_create(context, n_rhs, cg->scalars->of_hop, &cg->stencil));
  MD_TRY(partial_sums_create(context, n_rhs, cg->scalars->of_p, &cg->update));
  return md_device_allocate_pinned(context, SLOTS * (size_t)n_rhs * sizeof *cg->slots, "reports",
                                   (void **)&cg->slots);
}

static md_status set_scalars(md_context *context, md_cg_device *cg, const md_cg_state *state,
                             const double *limit) {
  cg_scalars start = {};
  start.mass2 = cg->of->mass * cg->of->mass;
  for (int r = 0; r < cg->n_rhs; r++) {
    start.r_norm2[r] = state->r_norm2[r];
    start.limit[r] = limit[r];
    set_units(&start, r, state->r_norm2[r]);
    start.iterations[r] = state->result.rhs_iterations[r];
    start.serial[r] = cg->serial;
    if (!state->carries) continue;
    start.alpha[MD_CG_DIRECTIONS - 1][r] = state->carried[r];
    start.beta[MD_CG_DIRECTIONS - 1][r] = state->carried[cg->n_rhs + r];
    start.p_ap[r] = state->carried[2 * cg->n_rhs + r];
  }
  return md_device_upload(context, cg->scalars, &start, sizeof start);
}

extern "C" md_status md_cg_device_start(md_context *context, md_cg_device *cg, md_cg_state *state,
                                        const double *limit) {
  MD_TRY(md_agree(context, set_scalars(context, cg, state, limit)));
  cg->at = 0;
  cg->before = state->carries ? MD_CG_DIRECTIONS - 1 : -1;
  cg->carried = state->carries;
  cg->stepped = false;
  partial_sums_clear(&cg->stencil, cg->n_rhs);
  partial_sums_clear(&cg->update, cg->n_rhs);
  if (!cg->residuals) pass(cg, state, 0, false, true);
  return MD_OK;
}

extern "C" md_status md_cg_device_create(md_context *context, const md_operator *a,
                                         md_cg_device **cg) {
  md_cg_device *d = new (std::nothrow) md_cg_device();
  *cg = d;
  if (!d) return md_fail_memory(context, sizeof *d, "solver");
  d->n_rhs = a->shape.n_rhs;
  d->residuals = md_precision_bytes(a->shape.precision) > 2;
  d->multiprocessors = context->gpu.multiprocessors;
  d->of = a->normal;
  d->dirac = a->normal->dirac;
  MD_TRY(allocate(context, d, a));
  for (int i = 0; i < SLOTS * d->n_rhs; i++) d->slots[i] = {};
  return MD_OK;
}

extern "C" void md_cg_device_destroy(md_cg_device *cg) {
  if (!cg) return;
  cudaStreamSynchronize(md_stream());
  for (int k = 0; k < 2 * MD_CG_DIRECTIONS; k++) md_recorded_step_destroy(&cg->step[k / 2][k % 2]);
  for (int k = 0; k < MD_CG_DIRECTIONS - 1; k++) md_field_destroy(&cg->more[k]);
  md_device_free(cg->scalars);
  partial_sums_destroy(&cg->stencil);
  partial_sums_destroy(&cg->update);
  md_device_free_pinned(cg->slots);
  delete cg;
}

/* The step of the second hop of an iteration and the field that it assigns, or adds to. */
static md_field *step_of(md_cg_device *cg, md_cg_state *state, md_hop_step *step) {
  step->by = cg->scalars->step[0];
  if (!cg->residuals) return &state->r;
  step->before = cg->carried ? &state->before : kept(cg, state, cg->before < 0 ? 0 : cg->before);
  return kept(cg, state, cg->at + 1);
}

/* Each pass over fields takes the sites in the opposite order of the one before. */
extern "C" md_status md_cg_device_queue_step(md_context *context, md_cg_device *cg,
                                             md_cg_state *state) {
  const bool anew = cg->residuals && cg->before < 0;
  md_hop_step first = {}, second = {};
  md_field *from = anew ? &state->p : kept(cg, state, cg->at);
  md_field *to = step_of(cg, state, &second);
  const md_hop_end minus_a = {from, -cg->of->mass * cg->of->mass, 1.0};
  if (anew) pass(cg, state, 0, false, true);
  first.norm2 = second.norm2 = &cg->stencil;
  first.backwards = cg->backwards = !cg->backwards;
  MD_TRY(md_dirac_hop_step(context, cg->dirac, &cg->of->odd, from, NULL, &first));
  MD_TRY(run_phase(context, cg, FIND_ALPHA));
  second.backwards = cg->backwards = !cg->backwards;
  MD_TRY(md_dirac_hop_step(context, cg->dirac, to, &cg->of->odd, &minus_a, &second));
  MD_TRY(run_phase(context, cg, FIND_BETA));
  cg->serial++;
  if (cg->residuals) cg->before = cg->at;
  cg->carried = false;
  cg->stepped = true;
  return MD_OK;
}

struct cg_iteration {
  md_cg_device *cg;
  md_cg_state *state;
  bool update_first;
};

static md_status queue_iteration(md_context *context, void *user) {
  const cg_iteration *i = (const cg_iteration *)user;
  if (i->update_first) md_cg_device_update(i->cg, i->state);
  MD_TRY(md_cg_device_queue_step(context, i->cg, i->state));
  if (!i->update_first) md_cg_device_update(i->cg, i->state);
  return MD_OK;
}

extern "C" md_status md_cg_device_queue(md_context *context, md_cg_device *cg, md_cg_state *state,
                                        bool update_first) {
  cg_iteration iteration = {cg, state, update_first};
  bool replayed;
  const int at = cg->at, next = (at + 1) % MD_CG_DIRECTIONS;
  if (cg->residuals && (cg->before < 0 || cg->carried)) return queue_iteration(context, &iteration);
  const bool passes = !cg->residuals || at == MD_CG_DIRECTIONS - 1; /* a third one */
  MD_TRY(md_recorded_step_queue(context, &cg->step[at][cg->backwards], cg->dirac, queue_iteration,
                                &iteration, &replayed));
  if (!replayed) return MD_OK;
  cg->at = next;
  if (cg->residuals) cg->before = update_first ? next : at;
  if (passes) cg->backwards = !cg->backwards;
  cg->stepped = update_first;
  cg->serial++;
  return MD_OK;
}

static md_status wait_here(md_context *context, const md_cg_device *cg, long long iteration,
                           md_cg_report *reports) {
  const cg_slot *slots = cg->slots + (iteration % SLOTS) * cg->n_rhs;
  for (int r = 0; r < cg->n_rhs; r++) {
    MD_TRY(md_device_await(context, &slots[r].serial, iteration, "an iteration of the solver"));
    if (cg->dirac->peers) MD_TRY(md_device_peers_check(context, cg->dirac->peers));
    MD_TRY(md_halo_verify(cg->dirac->halo));
    reports[r] = slots[r].report;
  }
  return MD_OK;
}

extern "C" md_status md_cg_device_wait(md_context *context, md_cg_device *cg,
                                       md_cg_report *reports) {
  return md_agree_soon(context, wait_here(context, cg, ++cg->awaited, reports),
                       "an iteration of the solver");
}
