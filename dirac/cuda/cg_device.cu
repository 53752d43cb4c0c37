#include <new>

extern "C" {
#include "dirac/cuda/cg_device.h"
}
#include "lattice/cuda/linear_device.cuh"

/* On the device. */
struct cg_scalars {
  double sum[2][MD_MAX_RHS]; /* over this rank's or all ranks' sites: stencil, update */
  double r_norm2[MD_MAX_RHS], alpha[MD_MAX_RHS], beta[MD_MAX_RHS], limit[MD_MAX_RHS];
  double mass2;
  int iterations[MD_MAX_RHS], failure[MD_MAX_RHS];
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
  cg_slot *slots; /* [SLOTS][n_rhs] */
  md_partial_sums stencil, update;
  long long serial;  /* of the last iteration */
  long long awaited; /* of the last report */
  /* Order of sites of the last kernel over a field: each pass begins where the one before ended,
   * with what it left in the cache. */
  bool backwards;
};

enum cg_phase { FIND_ALPHA, FIND_BETA };

static __device__ void find_alpha(cg_scalars *s, int r) {
  const double p_ap = s->mass2 * s->sum[1][r] + s->sum[0][r];
  const bool done = sqrt(s->r_norm2[r]) <= s->limit[r];
  s->failure[r] = done ? 0 : !isfinite(p_ap) ? 1 : p_ap <= 0.0 ? 2 : 0;
  s->alpha[r] = done || s->failure[r] ? 0.0 : s->r_norm2[r] / p_ap;
  s->beta[r] = p_ap;
}

static __device__ void find_beta(cg_scalars *s, int r, cg_slot *slot, long long serial) {
  const double norm2 = s->sum[0][r], p_ap = s->beta[r];
  const bool going = s->alpha[r] != 0.0;
  s->beta[r] = going ? norm2 / s->r_norm2[r] : 0.0;
  if (going && !isfinite(norm2)) s->failure[r] = 3;
  if (going) {
    s->r_norm2[r] = norm2;
    s->iterations[r]++;
  }
  slot->report = {s->r_norm2[r], s->alpha[r], s->failure[r] == 3 ? norm2 : p_ap, s->iterations[r],
                  s->failure[r]};
  __threadfence_system();
  *(volatile long long *)&slot->serial = serial;
}

/* Adds up a right-hand side's partial sums in a fixed order; the sum in thread 0. */
static __device__ double add_all(const md_partial_sums &sums, int r) {
  double value = 0.0;
#pragma unroll 8
  for (int k = threadIdx.x; k < sums.count; k += blockDim.x)
    value += sums.value[(int64_t)r * sums.most + k];
  return add_threads(value);
}

/* One block of 1024 threads per right-hand side: the sums, then what follows from them. With
 * several ranks the two are launched apart and the ranks' sums are added in between. */
static __global__ void settle(cg_scalars *s, md_partial_sums stencil, md_partial_sums update,
                              cg_phase phase, bool sum, bool apply, cg_slot *slots,
                              long long serial) {
  md_release_successor();
  md_wait_for_predecessor();
  const int r = blockIdx.x;
  if (sum) {
    const double first = add_all(stencil, r);
    const double second = phase == FIND_ALPHA ? add_all(update, r) : 0.0;
    if (threadIdx.x == 0) s->sum[0][r] = first;
    if (threadIdx.x == 0 && phase == FIND_ALPHA) s->sum[1][r] = second;
  }
  if (!apply || threadIdx.x != 0) return;
  if (phase == FIND_ALPHA)
    find_alpha(s, r);
  else
    find_beta(s, r, &slots[r], serial);
}

