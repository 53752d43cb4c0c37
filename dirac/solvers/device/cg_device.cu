#include <new>

extern "C" {
#include "base/device_nccl.h"
#include "base/watch.h"
#include "dirac/solvers/device/cg_device.h"
#include "dirac/solvers/device/recorded_step.h"
}
#include "dirac/solvers/device/cg_update.cuh"
#include "dirac/solvers/device/sums.cuh"
#include "lattice/fields/cuda/rank_sums.cuh"

extern "C" {
#include "lattice/fields/linear.h"
#include "lattice/fields/sum.h"
#include "lattice/halo/halo.h"
}
#include <math.h>

/* On the device. */
struct cg_scalars {
  double word[MD_MAX_RHS][MD_RANK_SUM_WORDS]; /* this rank's or all ranks' |D p|^2 or |r|^2, then
                                              |p|^2, each as high and low */
  sum_units of_hop[MD_MAX_RHS], of_p[MD_MAX_RHS]; /* for the sums of the next kernels */
  double r_norm2[MD_MAX_RHS], beta[MD_MAX_RHS], limit[MD_MAX_RHS];
  double alpha[MD_CG_DIRECTIONS][MD_MAX_RHS]; /* of each direction that x may still lack */
  double mass2;
  int iterations[MD_MAX_RHS], failure[MD_MAX_RHS];
  long long serial[MD_MAX_RHS]; /* of the last iteration that was reported */
};

/* In pinned host memory, written by the device: `serial` last. */
struct cg_slot {
  md_cg_report report;
  long long serial;
};
enum { SLOTS = 2 };

struct md_cg_device {
  int n_rhs;
  double mass;
  cg_scalars *scalars;
  md_device_peers *peers; /* of the operator, see dirac/operator.h */
  md_halo *halo;          /* of the operator */
  cg_slot *slots;         /* [SLOTS][n_rhs] */
  md_partial_sums stencil, update;
  md_field more[MD_CG_DIRECTIONS - 1]; /* p is the state's or one of these, */
  int keeps;                           /* which are so many, with the state's */
  int at;                              /* which: 0 the state's; x lacks those before it too */
  long long serial;                    /* of the last iteration that was queued */
  long long awaited;                   /* of the last report */
  /* Order of sites of the last kernel over a field: each pass begins where the one before ended,
   * with what it left in the cache. */
  bool backwards;
  /* Of iterations that begin at a direction and in an order of sites. */
  md_recorded_step step[MD_CG_DIRECTIONS][2];
};

enum cg_phase { FIND_ALPHA, FIND_BETA };

/* What of a right-hand side is read before its sums are known. */
struct cg_known {
  double r_norm2, limit, alpha, p_ap;
  long long serial;
};

/* Units for |p|^2 and |D p|^2 follow from |r|^2 alone, so that a solve that goes on from a saved
 * state has the same: |p| is seldom more than a few times |r|, and |D p| than |p|. */
static __host__ __device__ void set_units(cg_scalars *s, int r, double r_norm2) {
  s->of_p[r] = units_for(4.0 * r_norm2);
  s->of_hop[r] = units_for(16.0 * r_norm2);
}

static __device__ void find_alpha(cg_scalars *s, int at, int r, const cg_known &known,
                                  const double *word) {
  const double p_norm2 = word[2] + word[3], p_ap = s->mass2 * p_norm2 + (word[0] + word[1]);
  const bool done = sqrt(known.r_norm2) <= known.limit;
  const int failure = done ? 0 : !isfinite(p_ap) ? 1 : p_ap <= 0.0 ? 2 : 0;
  s->failure[r] = failure;
  s->alpha[at][r] = done || failure ? 0.0 : known.r_norm2 / p_ap;
  s->beta[r] = p_ap;
  s->of_hop[r] = units_for(known.r_norm2);
}

static __device__ void find_beta(cg_scalars *s, int at, int r, const cg_known &known,
                                 const double *word, cg_slot *slot) {
  const bool going = known.alpha != 0.0;
  const double norm2 = word[0] + word[1], now = going ? norm2 : known.r_norm2;
  const int failure = going && !isfinite(norm2) ? 3 : s->failure[r];
  s->beta[r] = going ? norm2 / known.r_norm2 : 0.0;
  set_units(s, r, now);
  s->r_norm2[r] = now;
  s->iterations[r] += going;
  s->serial[r] = known.serial;
  slot->report = {now, known.alpha, failure == 3 ? norm2 : known.p_ap, s->iterations[r], failure};
  __threadfence_system();
  *(volatile long long *)&slot->serial = known.serial;
}

/* One block of MD_SUM_SLOTS threads per right-hand side: the sums, of all ranks, then what follows
 * from them. Where ranks do not share memory the two are launched apart, and NCCL or the host adds
 * the ranks' sums in between. */
