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

/* What follows is written without loops: gcc keeps sums in registers, and what does not depend on
 * data out of the kernel, only where it sees that before it unrolls any. */

/* y += i^q x of one spin, with parts apart; y + i^q x in rows. */
INLINED void add_turned_pair(int q, const VECTOR *x, VECTOR *y) {
  y[0] += q == 0 ? x[0] : q == 1 ? -x[1] : q == 2 ? -x[0] : x[1];
  y[1] += q == 0 ? x[1] : q == 1 ? x[0] : q == 2 ? -x[1] : -x[0];
}
INLINED void add_turned(int q, const VECTOR x[6], VECTOR y[6]) {
  add_turned_pair(q, x, y);
  add_turned_pair(q, x + 2, y + 2);
  add_turned_pair(q, x + 4, y + 4);
}
INLINED VECTOR plus_turned(VECTOR y, int q, VECTOR x) {
  const VECTOR turned = q % 2 ? times_i(x) : x;
  return q < 2 ? y + turned : y - turned;
}

/* g = a row of a link, u[real * LANES ..], times v. */
INLINED void multiply_row(const ARITH *u, const VECTOR v[6], VECTOR g[2]) {
  const VECTOR a[6] = {arith_at(u),
                       arith_at(u + LANES),
                       arith_at(u + 2 * LANES),
                       arith_at(u + 3 * LANES),
                       arith_at(u + 4 * LANES),
                       arith_at(u + 5 * LANES)};
  VECTOR re = {0}, im = {0};
  ADD_ROW(0, a, re, im);
  g[0] = re;
  g[1] = im;
}

/* v = the colour of a half spinor, of rows that are `stride` apart. */
INLINED void half_colour(const STORED *upper, const STORED *lower, int64_t stride, int q,
                         VECTOR v[2]) {
  const VECTOR w[2] = {LOAD(lower), LOAD(lower + stride)};
  v[0] = LOAD(upper);
  v[1] = LOAD(upper + stride);
  add_turned_pair(q, w, v);
}
/* sum += (1 -+ gamma_mu) u psi as far as spin k of the half spinor and what follows from it; psi is
 * read in such rows. */
INLINED void add_spin(const STORED *psi, int64_t stride, const ARITH *u, int k, int other, int q,
                      VECTOR sum[SPINOR]) {
  const STORED *upper = psi + 6 * k * stride, *lower = psi + 6 * other * stride;
  VECTOR v[6], g[6];
  half_colour(upper, lower, stride, q, v);
  half_colour(upper + 2 * stride, lower + 2 * stride, stride, q, v + 2);
  half_colour(upper + 4 * stride, lower + 4 * stride, stride, q, v + 4);
  multiply_row(u, v, g);
  multiply_row(u + 6 * LANES, v, g + 2);
  multiply_row(u + 12 * LANES, v, g + 4);
  add_turned(0, g, sum + 6 * k);
  add_turned((4 - q) % 4, g, sum + 6 * other);
}
INLINED void add_leg(const STORED *psi, int64_t stride, const ARITH *u, bool swap, int q_0, int q_1,
                     VECTOR sum[SPINOR]) {
  add_spin(psi, stride, u, 0, 2 + swap, q_0, sum);
  add_spin(psi, stride, u, 1, 3 - swap, q_1, sum);
}

/* The same of LANES reals of rows that are `row` apart. */
INLINED VECTOR row_times(const site_links u, int i, int d, const VECTOR v[3], const VECTOR w[3]) {
  VECTOR g = u[6 * i][d] * v[0];
  g += u[6 * i + 1][d] * w[0];
  g += u[6 * i + 2][d] * v[1];
  g += u[6 * i + 3][d] * w[1];
  g += u[6 * i + 4][d] * v[2];
  g += u[6 * i + 5][d] * w[2];
  return g;
}
INLINED VECTOR half_of(const STORED *upper, int q, const STORED *lower) {
  return plus_turned(LOAD(upper), q, LOAD(lower));
}
INLINED void add_colour(int q, VECTOR g, VECTOR *upper, VECTOR *lower) {
  *upper += g;
  *lower = plus_turned(*lower, (4 - q) % 4, g);
}
INLINED void add_spin_of_rows(const STORED *psi, int row, const site_links u, int d, int k,
                              int other, int q, VECTOR sum[HALF]) {
  const STORED *upper = psi + 3 * k * row, *lower = psi + 3 * other * row;
  const VECTOR v[3] = {half_of(upper, q, lower), half_of(upper + row, q, lower + row),
                       half_of(upper + 2 * row, q, lower + 2 * row)};
  const VECTOR w[3] = {times_i(v[0]), times_i(v[1]), times_i(v[2])};
  VECTOR *to = sum + 3 * k, *also = sum + 3 * other;
  add_colour(q, row_times(u, 0, d, v, w), to, also);
  add_colour(q, row_times(u, 1, d, v, w), to + 1, also + 1);
  add_colour(q, row_times(u, 2, d, v, w), to + 2, also + 2);
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
  for (int c = 0; c < SPINOR; c++) sum[c] = (ARITH)call->b * sum[c];
  if (!call->x) return;
  const STORED *x = (const STORED *)call->x + site + slice * SPINOR * call->x_stride;
#if SCALED
  VECTOR a = {0};
  for (int l = 0; l < count; l++) a[l] = (ARITH)call->a * call->x_scale[site + l];
#else
  const ARITH a = (ARITH)call->a;
#endif
  for (int c = 0; c < SPINOR; c++) sum[c] += a * load_part(x + c * call->x_stride, count);
}