/* x += alpha p, p = r + beta p unless `start`; leaves the blocks' sums of |p|^2. */
template <class S, bool ONE>
static __global__ void update_fields(const cg_scalars *s, linear_view<S> residual, linear_view<S> p,
                                     linear_view<S> x, int64_t sites, int n_rhs, bool start,
                                     bool backwards, double *norm2, int most) {
  using T = real_of<S>;
  const int r = threadIdx.x, block = backwards ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
  const int64_t first = (int64_t)block * blockDim.y + threadIdx.y;
  const bool active = first < sites;
  const int64_t site = active ? first : sites - 1;
  md_release_successor();
  md_wait_for_predecessor();
  T u[6], v[6], w[6];
  load_six<S, ONE>(p, site, n_rhs, r, v);
  if (!start) {
    load_six<S, ONE>(residual, site, n_rhs, r, u);
    load_six<S, ONE>(x, site, n_rhs, r, w);
    const T alpha = (T)s->alpha[r], beta = (T)s->beta[r];
#pragma unroll
    for (int c = 0; c < 6; c++) {
      w[c] += alpha * v[c];
      v[c] = u[c] + beta * v[c];
    }
    store_six<S, ONE>(x, site, active, n_rhs, r, w);
    store_six<S, ONE>(p, site, active, n_rhs, r, v);
  }
  double sum = 0.0;
  if (active)
#pragma unroll
    for (int c = 0; c < 6; c++) sum += (double)v[c] * (double)v[c];
  add_block<ONE>(sum, norm2, most, block);
}

template <class S> static void launch_update(md_cg_device *cg, md_cg_state *state, bool start) {
  const dim3 block = block_of(&state->x);
  const unsigned blocks = all_blocks(&state->x, block);
  const linear_view<S> r = linear_view_of<S>(&state->r), p = linear_view_of<S>(&state->p),
                       x = linear_view_of<S>(&state->x);
  const size_t shared = block.x * block.y * sizeof(double);
  const cg_scalars *scalars = cg->scalars;
  cg->backwards = !cg->backwards;
  cg->update.count = (int)blocks;
  if (cg->n_rhs == 1)
    md_launch_early(update_fields<S, true>, dim3(blocks), block, shared, scalars, r, p, x,
                    state->x.sites, 1, start, cg->backwards, cg->update.value, cg->update.most);
  else
    md_launch_early(update_fields<S, false>, dim3(blocks), block, shared, scalars, r, p, x,
                    state->x.sites, cg->n_rhs, start, cg->backwards, cg->update.value,
                    cg->update.most);
}

static void update(md_cg_device *cg, md_cg_state *state, bool start) {
  switch (state->p.precision) {
  case MD_DOUBLE:
    launch_update<double>(cg, state, start);
    break;
  case MD_SINGLE:
    launch_update<float>(cg, state, start);
    break;
  case MD_HALF:
    launch_update<__half>(cg, state, start);
    break;
  case MD_FIXED:
    launch_update<fixed16>(cg, state, start);
    break;
  default:
    launch_update<__nv_bfloat16>(cg, state, start);
  }
}

extern "C" void md_cg_device_update(md_cg_device *cg, md_cg_state *state) {
  update(cg, state, false);
}

/* Adds `count` doubles of the device over the ranks; NaN where the device failed. */
static void add_ranks(md_context *context, double *on_device, int count) {
  double values[2 * MD_MAX_RHS];
  md_sum sums[MD_MAX_RHS] = {};
  const bool good =
      cudaMemcpy(values, on_device, count * sizeof(double), cudaMemcpyDeviceToHost) == cudaSuccess;
  for (int r = 0; r < count; r++) md_sum_add(&sums[r], good ? values[r] : NAN);
  md_sum_finish(context, sums, count, values);
  cudaMemcpy(on_device, values, count * sizeof(double), cudaMemcpyHostToDevice);
}

static void run_phase(md_context *context, md_cg_device *cg, cg_phase phase) {
  cg_slot *slots = cg->slots + (cg->serial % SLOTS) * cg->n_rhs;
  const bool alone = context->ranks == 1;
  const dim3 blocks(cg->n_rhs), threads(1024);
  md_launch_early(settle, blocks, threads, 0, cg->scalars, cg->stencil, cg->update, phase, true,
                  alone, slots, cg->serial);
  if (alone) return;
  cudaStreamSynchronize(md_stream());
  add_ranks(context, cg->scalars->sum[0], cg->n_rhs);
  if (phase == FIND_ALPHA) add_ranks(context, cg->scalars->sum[1], cg->n_rhs);
  md_launch_early(settle, blocks, threads, 0, cg->scalars, cg->stencil, cg->update, phase, false,
                  true, slots, cg->serial);
}