static __global__ void settle(cg_scalars *s, md_partial_sums stencil, md_partial_sums update,
                              cg_phase phase, int at, bool sum, bool apply, rank_sums ranks,
                              cg_slot *slots) {
  md_release_successor();
  md_wait_for_predecessor();
  const int r = blockIdx.x;
  const cg_known known = {s->r_norm2[r], s->limit[r], s->alpha[at][r], s->beta[r],
                          s->serial[r] + 1};
  const long long tick = next_tick(ranks, r);
  double word[MD_RANK_SUM_WORDS] = {};
  if (sum) {
    const unit_sum first = share_of(stencil, r);
    if (phase == FIND_ALPHA) {
      const unit_sum second = share_of(update, r);
      word[0] = first.high, word[1] = first.low, word[2] = second.high, word[3] = second.low;
      add_threads(word);
    } else {
      const unit_sum all = add_threads(first);
      word[0] = all.high, word[1] = all.low;
    }
    add_ranks(ranks, r, tick, word);
  } else {
    for (int w = 0; w < MD_RANK_SUM_WORDS; w++) word[w] = s->word[r][w];
  }
  if (threadIdx.x != 0) return;
  if (!apply)
    for (int w = 0; w < MD_RANK_SUM_WORDS; w++) s->word[r][w] = word[w];
  else if (phase == FIND_ALPHA)
    find_alpha(s, at, r, known, word);
  else
    find_beta(s, at, r, known, word, &slots[known.serial % SLOTS * gridDim.x + r]);
}

static md_field *direction(md_cg_device *cg, md_cg_state *state, int k) {
  return k == 0 ? &state->p : &cg->more[k - 1];
}

/* x takes the first `count` directions; then the next direction is made, or not. sum: with |p|^2 of
 * the last direction that there is then. */
