#pragma once

#include "dirac/solvers/device/sums.cuh"
#include "dirac/solvers/device/three_term.cuh"
#include "lattice/fields/cuda/rank_sums.cuh"

extern "C" {
#include "dirac/solvers/device/cg_device.h"
}
#include <math.h>

/* The scalars of an iteration and the kernel that settles them (cg_device.cu). */

/* On the device. */
struct cg_scalars {
  double word[MD_MAX_RHS][MD_RANK_SUM_WORDS]; /* this rank's or all ranks' |D p|^2 or |r|^2, then
                                              |p|^2, each as high and low */
  sum_units of_hop[MD_MAX_RHS], of_p[MD_MAX_RHS]; /* for the sums of the next kernels */
  double r_norm2[MD_MAX_RHS], p_ap[MD_MAX_RHS], limit[MD_MAX_RHS];
  /* Of each iteration whose direction x may still lack. */
  double alpha[MD_CG_DIRECTIONS][MD_MAX_RHS], beta[MD_CG_DIRECTIONS][MD_MAX_RHS];
  double step[3][MD_MAX_RHS]; /* of D in, x and the field before, as in md_hop_step */
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

enum cg_phase { FIND_ALPHA, FIND_BETA };

/* What of a right-hand side is read before its sums are known. */
struct cg_known {
  double r_norm2, limit, alpha;
  three_term before; /* p_ap: of this iteration, once that is known */
  long long serial;
};

/* Units for |p|^2 and |D p|^2 follow from |r|^2 alone, so that a solve that goes on from a saved
 * state has the same: |p| is seldom more than a few times |r|, and |D p| than |p|. */
static __host__ __device__ void set_units(cg_scalars *s, int r, double r_norm2) {
  s->of_p[r] = units_for(4.0 * r_norm2);
  s->of_hop[r] = units_for(16.0 * r_norm2);
}

/* anew: the stencil took p, not r. */
static __device__ void find_alpha(cg_scalars *s, int at, bool anew, int r, const cg_known &known,
                                  const double *word) {
  const double norm2 = anew ? word[2] + word[3] : known.r_norm2;
  const double p_ap = p_ap_of(known.before, s->mass2, norm2, word[0] + word[1]);
  const bool done = sqrt(known.r_norm2) <= known.limit;
  const int failure = done ? 0 : !isfinite(p_ap) ? 1 : p_ap <= 0.0 ? 2 : 0;
  const double alpha = done || failure ? 0.0 : known.r_norm2 / p_ap;
  s->failure[r] = failure;
  s->alpha[at][r] = alpha;
  s->p_ap[r] = p_ap;
  set_step(s->step, r, anew, known.before, alpha, s->mass2);
  s->of_hop[r] = units_for(known.r_norm2);
}

static __device__ void find_beta(cg_scalars *s, int at, int r, const cg_known &known,
                                 const double *word, cg_slot *slot) {
  const bool going = known.alpha != 0.0;
  const double norm2 = word[0] + word[1], now = going ? norm2 : known.r_norm2;
  const int failure = going && !isfinite(norm2) ? 3 : s->failure[r];
  s->beta[at][r] = going ? norm2 / known.r_norm2 : 0.0;
  set_units(s, r, now);
  s->r_norm2[r] = now;
  s->iterations[r] += going;
  s->serial[r] = known.serial;
  slot->report = {now, known.alpha, failure == 3 ? norm2 : known.before.p_ap, s->iterations[r],
                  failure};
  __threadfence_system();
  *(volatile long long *)&slot->serial = known.serial;
}

/* One block of MD_SUM_SLOTS threads per right-hand side: the sums, of all ranks, then what follows
 * from them, with the scalars of the iteration at `at` and of the one before it; before -1: the
 * stencil takes p. Where ranks do not share memory the two are launched apart, and NCCL or the host
 * adds the ranks' sums in between. */
static __global__ void settle(cg_scalars *s, md_partial_sums stencil, md_partial_sums update,
                              cg_phase phase, int at, int before, bool sum, bool apply,
                              rank_sums ranks, cg_slot *slots) {
  md_release_successor();
  md_wait_for_predecessor();
  const int r = blockIdx.x;
  const bool anew = before < 0;
  const three_term carried = {anew ? 0.0 : s->alpha[before][r], anew ? 0.0 : s->beta[before][r],
                              s->p_ap[r]};
  const cg_known known = {s->r_norm2[r], s->limit[r], s->alpha[at][r], carried, s->serial[r] + 1};
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
    find_alpha(s, at, anew, r, known, word);
  else
    find_beta(s, at, r, known, word, &slots[known.serial % SLOTS * gridDim.x + r]);
}
