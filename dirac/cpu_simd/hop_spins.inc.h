/* H of quarks with four spins: LANES sites at once, real and imaginary parts in vectors apart, or
 * with many right-hand sides rows of (re, im) at one site. Each neighbour is projected to half a
 * spinor (lattice/halo/half_spinor.h), which the link multiplies; the links of a block serve all
 * its slices. Part of hop.c. */

#include "lattice/halo/half_spinor.h"

enum { SPINOR = 24, HALF = 12 };
/* Results of a block that wait for the scale of their sites. */
#if SCALED
#define MOST_WAITING MD_MAX_COMPONENTS
#else
#define MOST_WAITING SPINOR
#endif

INLINED VECTOR arith_at(const ARITH *p) {
  VECTOR v;
  memcpy(&v, p, sizeof v);
  return v;
}

/* y += i^q x of one spin, with parts apart, and in rows. */
INLINED void add_turned(int q, const VECTOR x[6], VECTOR y[6]) {
  for (int c = 0; c < 6; c += 2) {
    const VECTOR re = q == 0 ? x[c] : q == 1 ? -x[c + 1] : q == 2 ? -x[c] : x[c + 1];
    const VECTOR im = q == 0 ? x[c + 1] : q == 1 ? x[c] : q == 2 ? -x[c + 1] : -x[c];
    y[c] += re;
    y[c + 1] += im;
  }
}
INLINED VECTOR plus_turned(VECTOR y, int q, VECTOR x) {
  const VECTOR turned = q % 2 ? times_i(x) : x;
  return q < 2 ? y + turned : y - turned;
}

/* sum += (1 -+ gamma_mu) u psi, u[real * LANES ..]. */
INLINED void add_leg(const VECTOR psi[SPINOR], const ARITH *u, int d, VECTOR sum[SPINOR]) {
  for (int k = 0; k < 2; k++) {
    const int q = md_half_spinors[d].q[k], other = HALF + 6 * (k ^ md_half_spinors[d].swap);
    VECTOR v[6], g[6];
    for (int c = 0; c < 6; c++) v[c] = psi[6 * k + c];
    add_turned(q, psi + other, v);
    for (int row = 0; row < 3; row++) {
      VECTOR re = {0}, im = {0}, a[6];
      for (int c = 0; c < 6; c++) a[c] = arith_at(u + (6 * row + c) * LANES);
      ADD_ROW(row, a, re, im);
      g[2 * row] = re;
      g[2 * row + 1] = im;
    }
    add_turned(0, g, sum + 6 * k);
    add_turned((4 - q) % 4, g, sum + other);
  }
}

/* The same of LANES reals of rows that are `row` apart. */
INLINED void add_leg_of_rows(const STORED *psi, int row, const site_links u, int d,
                             VECTOR sum[HALF]) {
  for (int k = 0; k < 2; k++) {
    const int q = md_half_spinors[d].q[k], other = 6 + 3 * (k ^ md_half_spinors[d].swap);
    VECTOR v[3], w[3];
    for (int c = 0; c < 3; c++) {
      v[c] = plus_turned(LOAD(psi + (3 * k + c) * row), q, LOAD(psi + (other + c) * row));
      w[c] = times_i(v[c]);
    }
    for (int i = 0; i < 3; i++) {
      VECTOR g = {0};
      for (int c = 0; c < 3; c++) {
        g += u[6 * i + 2 * c][d] * v[c];
        g += u[6 * i + 2 * c + 1][d] * w[c];
      }
      sum[3 * k + i] += g;
      sum[other + i] = plus_turned(sum[other + i], (4 - q) % 4, g);
    }
  }
}

/* The links of a block in the arithmetic type, with the scales of the neighbours in them: room, or
 * as they are stored. */
INLINED const ARITH *block_links(const md_simd_call *call, int64_t block, int reals, ARITH *room) {
  const STORED *links = (const STORED *)call->links + block * TERMS * reals * LANES;
  if (AS_STORED(reals)) return (const ARITH *)(const void *)links;
  for (int d = 0; d < TERMS; d++, links += reals * LANES) {
    VECTOR u[MD_LINK_REALS];
    for (int c = 0; c < reals; c++) {
      u[c] = LOAD(links + c * LANES);
#if defined LINK_UNIT
      u[c] *= LINK_UNIT;
#endif
    }
    if (reals != MD_LINK_REALS) third_row(u, u + 6, call->plan->sign[block * TERMS + d], u + 12);
#if SCALED
    const VECTOR scale = neighbour_scales(call->plan, block * TERMS + d, call->in_scale);
    for (int c = 0; c < MD_LINK_REALS; c++) u[c] *= scale;
#endif
    memcpy(room + d * MD_LINK_REALS * LANES, u, sizeof u);
  }
  return room;
}

/* out = a x + b sum of a slice, but for the division by the scales where sites have them. */
INLINED void end_spinor(const md_simd_call *call, int64_t site, int slice, int count,
                        VECTOR sum[SPINOR]) {
  const STORED *x = (const STORED *)call->x + site + slice * SPINOR * call->x_stride;
  for (int c = 0; c < SPINOR; c++) sum[c] = (ARITH)call->b * sum[c];
  if (!call->x) return;
#if SCALED
  VECTOR a = {0};
  for (int l = 0; l < count; l++) a[l] = (ARITH)call->a * call->x_scale[site + l];
#else
  const ARITH a = (ARITH)call->a;
#endif
  for (int c = 0; c < SPINOR; c++) sum[c] += a * load_part(x + c * call->x_stride, count);
}

