#include <new>

extern "C" {
#include "dirac/solvers/device/recorded_step.h"
#include "dirac/solvers/multishift_state.h"
}
#include "dirac/solvers/device/shift_update.cuh"
#include "lattice/fields/cuda/rank_sums.cuh"

namespace {

constexpr int SLOTS = 2;

/* In page-locked memory, written by the device: `serial` last. */
struct report {
  double r_norm2, value;
  int failure;
  long long serial;
};

/* r: residuals of a turn, each behind the one before; the first is m's. */
struct fields {
  md_field r[STEPS], x[MOST_SHIFTS], p[MOST_SHIFTS];
};

/* alpha = |r|^2 / <p, A p> of the smallest shift, 0 when it is done; a block for each side. */
__global__ void find_alpha(scalars *s, md_partial_sums stencil, rank_sums ranks) {
  md_release_successor();
  md_wait_for_predecessor();
  const int r = blockIdx.x;
  const long long tick = next_tick(ranks, r);
  const unit_sum added = add_threads(share_of(stencil, r));
  double word[MD_RANK_SUM_WORDS] = {added.high, added.low, 0.0, 0.0};
  add_ranks(ranks, r, tick, word);
  if (threadIdx.x != 0) return;
  const bool anew = s->anew[r];
  const three_term before = {s->alpha[r], anew ? 0.0 : s->beta[r], s->p_ap[r]};
  const double norm2 = anew ? s->p_norm2[r] : s->r_norm2[r];
  const double p_ap = p_ap_of(before, s->mass2, norm2, word[0] + word[1]);
  s->of_hop[r] = units_for(s->r_norm2[r]);
  const bool done = sqrt(s->r_norm2[r]) <= s->limit[r];
  if (!done && !(isfinite(p_ap) && p_ap > 0.0)) s->failure[r] = 1;
  s->p_ap[r] = p_ap;
  set_step(s->step, r, anew, before, done || s->failure[r] ? 0.0 : s->r_norm2[r] / p_ap, s->mass2);
}

/* beta, and by the recursion of B. Jegerlehner (hep-lat/9612014, eq. 2.42 ff.) the coefficients of
 * all shifts, a thread each. */
__device__ void follow(scalars *s, int turn, int k, int r, double beta, double norm2,
                       double *reported) {
  const double alpha = s->step[0][r], zeta = s->zeta[k][r], before = s->before[k][r];
  const bool resting = s->done[k][r] || alpha == 0.0;
  if (turn == 0) s->steps[k][r] = 0;
  if (!resting) {
    const double divisor =
        alpha * s->beta[r] * (before - zeta) + before * s->alpha[r] * (1.0 + s->delta[k] * alpha);
    const double next = zeta * before * s->alpha[r] / divisor;
    s->steps[k][r] = turn + 1;
    s->for_x[turn][k][r] = alpha * next;
    s->for_p[turn][k][r] = beta * next / zeta;
    s->before[k][r] = zeta;
    s->zeta[k][r] = next;
    s->done[k][r] = fabs(next) * sqrt(norm2) <= s->limit[r];
  }
  *reported = s->zeta[k][r];
}

__global__ void find_beta(scalars *s, md_partial_sums stencil, rank_sums ranks, int n_shifts,
                          report *reports, double *zeta) {
  __shared__ double sum;
  md_release_successor();
  md_wait_for_predecessor();
  const int r = blockIdx.x, turn = (s->turn[r] + 1) % STEPS;
  const long long tick = next_tick(ranks, r), serial = s->serial[r] + 1;
  const unit_sum added = add_threads(share_of(stencil, r));
  double word[MD_RANK_SUM_WORDS] = {added.high, added.low, 0.0, 0.0};
  reports += serial % SLOTS * gridDim.x;
  zeta += serial % SLOTS * n_shifts * gridDim.x;
  add_ranks(ranks, r, tick, word);
  if (threadIdx.x == 0) sum = word[0] + word[1];
  __syncthreads();
  const double alpha = s->step[0][r], norm2 = alpha != 0.0 ? sum : s->r_norm2[r];
  const double beta = alpha != 0.0 ? norm2 / s->r_norm2[r] : 0.0;
  for (int k = threadIdx.x; k < n_shifts; k += blockDim.x) {
    follow(s, turn, k, r, beta, norm2, &zeta[k * gridDim.x + r]);
    __threadfence_system();
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  s->turn[r] = turn;
  s->anew[r] = false;
  s->of_hop[r] = units_for(16.0 * norm2);
  if (alpha != 0.0) {
    if (!isfinite(norm2)) s->failure[r] = 2;
    s->r_norm2[r] = norm2;
    s->alpha[r] = alpha;
    s->beta[r] = beta;
  }
  reports[r].r_norm2 = norm2;
  reports[r].value = s->failure[r] == 2 ? norm2 : s->p_ap[r];
  reports[r].failure = s->failure[r];
  s->serial[r] = serial;
  __threadfence_system();
  *(volatile long long *)&reports[r].serial = serial;
}

} // namespace

struct md_shift_device {
  md_dirac *dirac;
  int n_shifts, smallest, n_rhs;
  double mass2;
  fields f;
  md_normal *of;
  scalars *on_device;
  md_partial_sums stencil;
  int turn;        /* the present residual is r[turn] */
  bool anew;       /* no iteration has been queued */
  report *reports; /* [SLOTS][n_rhs] */
  double *zeta;    /* [SLOTS][n_shifts * n_rhs] */
  long long waited;
  md_recorded_step iteration[STEPS]; /* of a turn */
};

namespace {

template <class S> pairs<S> pairs_of(const md_shift_device *d) {
  pairs<S> of = {};
  for (int k = 0; k < d->n_shifts; k++) {
    of.x[k] = (S *)d->f.x[k].data;
    of.p[k] = (S *)d->f.p[k].data;
  }
  for (int j = 0; j < STEPS; j++) of.residual[j] = (S *)d->f.r[(j + 1) % STEPS].data;
  return of;
}

template <class S, bool ONE, int WIDTH> void launch_pieces(md_shift_device *d, int count) {
  const md_field *r = &d->f.r[0];
  const int64_t pieces = 6 * r->sites * d->n_rhs / WIDTH;
  md_launch_early(take_turn<S, ONE, WIDTH>, dim3((unsigned)((pieces + 255) / 256)), dim3(256), 0,
                  (const scalars *)d->on_device, pairs_of<S>(d), r->stride, d->n_shifts, r->sites,
                  d->n_rhs, pieces, count);
}

/* Pieces of 16 bytes; lattices of even extents have a multiple of eight sites of a parity. */
template <class S> void launch_turn(md_shift_device *d, int count) {
  constexpr int width = 16 / sizeof(S);
  if (d->n_rhs == 1)
    launch_pieces<S, true, width>(d, count);
  else if (d->n_rhs % (width / 2) == 0)
    launch_pieces<S, false, width>(d, count);
  else
    launch_pieces<S, false, 2>(d, count);
}

/* The vectors of all shifts take the first `count` iterations of the turn. */
void update(md_shift_device *d, int count) {
  if (d->f.r[0].precision == MD_DOUBLE)
    launch_turn<double>(d, count);
  else
    launch_turn<float>(d, count);
}

md_status allocate(md_context *context, md_shift_device *d) {
  const size_t n = (size_t)d->n_rhs;
  MD_TRY(md_device_allocate(context, sizeof *d->on_device, "shifts", (void **)&d->on_device));
  MD_TRY(partial_sums_create(context, d->n_rhs, d->on_device->of_hop, &d->stencil));
  MD_TRY(md_device_allocate_pinned(context, SLOTS * n * sizeof *d->reports, "reports",
                                   (void **)&d->reports));
  for (size_t i = 0; i < SLOTS * n; i++) d->reports[i] = {};
  return md_device_allocate_pinned(context, SLOTS * n * d->n_shifts * sizeof *d->zeta, "reports",
                                   (void **)&d->zeta);
}

md_status upload(md_context *context, md_shift_device *d, const md_multishift_state *m,
                 const double *p_norm2) {
  scalars *s = new (std::nothrow) scalars();
  if (!s) return md_fail_memory(context, sizeof *s, "shifts");
  s->mass2 = d->mass2;
  for (int k = 0; k < d->n_shifts; k++) s->delta[k] = m->shifts[k].delta;
  for (int r = 0; r < d->n_rhs; r++) {
    s->turn[r] = STEPS - 1;
    s->anew[r] = true;
    s->p_norm2[r] = p_norm2[r];
    s->alpha[r] = m->alpha[r];
    s->beta[r] = m->beta[r];
    s->r_norm2[r] = m->r_norm2[r];
    s->limit[r] = m->aim * m->b_norm[r];
    s->of_hop[r] = units_for(16.0 * m->r_norm2[r]);
    for (int k = 0; k < d->n_shifts; k++) {
      s->zeta[k][r] = m->shifts[k].zeta[r];
      s->before[k][r] = m->shifts[k].before[r];
      s->done[k][r] = m->shifts[k].residual[r] <= s->limit[r];
    }
  }
  const md_status status = md_device_upload(context, d->on_device, s, sizeof *s);
  delete s;
  return status;
}

} // namespace

extern "C" md_status md_shift_device_create(md_context *context, const md_multishift_state *m,
                                            md_shift_device **shifts) {
  const double mass = m->by->normal->mass;
  double p_norm2[MD_MAX_RHS];
  md_shift_device *d = new (std::nothrow) md_shift_device();
  *shifts = d;
  if (!d) return md_agree(context, md_fail_memory(context, sizeof *d, "shifts"));
  d->of = m->by->normal;
  d->dirac = d->of->dirac;
  d->n_shifts = m->request->n_shifts;
  d->smallest = m->smallest;
  d->n_rhs = m->r.n_rhs;
  d->mass2 = mass * mass;
  d->anew = true;
  d->f.r[0] = m->r;
  for (int j = 1; j < STEPS; j++) d->f.r[j] = m->behind[j - 1];
  for (int k = 0; k < d->n_shifts; k++) {
    d->f.x[k] = m->shifts[k].x;
    d->f.p[k] = m->shifts[k].p;
  }
  MD_TRY(md_agree(context, allocate(context, d)));
  if (md_counts(context)) return MD_OK;
  MD_TRY(md_linear_norm2(context, &m->shifts[m->smallest].p, NULL, p_norm2));
  return upload(context, d, m, p_norm2);
}

extern "C" md_status md_shift_device_end(md_context *context, md_shift_device *d,
                                         md_multishift_state *m) {
  if (d->turn > 0) {
    update(d, d->turn);
    md_linear_copy(&m->r, &d->f.r[d->turn]);
    d->turn = 0;
  }
  MD_TRY(md_cuda_launched(context, "the last updates of the shifts"));
  scalars *s = new (std::nothrow) scalars();
  if (!s) return md_fail_memory(context, sizeof *s, "shifts");
  const md_status status = md_device_download(context, s, d->on_device, sizeof *s);
  for (int r = 0; r < d->n_rhs && status == MD_OK; r++) {
    m->alpha[r] = s->alpha[r];
    m->beta[r] = s->beta[r];
    for (int k = 0; k < d->n_shifts; k++) m->shifts[k].before[r] = s->before[k][r];
  }
  delete s;
  return status;
}

extern "C" void md_shift_device_destroy(md_shift_device *d) {
  if (!d) return;
  cudaStreamSynchronize(md_stream());
  for (int j = 0; j < STEPS; j++) md_recorded_step_destroy(&d->iteration[j]);
  md_device_free(d->on_device);
  partial_sums_destroy(&d->stencil);
  md_device_free_pinned(d->reports);
  md_device_free_pinned(d->zeta);
  delete d;
}

/* Each pass over the fields begins where the one before ended, with what it left in the cache. */
static md_status queue_iteration(md_context *context, void *user) {
  md_shift_device *d = (md_shift_device *)user;
  md_field *r = &d->f.r[d->turn], *from = d->anew ? &d->f.p[d->smallest] : r;
  const md_hop_end end = {from, 0.0, 1.0};
  md_hop_step first = {}, second = {};
  const rank_sums ranks = rank_sums_over(context, d->dirac->peers);
  const dim3 blocks(d->n_rhs), threads(MD_SUM_SLOTS);
  first.norm2 = second.norm2 = &d->stencil;
  first.backwards = true;
  second.by = d->on_device->step[0];
  second.before = d->anew ? r : &d->f.r[(d->turn + STEPS - 1) % STEPS];
  MD_TRY(md_dirac_hop_step(context, d->dirac, &d->of->odd, from, NULL, &first));
  md_launch_early(find_alpha, blocks, threads, 0, d->on_device, d->stencil, ranks);
  MD_TRY(md_dirac_hop_step(context, d->dirac, &d->f.r[(d->turn + 1) % STEPS], &d->of->odd, &end,
                           &second));
  md_launch_early(find_beta, blocks, threads, 0, d->on_device, d->stencil, ranks, d->n_shifts,
                  d->reports, d->zeta);
  if (d->turn == STEPS - 1) update(d, STEPS);
  return md_defer(context, md_cuda_launched(context, "an iteration of the shifts"));
}

extern "C" md_status md_shift_device_queue(md_context *context, md_shift_device *d) {
  MD_TRY(d->anew ? queue_iteration(context, d)
                 : md_recorded_step_queue(context, &d->iteration[d->turn], d->dirac,
                                          queue_iteration, d, NULL));
  d->anew = false;
  d->turn = (d->turn + 1) % STEPS;
  return MD_OK;
}

static md_status wait_here(md_context *context, md_shift_device *d, md_multishift_state *m) {
  const long long serial = ++d->waited;
  const int slot = (int)(serial % SLOTS);
  const double *zeta = d->zeta + (size_t)slot * d->n_shifts * d->n_rhs;
  for (int r = 0; r < d->n_rhs; r++) {
    const report *at = &d->reports[slot * d->n_rhs + r];
    MD_TRY(md_device_await(context, &at->serial, serial, "an iteration of the shifts"));
    if (d->dirac->peers) MD_TRY(md_device_peers_check(context, d->dirac->peers));
    MD_TRY(md_halo_verify(d->dirac->halo));
    if (at->failure)
      return md_fail(context, MD_UNREACHED,
                     "%s must be finite and positive, got %g in iteration %lld of right-hand side "
                     "%d; use a wider precision",
                     at->failure == 1 ? "<p, A p>" : "the residual", at->value, serial, r);
    m->r_norm2[r] = at->r_norm2;
  }
  for (int k = 0; k < d->n_shifts; k++)
    for (int r = 0; r < d->n_rhs; r++) m->shifts[k].zeta[r] = *zeta++;
  return MD_OK;
}

extern "C" md_status md_shift_device_wait(md_context *context, md_shift_device *d,
                                          md_multishift_state *m) {
  return md_agree_soon(context, wait_here(context, d, m), "an iteration of the shifts");
}