/* room[c] = plane c at the neighbours of entry e, lane by lane. Not inlined, since few entries need
 * it and all legs would have a copy. */
static __attribute__((noinline)) void gather_spinors(const md_simd_plan *plan, int64_t e,
                                                     const STORED *in, int64_t stride,
                                                     STORED *room) {
  VECTOR v[MD_FERMION_REALS];
  for (int s = 0; s < SPINOR; s += MD_FERMION_REALS) {
    neighbours(plan, e, in + s * stride, stride, v);
    for (int c = 0; c < MD_FERMION_REALS; c++) STORE(room + (s + c) * LANES, v[c]);
  }
}

/* The neighbours of entry e in a slice: rows where they lie, or moved to `room`. */
INLINED const STORED *spinors_at(const md_simd_plan *plan, int64_t e, const STORED *in,
                                 int64_t *stride, STORED *room) {
  if (e % MD_DIMS >= MD_Z) fetch_neighbours(plan, e + TERMS, in, *stride, SPINOR);
  if (plan->pattern[e] == MD_SIMD_CONTIGUOUS) return in + plan->first[e];
  gather_spinors(plan, e, in, *stride, room);
  *stride = LANES;
  return room;
}

/* Whether results go past the caches: whole lines, one behind the other. */
INLINED bool spins_stream(const md_simd_call *call) {
  enum { BYTES = LANES * sizeof(STORED) };
  return call->stream && BYTES == MD_VECTOR_BYTES && (BYTES == 64 || !call->order);
}

INLINED void spins_of_block(const md_simd_call *call, int64_t block, int reals) {
  const md_simd_plan *plan = call->plan;
  const int64_t site = plan->site[block];
  const int count = call->sites - site < LANES ? (int)(call->sites - site) : LANES;
  ARITH room[TERMS * MD_LINK_REALS * LANES] __attribute__((aligned(64)));
  STORED moved[SPINOR * LANES] __attribute__((aligned(64)));
#if SCALED
  VECTOR waiting[MOST_WAITING];
#endif
  const ARITH *u = block_links(call, block, reals, room);
  for (int slice = 0; slice < call->slices; slice++) {
    const STORED *in = (const STORED *)call->in + slice * SPINOR * call->in_stride;
#if !SCALED
    STORED *out = (STORED *)call->out + site + slice * SPINOR * call->out_stride;
#endif
    VECTOR sum[SPINOR] = {{0}};
#define ADD_LEG(d, swap, q_0, q_1)                                                                 \
  stride = call->in_stride;                                                                        \
  psi = spinors_at(plan, block * TERMS + d, in, &stride, moved);                                   \
  add_leg(psi, stride, u + d * MD_LINK_REALS * LANES, swap, q_0, q_1, sum);
    int64_t stride;
    const STORED *psi;
    MD_EACH_HALF_SPINOR(ADD_LEG)
#undef ADD_LEG
    end_spinor(call, site, slice, count, sum);
#if SCALED
    memcpy(waiting + slice * SPINOR, sum, sizeof sum);
#else
    for (int c = 0; c < SPINOR; c++)
      store_part(out + c * call->out_stride, sum[c], count, spins_stream(call));
#endif
  }
#if SCALED
  STORED *out = (STORED *)call->out + site;
  rescale(call->slices * SPINOR, waiting, call->out_scale + site, count);
  for (int c = 0; c < call->slices * SPINOR; c++)
    store_part(out + c * call->out_stride, waiting[c], count, false);
#endif
}

INLINED void spins_one(const md_simd_call *call, int64_t begin, int64_t end, int reals) {
  for (int64_t k = begin; k < end; k++) {
    const int64_t block = call->order ? call->order[k] : k;
    fetch_plan(call->plan, block + MD_SIMD_AHEAD);
    spins_of_block(call, block, reals);
  }
  if (spins_stream(call)) md_stream_end();
}

/* The sums of a slice at a site, rows of `padded` reals. */
INLINED void sum_rows(const md_simd_call *call, int64_t block, int slice, const site_links u,
                      int padded, ARITH *sums) {
  const int row = 2 * call->n_rhs;
  for (int from = 0; from < row; from += LANES) {
    VECTOR sum[HALF] = {{0}};
#define ADD_LEG(d, swap, q_0, q_1)                                                                 \
  at = (int64_t)call->plan->first[block * TERMS + d] * call->slices + slice;                       \
  psi = (const STORED *)call->in + at * HALF * row + from;                                         \
  add_spin_of_rows(psi, row, u, d, 0, 2 + swap, q_0, sum);                                         \
  add_spin_of_rows(psi, row, u, d, 1, 3 - swap, q_1, sum);
    int64_t at;
    const STORED *psi;
    MD_EACH_HALF_SPINOR(ADD_LEG)
#undef ADD_LEG
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
