#include <new>

extern "C" {
#include "dirac/solvers/device/recorded_step.h"
#include "dirac/solvers/device/shift_device.h"
}
#include "dirac/solvers/device/sums.cuh"
#include "lattice/fields/cuda/pieces.cuh"
#include "lattice/fields/cuda/rank_sums.cuh"

namespace {

constexpr int SLOTS = 2, MOST_SHIFTS = 64;

/* On the device, an entry for each right-hand side, or [shift][rhs]. `step` is what the stencil
 * reads; alpha and beta are those of the iteration before. */
struct scalars {
  double step[MD_MAX_RHS], alpha[MD_MAX_RHS], beta[MD_MAX_RHS];
  sum_units of_hop[MD_MAX_RHS], of_p[MD_MAX_RHS]; /* for the sums of the next kernels */
  double r_norm2[MD_MAX_RHS], p_ap[MD_MAX_RHS], limit[MD_MAX_RHS], mass2;
  double delta[MOST_SHIFTS];
  double zeta[MOST_SHIFTS][MD_MAX_RHS], before[MOST_SHIFTS][MD_MAX_RHS];
  double for_x[MOST_SHIFTS][MD_MAX_RHS], for_p[MOST_SHIFTS][MD_MAX_RHS];
  bool done[MOST_SHIFTS][MD_MAX_RHS];    /* before this iteration's update */
  bool resting[MOST_SHIFTS][MD_MAX_RHS]; /* in this iteration's update */
  int failure[MD_MAX_RHS];               /* 1: <p, A p>, 2: |r|^2 */
  long long serial[MD_MAX_RHS];          /* of the last iteration */
};

/* In page-locked memory, written by the device: `serial` last. */
struct report {
  double r_norm2, value;
  int failure;
  long long serial;
};

struct fields {
  md_field r, x[MOST_SHIFTS], p[MOST_SHIFTS];
};

template <class S> struct pairs { S *x[MOST_SHIFTS], *p[MOST_SHIFTS]; };

/* As in cg_device.cu: |p| is seldom more than a few times |r|, and |D p| than |p|. */
__host__ __device__ void set_units(scalars *s, int r, double r_norm2) {
  s->of_p[r] = units_for(4.0 * r_norm2);
  s->of_hop[r] = units_for(16.0 * r_norm2);
}

/* step = |r|^2 / <p, A p> of the smallest shift, 0 when it is done; a block for each side. */
__global__ void find_alpha(scalars *s, md_partial_sums stencil, md_partial_sums update,
                           rank_sums ranks) {
  md_release_successor();
  md_wait_for_predecessor();
  const int r = blockIdx.x;
  const unit_sum hopped = share_of(stencil, r), kept = share_of(update, r);
  double word[MD_RANK_SUM_WORDS] = {hopped.high, hopped.low, kept.high, kept.low};
  const long long tick = next_tick(ranks, r);
  add_threads(word);
  add_ranks(ranks, r, tick, word);
  if (threadIdx.x != 0) return;
  const double norm2 = word[2] + word[3], p_ap = s->mass2 * norm2 + (word[0] + word[1]);
  s->of_hop[r] = units_for(s->r_norm2[r]);
  const bool done = sqrt(s->r_norm2[r]) <= s->limit[r];
  if (!done && !(isfinite(p_ap) && p_ap > 0.0)) s->failure[r] = 1;
  s->p_ap[r] = p_ap;
  s->step[r] = done || s->failure[r] ? 0.0 : s->r_norm2[r] / p_ap;
}

/* beta, and by the recursion of B. Jegerlehner (hep-lat/9612014, eq. 2.42 ff.) the coefficients of
 * all shifts, a thread each. */
__device__ void follow(scalars *s, int k, int r, double beta, double norm2, double *reported) {
  const double alpha = s->step[r], zeta = s->zeta[k][r], before = s->before[k][r];
  const bool resting = s->done[k][r] || alpha == 0.0;
  s->resting[k][r] = resting;
  if (!resting) {
    const double divisor =
        alpha * s->beta[r] * (before - zeta) + before * s->alpha[r] * (1.0 + s->delta[k] * alpha);
    const double next = zeta * before * s->alpha[r] / divisor;
    s->for_x[k][r] = alpha * next;
    s->for_p[k][r] = beta * next / zeta;
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
  const int r = blockIdx.x;
  const long long tick = next_tick(ranks, r), serial = s->serial[r] + 1;
  const unit_sum added = add_threads(share_of(stencil, r));
  double word[MD_RANK_SUM_WORDS] = {added.high, added.low, 0.0, 0.0};
  reports += serial % SLOTS * gridDim.x;
  zeta += serial % SLOTS * n_shifts * gridDim.x;
  add_ranks(ranks, r, tick, word);
  if (threadIdx.x == 0) sum = word[0] + word[1];
  __syncthreads();
  const double alpha = s->step[r], norm2 = alpha != 0.0 ? sum : s->r_norm2[r];
  const double beta = alpha != 0.0 ? norm2 / s->r_norm2[r] : 0.0;
  for (int k = threadIdx.x; k < n_shifts; k += blockDim.x) {
    follow(s, k, r, beta, norm2, &zeta[k * gridDim.x + r]);
    __threadfence_system();
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  set_units(s, r, norm2);
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

/* x_k += for_x p_k, p_k = r + for_p p_k of all shifts that go on, unless `start`; leaves the
 * blocks' sums of |p|^2 of the smallest. */
template <class S, bool ONE>
__global__ void update_fields(const scalars *s, linear_view<S> residual, pairs<S> of, int n_shifts,
                              int smallest, int64_t sites, int n_rhs, bool start,
                              block_sums norm2) {
  const piece_place at = place_of<1, ONE>(sites, n_rhs, blockIdx.x);
  double term[1] = {};
  real_of<S> r[1][6];
  md_release_successor();
  md_wait_for_predecessor();
  load_piece<ONE>(residual, at, r);
#pragma unroll 2
  for (int k = 0; k < n_shifts; k++) {
    const bool resting = start || s->resting[k][at.rhs];
    if (resting && k != smallest) continue;
    real_of<S> old_p[1][6], p[1][6], x[1][6];
    const linear_view<S> ps = {of.p[k], NULL, residual.stride};
    const linear_view<S> xs = {of.x[k], NULL, residual.stride};
    load_piece<ONE>(ps, at, old_p);
#pragma unroll
    for (int c = 0; c < 6; c++) p[0][c] = resting ? old_p[0][c] : r[0][c];
    if (!resting) {
      load_piece<ONE>(xs, at, x);
      add_times<ONE>(x, s->for_x[k], at, old_p);
      add_times<ONE>(p, s->for_p[k], at, old_p);
      store_piece<ONE>(xs, at, x);
      store_piece<ONE>(ps, at, p);
    }
    if (k == smallest) products_of(term, at, p, p);
  }
  add_block_terms<ONE, one_word<S>>(term, at, norm2, blockIdx.x);
}

} // namespace

struct md_shift_device {
  md_dirac *dirac;
  int n_shifts, smallest, n_rhs;
  double mass2;
  fields f;
  md_field work;
  scalars *on_device;
  md_partial_sums stencil, update;
  report *reports; /* [SLOTS][n_rhs] */
  double *zeta;    /* [SLOTS][n_shifts * n_rhs] */
  long long waited;
  md_recorded_step iteration;
};

namespace {

template <class S> void launch_update(md_shift_device *d, bool start) {
  const dim3 block = block_of(&d->f.r);
  const unsigned blocks = all_blocks(&d->f.r, block);
  const linear_view<S> r = linear_view_of<S>(&d->f.r);
  pairs<S> of = {};
  for (int k = 0; k < d->n_shifts; k++) {
    of.x[k] = (S *)d->f.x[k].data;
    of.p[k] = (S *)d->f.p[k].data;
  }
  auto *kernel = d->n_rhs == 1 ? update_fields<S, true> : update_fields<S, false>;
  md_launch_early(kernel, dim3(blocks), block, shared_of(block), (const scalars *)d->on_device, r,
                  of, d->n_shifts, d->smallest, d->f.r.sites, d->n_rhs, start,
                  block_sums{d->update.sum, d->update.units});
}

void update(md_shift_device *d, bool start) {
  if (d->f.r.precision == MD_DOUBLE)
    launch_update<double>(d, start);
  else
    launch_update<float>(d, start);
}

md_status allocate(md_context *context, md_shift_device *d) {
  const size_t n = (size_t)d->n_rhs;
  MD_TRY(md_dirac_field(context, d->dirac, MD_ODD, &d->work));
  MD_TRY(md_device_allocate(context, sizeof *d->on_device, "shifts", (void **)&d->on_device));
  MD_TRY(partial_sums_create(context, d->n_rhs, d->on_device->of_hop, &d->stencil));
  MD_TRY(partial_sums_create(context, d->n_rhs, d->on_device->of_p, &d->update));
  MD_TRY(md_device_allocate_pinned(context, SLOTS * n * sizeof *d->reports, "reports",
                                   (void **)&d->reports));
  for (size_t i = 0; i < SLOTS * n; i++) d->reports[i] = {};
  return md_device_allocate_pinned(context, SLOTS * n * d->n_shifts * sizeof *d->zeta, "reports",
                                   (void **)&d->zeta);
}

md_status upload(md_context *context, md_shift_device *d, const md_shift_setup *setup) {
  scalars *s = new (std::nothrow) scalars();
  if (!s) return md_fail_memory(context, sizeof *s, "shifts");
  s->mass2 = setup->mass2;
  for (int r = 0; r < d->n_rhs; r++) {
    s->alpha[r] = 1.0;
    s->r_norm2[r] = setup->r_norm2[r];
    s->limit[r] = setup->limit[r];
    set_units(s, r, setup->r_norm2[r]);
    for (int k = 0; k < d->n_shifts; k++) {
      s->delta[k] = setup->deltas[k];
      s->zeta[k][r] = s->before[k][r] = 1.0;
    }
  }
  const md_status status = md_device_upload(context, d->on_device, s, sizeof *s);
  delete s;
  return status;
}

} // namespace

extern "C" md_status md_shift_device_create(md_context *context, md_dirac *dirac,
                                            const md_shift_setup *setup, md_shift_device **shifts) {
  md_shift_device *d = new (std::nothrow) md_shift_device();
  *shifts = d;
  if (!d) return md_fail_memory(context, sizeof *d, "shifts");
  d->dirac = dirac;
  d->n_shifts = setup->n_shifts;
  d->smallest = setup->smallest;
  d->n_rhs = setup->r->n_rhs;
  d->mass2 = setup->mass2;
  d->f.r = *setup->r;
  for (int k = 0; k < d->n_shifts; k++) {
    d->f.x[k] = *setup->x[k];
    d->f.p[k] = *setup->p[k];
  }
  MD_TRY(allocate(context, d));
  MD_TRY(upload(context, d, setup));
  update(d, true);
  return md_cuda_launched(context, "start of the shifts");
}

extern "C" void md_shift_device_destroy(md_shift_device *d) {
  if (!d) return;
  cudaStreamSynchronize(md_stream());
  md_recorded_step_destroy(&d->iteration);
  md_field_destroy(&d->work);
  md_device_free(d->on_device);
  partial_sums_destroy(&d->stencil);
  partial_sums_destroy(&d->update);
  md_device_free_pinned(d->reports);
  md_device_free_pinned(d->zeta);
  delete d;
}

/* Each pass over the fields begins where the one before ended, with what it left in the cache. */
static md_status queue_iteration(md_context *context, void *user) {
  md_shift_device *d = (md_shift_device *)user;
  md_field *p = &d->f.p[d->smallest];
  md_epilogue first = {}, second = {};
  const rank_sums ranks = rank_sums_over(context, d->dirac->peers);
  const dim3 blocks(d->n_rhs), threads(MD_SUM_SLOTS);
  first.norm2 = second.norm2 = &d->stencil;
  first.backwards = true;
  second.x = p;
  second.a = -d->mass2;
  second.b = 1.0;
  second.step = d->on_device->step;
  MD_TRY(md_dirac_hop(context, d->dirac, &d->work, p, &first));
  md_launch_early(find_alpha, blocks, threads, 0, d->on_device, d->stencil, d->update, ranks);
  MD_TRY(md_dirac_hop(context, d->dirac, &d->f.r, &d->work, &second));
  md_launch_early(find_beta, blocks, threads, 0, d->on_device, d->stencil, ranks, d->n_shifts,
                  d->reports, d->zeta);
  update(d, false);
  return md_cuda_launched(context, "an iteration of the shifts");
}

extern "C" md_status md_shift_device_queue(md_context *context, md_shift_device *d) {
  return md_recorded_step_queue(context, &d->iteration, d->dirac, queue_iteration, d, NULL);
}

extern "C" md_status md_shift_device_wait(md_context *context, md_shift_device *d, double *r_norm2,
                                          double *zeta) {
  const long long serial = ++d->waited;
  const int slot = (int)(serial % SLOTS), entries = d->n_shifts * d->n_rhs;
  for (int r = 0; r < d->n_rhs; r++) {
    const report *at = &d->reports[slot * d->n_rhs + r];
    MD_TRY(md_device_await(context, &at->serial, serial, "an iteration of the shifts"));
    if (d->dirac->peers) MD_TRY(md_device_peers_check(context, d->dirac->peers));
    if (at->failure)
      return md_fail(context, MD_UNREACHED,
                     "%s must be finite and positive, got %g in iteration %lld of right-hand side "
                     "%d; use a wider precision",
                     at->failure == 1 ? "<p, A p>" : "the residual", at->value, serial, r);
    r_norm2[r] = at->r_norm2;
  }
  for (int e = 0; e < entries; e++) zeta[e] = d->zeta[slot * entries + e];
  return MD_OK;
}