INLINED void spins_of_block(const md_simd_call *call, int64_t block, int reals) {
  const md_simd_plan *plan = call->plan;
  const int64_t site = plan->site[block];
  const int count = call->sites - site < LANES ? (int)(call->sites - site) : LANES;
  const int waits = SCALED ? call->slices * SPINOR : SPINOR;
  ARITH room[TERMS * MD_LINK_REALS * LANES] __attribute__((aligned(64)));
  VECTOR waiting[MOST_WAITING];
  const ARITH *u = block_links(call, block, reals, room);
  for (int slice = 0; slice < call->slices; slice++) {
    const STORED *in = (const STORED *)call->in + slice * SPINOR * call->in_stride;
    STORED *out = (STORED *)call->out + site + (SCALED ? 0 : slice * SPINOR * call->out_stride);
    VECTOR sum[SPINOR] = {{0}};
#pragma GCC unroll 8
    for (int d = 0; d < TERMS; d++) {
      const int64_t e = block * TERMS + d;
      VECTOR psi[SPINOR];
      if (d % MD_DIMS >= MD_Z) fetch_neighbours(plan, e + TERMS, in, call->in_stride, SPINOR);
      for (int k = 0; k < 4; k++)
        neighbours(plan, e, in + 6 * k * call->in_stride, call->in_stride, psi + 6 * k);
      add_leg(psi, u + d * MD_LINK_REALS * LANES, d, sum);
    }
    end_spinor(call, site, slice, count, sum);
    memcpy(waiting + (SCALED ? slice * SPINOR : 0), sum, sizeof sum);
    if (SCALED && slice + 1 < call->slices) continue;
#if SCALED
    rescale(waits, waiting, call->out_scale + site, count);
#endif
    for (int c = 0; c < waits; c++)
      store_part(out + c * call->out_stride, waiting[c], count, false);
  }
}

INLINED void spins_one(const md_simd_call *call, int64_t begin, int64_t end, int reals) {
  for (int64_t k = begin; k < end; k++) {
    const int64_t block = call->order ? call->order[k] : k;
    fetch_plan(call->plan, block + MD_SIMD_AHEAD);
    spins_of_block(call, block, reals);
  }
}

/* The sums of a slice at a site, rows of `padded` reals. */
INLINED void sum_rows(const md_simd_call *call, int64_t block, int slice, const site_links u,
                      int padded, ARITH *sums) {
  const int row = 2 * call->n_rhs;
  for (int from = 0; from < row; from += LANES) {
    VECTOR sum[HALF] = {{0}};
#pragma GCC unroll 8
    for (int d = 0; d < TERMS; d++) {
      const int64_t at = (int64_t)call->plan->first[block * TERMS + d] * call->slices + slice;
      add_leg_of_rows((const STORED *)call->in + at * HALF * row + from, row, u, d, sum);
    }
    for (int c = 0; c < HALF; c++) memcpy(sums + c * padded + from, &sum[c], sizeof sum[c]);
  }
}

INLINED void spins_many(const md_simd_call *call, int64_t begin, int64_t end, int reals) {
  const int padded = (2 * call->n_rhs + LANES - 1) / LANES * LANES;
  ARITH sums[MOST_WAITING / 2 * MOST_REALS] __attribute__((aligned(64)));
  site_links room __attribute__((aligned(64)));
  for (int64_t k = begin; k < end; k++) {
    const int64_t block = call->order ? call->order[k] : k, site = call->plan->site[block];
    const STORED *links = (const STORED *)call->links + block * TERMS * reals;
    const ARITH(*u)[TERMS] = (const ARITH(*)[TERMS])(const void *)links;
    if (!AS_STORED(reals)) {
      unpack(call, block, reals, room);
      u = (const ARITH(*)[TERMS])room;
    }
    for (int slice = 0; slice < call->slices; slice++) {
      sum_rows(call, block, slice, u, padded, sums + (SCALED ? slice * HALF * padded : 0));
      if (!SCALED) finish_part(call, site, call->slices, slice, HALF, padded, sums);
    }
    if (SCALED) finish_part(call, site, 1, 0, call->slices * HALF, padded, sums);
  }
  if (call->stream) md_stream_end();
}

static void spins_one_18(const md_simd_call *call, int64_t begin, int64_t end) {
  spins_one(call, begin, end, MD_LINK_REALS);
}
static void spins_one_12(const md_simd_call *call, int64_t begin, int64_t end) {
  spins_one(call, begin, end, MD_LINK_12_REALS);
}
static void spins_many_18(const md_simd_call *call, int64_t begin, int64_t end) {
  spins_many(call, begin, end, MD_LINK_REALS);
}
static void spins_many_12(const md_simd_call *call, int64_t begin, int64_t end) {
  spins_many(call, begin, end, MD_LINK_12_REALS);
}