static md_status allocate(md_context *context, md_cg_device *cg, const md_field *x) {
  /* Blocks hold 128 threads or more, or one site beyond 128 right-hand sides. */
  const int64_t blocks = x->sites * (x->n_rhs + 4) / 128 + 8;
  const int64_t most = blocks < MD_PARTIAL_SUMS ? (int64_t)MD_PARTIAL_SUMS : blocks;
  if (most > INT32_MAX)
    return md_fail(context, MD_INPUT,
                   "the local lattice must have fewer than 2^31 blocks of sites");
  const size_t bytes = (size_t)most * x->n_rhs * sizeof(double);
  cg->stencil.most = cg->update.most = (int)most;
  MD_TRY(md_device_allocate(context, sizeof *cg->scalars, "scalars", (void **)&cg->scalars));
  MD_TRY(md_device_allocate(context, bytes, "sums", (void **)&cg->stencil.value));
  MD_TRY(md_device_allocate(context, bytes, "sums", (void **)&cg->update.value));
  return md_device_allocate_pinned(context, SLOTS * (size_t)x->n_rhs * sizeof *cg->slots, "reports",
                                   (void **)&cg->slots);
}

static md_status set_scalars(md_context *context, md_cg_device *cg, const md_cg_state *state,
                             const double *limit) {
  cg_scalars start = {};
  start.mass2 = cg->mass * cg->mass;
  for (int r = 0; r < cg->n_rhs; r++) {
    start.r_norm2[r] = state->r_norm2[r];
    start.limit[r] = limit[r];
    start.iterations[r] = state->rhs_iterations[r];
  }
  return md_device_upload(context, cg->scalars, &start, sizeof start);
}

extern "C" md_status md_cg_device_start(md_context *context, md_cg_device *cg, md_cg_state *state,
                                        const double *limit) {
  MD_TRY(set_scalars(context, cg, state, limit));
  update(cg, state, true);
  return MD_OK;
}

extern "C" md_status md_cg_device_create(md_context *context, const md_field *x, double mass,
                                         md_cg_device **cg) {
  md_cg_device *d = new (std::nothrow) md_cg_device();
  *cg = d;
  if (!d) return md_fail_memory(context, sizeof *d, "solver");
  d->n_rhs = x->n_rhs;
  d->mass = mass;
  MD_TRY(allocate(context, d, x));
  for (int i = 0; i < SLOTS * d->n_rhs; i++) d->slots[i] = {};
  return MD_OK;
}

extern "C" void md_cg_device_destroy(md_cg_device *cg) {
  if (!cg) return;
  cudaStreamSynchronize(md_stream());
  md_device_free(cg->scalars);
  md_device_free(cg->stencil.value);
  md_device_free(cg->update.value);
  md_device_free_pinned(cg->slots);
  delete cg;
}

extern "C" md_status md_cg_device_queue_step(md_context *context, md_cg_device *cg, md_dirac *dirac,
                                             md_cg_state *state, md_field *work) {
  md_epilogue first = {}, second = {};
  first.norm2 = second.norm2 = &cg->stencil;
  first.backwards = cg->backwards = !cg->backwards;
  MD_TRY(md_dirac_hop(context, dirac, work, &state->p, &first));
  run_phase(context, cg, FIND_ALPHA);
  second.x = &state->p;
  second.a = -cg->mass * cg->mass;
  second.b = 1.0;
  second.step = cg->scalars->alpha;
  second.backwards = cg->backwards = !cg->backwards;
  MD_TRY(md_dirac_hop(context, dirac, &state->r, work, &second));
  cg->serial++;
  run_phase(context, cg, FIND_BETA);
  return MD_OK;
}

extern "C" md_status md_cg_device_wait(md_context *context, md_cg_device *cg,
                                       md_cg_report *reports) {
  const long long iteration = ++cg->awaited;
  const cg_slot *slots = cg->slots + (iteration % SLOTS) * cg->n_rhs;
  for (int r = 0; r < cg->n_rhs; r++) {
    for (long long spins = 1; __atomic_load_n(&slots[r].serial, __ATOMIC_ACQUIRE) != iteration;
         spins++) {
      if (spins % 4096 != 0) continue;
      const cudaError_t error = cudaStreamQuery(md_stream());
      if (error != cudaSuccess && error != cudaErrorNotReady)
        return md_cuda_status(context, error, "the solver's iteration");
    }
    reports[r] = slots[r].report;
  }
  return MD_OK;
}