template <class S, class R, class W>
static void launch_pass(md_cg_device *cg, md_cg_state *state, int count, bool next, bool sum) {
  cg_pass<S, R, W> a = {};
  for (int k = 0; k < cg->keeps; k++) a.direction[k] = linear_view_of<S>(direction(cg, state, k));
  a.p = a.direction[cg->at];
  if (next) a.next = a.direction[(cg->at + 1) % cg->keeps];
  a.r = linear_view_of<R>(&state->r);
  a.x = linear_view_of<W>(&state->x);
  a.count = count;
  a.alpha = cg->scalars->alpha[0];
  a.beta = cg->scalars->beta;
  a.sites = state->x.sites;
  a.n_rhs = cg->n_rhs;
  a.backwards = cg->backwards = !cg->backwards;
  if (sum) a.norm2 = {cg->update.sum, cg->update.units};
  launch_vectors(a, &state->x);
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

static void pass(md_cg_device *cg, md_cg_state *state, int count, bool next, bool sum) {
  switch (state->p.precision) {
  case MD_DOUBLE:
    return launch_pass<double, double, double>(cg, state, count, next, sum);
  case MD_SINGLE:
    return launch_pass<float, float, float>(cg, state, count, next, sum);
  case MD_HALF:
    return launch_narrow_pass<__half>(cg, state, count, next, sum);
  case MD_FIXED:
    return launch_narrow_pass<fixed16>(cg, state, count, next, sum);
  default:
    return launch_narrow_pass<__nv_bfloat16>(cg, state, count, next, sum);
  }
}

extern "C" void md_cg_device_update(md_cg_device *cg, md_cg_state *state) {
  pass(cg, state, cg->at == cg->keeps - 1 ? cg->keeps : 0, true, true);
  cg->at = (cg->at + 1) % cg->keeps;
}

extern "C" void md_cg_device_complete(md_cg_device *cg, md_cg_state *state) {
  if (cg->at == 0) return;
  pass(cg, state, cg->at, false, false);
  md_linear_copy(&state->p, direction(cg, state, cg->at));
  cg->at = 0;
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
  const rank_sums ranks = rank_sums_over(context, cg->peers);
  const bool whole = context->ranks == 1 || cg->peers;
  const dim3 blocks(cg->n_rhs), threads(MD_SUM_SLOTS);
  md_launch_early(settle, blocks, threads, 0, cg->scalars, cg->stencil, cg->update, phase, cg->at,
                  true, whole, ranks, cg->slots);
  if (whole) return md_defer(context, md_cuda_launched(context, "the solver's scalars"));
  if (context->nccl) {
    MD_TRY(md_defer(context,
                    md_nccl_sum(context, cg->scalars->word[0], cg->n_rhs * MD_RANK_SUM_WORDS)));
  } else {
    MD_TRY(md_defer(context, md_device_synchronise(context)));
    MD_TRY(add_ranks_on_host(context, cg));
  }
  settle<<<blocks, threads, 0, md_stream()>>>(cg->scalars, cg->stencil, cg->update, phase, cg->at,
                                              false, true, ranks, cg->slots);
  return md_defer(context, md_cuda_launched(context, "the solver's scalars"));
}

static md_status allocate(md_context *context, md_cg_device *cg, const md_field *p) {
  const md_field_shape shape = {p->precision, MD_DEVICE, p->components, p->n_rhs, true};
  cg->keeps = md_cg_directions(p->precision);
  for (int k = 0; k < cg->keeps - 1; k++)
    MD_TRY(md_field_create(context, p->geometry, &shape, p->parity, &cg->more[k]));
  MD_TRY(md_device_allocate(context, sizeof *cg->scalars, "scalars", (void **)&cg->scalars));
  MD_TRY(partial_sums_create(context, p->n_rhs, cg->scalars->of_hop, &cg->stencil));
  MD_TRY(partial_sums_create(context, p->n_rhs, cg->scalars->of_p, &cg->update));
  return md_device_allocate_pinned(context, SLOTS * (size_t)p->n_rhs * sizeof *cg->slots, "reports",
                                   (void **)&cg->slots);
}

static md_status set_scalars(md_context *context, md_cg_device *cg, const md_cg_state *state,
                             const double *limit) {
  cg_scalars start = {};
  start.mass2 = cg->mass * cg->mass;
  for (int r = 0; r < cg->n_rhs; r++) {
    start.r_norm2[r] = state->r_norm2[r];
    start.limit[r] = limit[r];
    set_units(&start, r, state->r_norm2[r]);
    start.iterations[r] = state->rhs_iterations[r];
    start.serial[r] = cg->serial;
  }
  return md_device_upload(context, cg->scalars, &start, sizeof start);
}

extern "C" md_status md_cg_device_start(md_context *context, md_cg_device *cg, md_cg_state *state,
                                        const double *limit) {
  MD_TRY(md_agree(context, set_scalars(context, cg, state, limit)));
  cg->at = 0;
  partial_sums_clear(&cg->stencil, cg->n_rhs);
  partial_sums_clear(&cg->update, cg->n_rhs);
  pass(cg, state, 0, false, true);
  return MD_OK;
}

extern "C" md_status md_cg_device_create(md_context *context, const md_dirac *dirac,
                                         const md_field *p, double mass, md_cg_device **cg) {
  md_cg_device *d = new (std::nothrow) md_cg_device();
  *cg = d;
  if (!d) return md_fail_memory(context, sizeof *d, "solver");
  d->n_rhs = p->n_rhs;
  d->mass = mass;
  d->peers = dirac->peers;
  d->halo = dirac->halo;
  MD_TRY(allocate(context, d, p));
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

extern "C" md_status md_cg_device_queue_step(md_context *context, md_cg_device *cg, md_dirac *dirac,
                                             md_cg_state *state, md_field *work) {
  md_epilogue first = {}, second = {};
  first.norm2 = second.norm2 = &cg->stencil;
  first.backwards = cg->backwards = !cg->backwards;
  md_field *p = direction(cg, state, cg->at);
  MD_TRY(md_dirac_hop(context, dirac, work, p, &first));
  MD_TRY(run_phase(context, cg, FIND_ALPHA));
  second.x = p;
  second.a = -cg->mass * cg->mass;
  second.b = 1.0;
  second.step = cg->scalars->alpha[cg->at];
  second.backwards = cg->backwards = !cg->backwards;
  MD_TRY(md_dirac_hop(context, dirac, &state->r, work, &second));
  cg->serial++;
  return run_phase(context, cg, FIND_BETA);
}

struct cg_iteration {
  md_cg_device *cg;
  md_dirac *dirac;
  md_cg_state *state;
  md_field *work;
  bool update_first;
};

static md_status queue_iteration(md_context *context, void *user) {
  const cg_iteration *i = (const cg_iteration *)user;
  if (i->update_first) md_cg_device_update(i->cg, i->state);
  MD_TRY(md_cg_device_queue_step(context, i->cg, i->dirac, i->state, i->work));
  if (!i->update_first) md_cg_device_update(i->cg, i->state);
  return MD_OK;
}

extern "C" md_status md_cg_device_queue(md_context *context, md_cg_device *cg, md_dirac *dirac,
                                        md_cg_state *state, md_field *work, bool update_first) {
  cg_iteration iteration = {cg, dirac, state, work, update_first};
  bool replayed;
  MD_TRY(md_recorded_step_queue(context, &cg->step[cg->at][cg->backwards], dirac, queue_iteration,
                                &iteration, &replayed));
  if (!replayed) return MD_OK;
  cg->at = (cg->at + 1) % cg->keeps;
  cg->backwards = !cg->backwards; /* three passes */
  cg->serial++;
  return MD_OK;
}

static md_status wait_here(md_context *context, const md_cg_device *cg, long long iteration,
                           md_cg_report *reports) {
  const cg_slot *slots = cg->slots + (iteration % SLOTS) * cg->n_rhs;
  for (int r = 0; r < cg->n_rhs; r++) {
    MD_TRY(md_device_await(context, &slots[r].serial, iteration, "an iteration of the solver"));
    if (cg->peers) MD_TRY(md_device_peers_check(context, cg->peers));
    MD_TRY(md_halo_verify(cg->halo));
    reports[r] = slots[r].report;
  }
  return MD_OK;
}

extern "C" md_status md_cg_device_wait(md_context *context, md_cg_device *cg,
                                       md_cg_report *reports) {
  return md_agree_soon(context, wait_here(context, cg, ++cg->awaited, reports), MD_PATIENCE_S,
                       "an iteration of the solver");
}
