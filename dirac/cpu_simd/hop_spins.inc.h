/* H of quarks with four spins: LANES sites at once, real and imaginary parts in vectors apart, or
 * with many right-hand sides rows of (re, im) at one site. Each neighbour is projected to half a
 * spinor (lattice/halo/half_spinor.h), which the link multiplies; the links of a block serve all
 * its slices. Part of hop.c. */

#include "dirac/wilson/wall_steps.inc.h"
#include "lattice/halo/half_spinor.h"

/* MOVES_LANES: picking lanes of two vectors costs one instruction. */
enum { SPINOR = 24, HALF = 12, LINE = 64, MOVES_LANES = MD_VECTOR_BYTES >= 32 };
typedef __typeof__(PICK((const int32_t *)0)) PICKS;

INLINED VECTOR arith_at(const ARITH *p) {
  VECTOR v;
  memcpy(&v, p, sizeof v);
  return v;
}

/* y += i^q x of one spin, with parts apart; y + i^q x in rows. */
INLINED void add_turned(int q, const VECTOR x[2], VECTOR y[2]) {
  y[0] += q == 0 ? x[0] : q == 1 ? -x[1] : q == 2 ? -x[0] : x[1];
  y[1] += q == 0 ? x[1] : q == 1 ? x[0] : q == 2 ? -x[1] : -x[0];
}
INLINED VECTOR plus_turned(VECTOR y, int q, VECTOR x) {
  const VECTOR turned = q % 2 ? times_i(x) : x;
  return q < 2 ? y + turned : y - turned;
}

/* The neighbours of a block in a slice: plane c at first + c * stride. Along x, where rows end
 * within blocks, lanes `pick` of vectors there and `second` further. */
typedef struct neighbour {
  const STORED *first;
  int64_t stride, second;
  const int32_t *pick;
} neighbour;

/* The same as addresses of the four spins and the distances of their planes. Instructions add such
 * distances, doubled or not, at no cost; left to itself gcc computes an address for each plane, in
 * a fifth of the time. */
typedef struct spins {
  const STORED *at[4];
  int64_t plane, three, five, second;
  PICKS pick;
  bool two; /* which the compiler must know */
} spins;
#define UNKNOWN(x) __asm__("" : "+r"(x))
INLINED spins spins_at(const STORED *first, int64_t stride, int planes) {
  spins psi = {.plane = stride};
  int64_t spin = planes * stride;
  psi.three = 3 * psi.plane;
  psi.five = 5 * psi.plane;
  UNKNOWN(psi.three);
  UNKNOWN(psi.five);
  UNKNOWN(spin);
  psi.at[0] = first;
  for (int k = 1; k < 4; k++) {
    psi.at[k] = psi.at[k - 1] + spin;
    UNKNOWN(psi.at[k]);
  }
  return psi;
}
INLINED const STORED *plane_at(const spins *psi, int spin, int c) {
  return psi->at[spin] + (c == 3 ? psi->three : c == 5 ? psi->five : c * psi->plane);
}
INLINED VECTOR plane(const spins *psi, int spin, int c) {
  const STORED *at = plane_at(psi, spin, c);
  return psi->two ? PERMUTE(LOAD(at), LOAD(at + psi->second), psi->pick) : LOAD(at);
}

/* h = spin k of a half spinor, psi_k + i^q psi_other. */
INLINED void half_spin(const spins *psi, int k, int other, int q, VECTOR h[6]) {
  for (int c = 0; c < 6; c += 2) {
    const VECTOR lower[2] = {plane(psi, other, c), plane(psi, other, c + 1)};
    h[c] = plane(psi, k, c);
    h[c + 1] = plane(psi, k, c + 1);
    add_turned(q, lower, h + c);
  }
}
/* g = a row of a link, u[real * LANES ..], times both spins of a half spinor. */
INLINED void multiply_row(const ARITH *u, const VECTOR h[2][6], VECTOR g[2][2]) {
  VECTOR re0 = {0}, im0 = {0}, re1 = {0}, im1 = {0};
  for (int c = 0; c < 6; c += 2) {
    const VECTOR re = arith_at(u + c * LANES), im = arith_at(u + (c + 1) * LANES);
    re0 += re * h[0][c];
    im0 += re * h[0][c + 1];
    re1 += re * h[1][c];
    im1 += re * h[1][c + 1];
    re0 -= im * h[0][c + 1];
    im0 += im * h[0][c];
    re1 -= im * h[1][c + 1];
    im1 += im * h[1][c];
  }
  g[0][0] = re0, g[0][1] = im0, g[1][0] = re1, g[1][1] = im1;
}
/* sum += (1 -+ gamma_mu) u psi; the first leg assigns. */
INLINED void add_leg(const neighbour *from, const ARITH *u, int d, bool swap, int q_0, int q_1,
                     VECTOR sum[SPINOR]) {
  spins psi = spins_at(from->first, from->stride, 6);
  if (MOVES_LANES && d % MD_DIMS == MD_X) {
    psi.two = true;
    psi.second = from->second;
    psi.pick = PICK(from->pick);
  }
  const int other[2] = {2 + swap, 3 - swap}, back[2] = {(4 - q_0) % 4, (4 - q_1) % 4};
  VECTOR h[2][6], g[2][2];
  half_spin(&psi, 0, other[0], q_0, h[0]);
  half_spin(&psi, 1, other[1], q_1, h[1]);
  for (int c = 0; c < 6; c += 2) {
    multiply_row(u + 3 * c * LANES, h, g);
    for (int k = 0; k < 2; k++) {
      VECTOR *upper = sum + 6 * k + c, *lower = sum + 6 * other[k] + c;
      if (d == 0) upper[0] = upper[1] = lower[0] = lower[1] = (VECTOR){0};
      add_turned(0, g[k], upper);
      add_turned(back[k], g[k], lower);
    }
  }
}

/* The same of LANES reals of the rows of a site, without loops: gcc keeps these sums in registers
 * only where it sees that before it unrolls any. */
typedef struct half_rows {
  VECTOR v[3], w[3]; /* colours of a spin of half a spinor, and i times them */
} half_rows;
INLINED half_rows half_rows_of(const spins *psi, int k, int other, int q) {
  half_rows h;
  h.v[0] = plus_turned(LOAD(plane_at(psi, k, 0)), q, LOAD(plane_at(psi, other, 0)));
  h.v[1] = plus_turned(LOAD(plane_at(psi, k, 1)), q, LOAD(plane_at(psi, other, 1)));
  h.v[2] = plus_turned(LOAD(plane_at(psi, k, 2)), q, LOAD(plane_at(psi, other, 2)));
  h.w[0] = times_i(h.v[0]);
  h.w[1] = times_i(h.v[1]);
  h.w[2] = times_i(h.v[2]);
  return h;
}
INLINED VECTOR row_times(const site_links u, int i, int d, const half_rows *h) {
  VECTOR g = u[6 * i][d] * h->v[0];
  g += u[6 * i + 1][d] * h->w[0];
  g += u[6 * i + 2][d] * h->v[1];
  g += u[6 * i + 3][d] * h->w[1];
  g += u[6 * i + 4][d] * h->v[2];
  g += u[6 * i + 5][d] * h->w[2];
  return g;
}
INLINED void add_colour(int q, VECTOR g, VECTOR *upper, VECTOR *lower) {
  *upper += g;
  *lower = plus_turned(*lower, (4 - q) % 4, g);
}
INLINED void add_leg_of_rows(const STORED *first, int64_t row, const site_links u, int d, bool swap,
                             int q_0, int q_1, VECTOR sum[HALF]) {
  const spins psi = spins_at(first, row, 3);
  const int other[2] = {2 + swap, 3 - swap};
  const half_rows h[2] = {half_rows_of(&psi, 0, other[0], q_0),
                          half_rows_of(&psi, 1, other[1], q_1)};
  VECTOR *to[2] = {sum + 3 * other[0], sum + 3 * other[1]};
  add_colour(q_0, row_times(u, 0, d, &h[0]), sum, to[0]);
  add_colour(q_1, row_times(u, 0, d, &h[1]), sum + 3, to[1]);
  add_colour(q_0, row_times(u, 1, d, &h[0]), sum + 1, to[0] + 1);
  add_colour(q_1, row_times(u, 1, d, &h[1]), sum + 4, to[1] + 1);
  add_colour(q_0, row_times(u, 2, d, &h[0]), sum + 2, to[0] + 2);
  add_colour(q_1, row_times(u, 2, d, &h[1]), sum + 5, to[1] + 2);
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

/* out = a x + b sum of a slice. */
INLINED void end_slice(const md_simd_call *call, int64_t site, int slice, int count, bool stream,
                       VECTOR sum[SPINOR]) {
  STORED *out = (STORED *)call->out + site + slice * SPINOR * call->out_stride;
  for (int c = 0; c < SPINOR; c++) sum[c] = (ARITH)call->b * sum[c];
  if (call->x) {
    const STORED *x = (const STORED *)call->x + site + slice * SPINOR * call->x_stride;
    for (int c = 0; c < SPINOR; c++)
      sum[c] += (ARITH)call->a * load_part(x + c * call->x_stride, count);
  }
  for (int c = 0; c < SPINOR; c++) store_part(out + c * call->out_stride, sum[c], count, stream);
}

/* The same of all slices at once, whose sums wait for a matrix or for the scales of their sites. */
static __attribute__((noinline)) void end_slices(const md_simd_call *call, const steps of[2],
                                                 int64_t site, int count, bool stream,
                                                 VECTOR *waiting) {
  const int slices = call->slices;
  VECTOR a = (VECTOR){0} + (ARITH)call->a;
#if SCALED
  if (call->x)
    for (int l = 0; l < count; l++) a[l] *= call->x_scale[site + l];
#endif
  for (int c = 0; c < SPINOR; c++) {
    VECTOR x[MD_MOST_SLICES], y[MD_MOST_SLICES], sum[MD_MOST_SLICES];
    for (int k = 0; k < slices; k++) sum[k] = (ARITH)call->b * waiting[k * SPINOR + c];
    for (int k = 0; call->x && k < slices; k++)
      x[k] =
          a * load_part((const STORED *)call->x + site + (k * SPINOR + c) * call->x_stride, count);
    const VECTOR *from = call->x ? x : sum;
    if (call->matrix) {
      apply_steps(&of[c >= HALF], from, y);
      from = y;
    }
    for (int k = 0; k < slices; k++) waiting[k * SPINOR + c] = call->x ? sum[k] + from[k] : from[k];
  }
#if SCALED
  rescale(slices * SPINOR, waiting, call->out_scale + site, count);
#endif
  STORED *out = (STORED *)call->out + site;
  for (int c = 0; c < slices * SPINOR; c++)
    store_part(out + c * call->out_stride, waiting[c], count, stream);
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

/* Finds all neighbours of a block in a slice: where they lie, or moved to `room`. */
INLINED void find_neighbours(const md_simd_plan *plan, int64_t block, const STORED *in,
                             int64_t stride, STORED *room, neighbour all[TERMS]) {
  for (int d = 0; d < TERMS; d++, room += SPINOR * LANES) {
    const int64_t e = block * TERMS + d;
    const int pattern = plan->pattern[e];
    all[d] = (neighbour){in + plan->first[e], stride, 0, plan->pick};
    if (pattern == MD_SIMD_CONTIGUOUS) continue;
    if (MOVES_LANES && d % MD_DIMS == MD_X && pattern != MD_SIMD_GATHER) {
      all[d].second = plan->second[e] - plan->first[e];
      all[d].pick = plan->pick + pattern * LANES;
    } else {
      gather_spinors(plan, e, in, stride, room);
      all[d] = (neighbour){room, LANES, 0, plan->pick};
    }
  }
}

/* Asks L2 for the planes of a slice at `first`, or for the right to write them. */
INLINED void fetch_spinors(const STORED *first, int64_t stride, bool write) {
  const spins psi = spins_at(first, stride, 6);
  for (int k = 0; k < 4; k++)
    for (int c = 0; c < 6; c++)
      if (write)
        __builtin_prefetch(plane_at(&psi, k, c), 1);
      else
        __builtin_prefetch(plane_at(&psi, k, c), 0, 2);
}

/* turn: 2 of H^dag, else 0; added to the powers of i. */
INLINED void spins_of_block(const md_simd_call *call, const steps of[2], int64_t block, int reals,
                            int turn) {
  const md_simd_plan *plan = call->plan;
  const int64_t site = plan->site[block];
  const int count = call->sites - site < LANES ? (int)(call->sites - site) : LANES;
  const bool stream = streams(call), wait = SCALED || call->matrix;
  ARITH room[TERMS * MD_LINK_REALS * LANES] __attribute__((aligned(64)));
  STORED moved[TERMS * SPINOR * LANES] __attribute__((aligned(64)));
  VECTOR waiting[MD_MAX_COMPONENTS];
  const ARITH *u = block_links(call, block, reals, room);
  /* The links of the next block are asked for in equal parts, two in a slice. */
  const int64_t link_bytes = (int64_t)TERMS * reals * LANES * (int64_t)sizeof(STORED);
  const char *next = (const char *)call->links + (block + 1) * link_bytes;
  const int lines = (int)(link_bytes / LINE / (2 * call->slices));
  for (int slice = 0; slice < call->slices; slice++) {
    const STORED *in = (const STORED *)call->in + slice * SPINOR * call->in_stride;
    neighbour from[TERMS];
    VECTOR sum[SPINOR];
    find_neighbours(plan, block, in, call->in_stride, moved, from);
    const int64_t first = slice * SPINOR;
    if (call->x)
      fetch_spinors((const STORED *)call->x + site + first * call->x_stride, call->x_stride, false);
    if (!stream)
      fetch_spinors((const STORED *)call->out + site + first * call->out_stride, call->out_stride,
                    true);
#define ADD_LEG(d, swap, q_0, q_1)                                                                 \
  if (d % MD_DIMS == 0)                                                                            \
    for (int k = 0; k < lines; k++, next += LINE) __builtin_prefetch(next, 0, 2);                  \
  if (d % MD_DIMS >= MD_Z)                                                                         \
    fetch_spinors(in + plan->first[(block + 1) * TERMS + d], call->in_stride, false);              \
  add_leg(&from[d], u + d * MD_LINK_REALS * LANES, d, swap, q_0 ^ turn, q_1 ^ turn, sum);
    MD_EACH_HALF_SPINOR(ADD_LEG)
#undef ADD_LEG
    if (wait)
      memcpy(waiting + slice * SPINOR, sum, sizeof sum);
    else
      end_slice(call, site, slice, count, stream, sum);
  }
  if (wait) end_slices(call, of, site, count, stream, waiting);
}

INLINED void spins_of_range(const md_simd_call *call, const steps of[2], int64_t begin, int64_t end,
                            int reals, int turn) {
  for (int64_t k = begin; k < end; k++) {
    const int64_t block = call->order ? call->order[k] : k;
    fetch_plan(call->plan, block + MD_SIMD_AHEAD);
    spins_of_block(call, of, block, reals, turn);
  }
}

INLINED void spins_one(const md_simd_call *call, int64_t begin, int64_t end, int reals) {
  const md_wall_way way = {.adjoint = call->adjoint, .factor = 1.0};
  steps of[2] = {{0}};
  for (int lower = 0; call->matrix && lower < 2; lower++)
    of[lower] = steps_of(call->matrix, &way, call->slices, lower);
  if (call->adjoint)
    spins_of_range(call, of, begin, end, reals, 2);
  else
    spins_of_range(call, of, begin, end, reals, 0);
  if (streams(call)) md_stream_end();
}

/* Asks L2 for as much of a site at `first` as LANES reals of each of its rows. */
INLINED void fetch_rows(const STORED *first) {
  for (int k = 0; k < HALF * LANES * (int)sizeof(STORED); k += LINE)
    __builtin_prefetch((const char *)first + k, 0, 2);
}

/* The sums of a slice at a site, rows of `padded` reals. */
INLINED void sum_rows(const md_simd_call *call, int64_t block, int slice, const site_links u,
                      int padded, int turn, ARITH *sums) {
  const int row = 2 * call->n_rhs;
  const STORED *const in = (const STORED *)call->in + (int64_t)slice * HALF * row;
  const int64_t apart = (int64_t)call->slices * HALF * row;
  const int32_t *at = call->plan->first + block * TERMS;
  for (int from = 0; from < row; from += LANES) {
    VECTOR sum[HALF] = {{0}};
    UNKNOWN(u);
#define ADD_LEG(d, swap, q_0, q_1)                                                                 \
  fetch_rows(in + at[d + TERMS] * apart + HALF * from);                                            \
  add_leg_of_rows(in + at[d] * apart + from, row, u, d, swap, q_0 ^ turn, q_1 ^ turn, sum);
    MD_EACH_HALF_SPINOR(ADD_LEG)
#undef ADD_LEG
    for (int c = 0; c < HALF; c++) memcpy(sums + c * padded + from, &sum[c], sizeof sum[c]);
  }
}

INLINED void spins_many_by(const md_simd_call *call, int64_t begin, int64_t end, int reals,
                           int turn) {
  const int padded = (2 * call->n_rhs + LANES - 1) / LANES * LANES;
  ARITH sums[(SCALED ? MD_MAX_COMPONENTS : SPINOR) / 2 * MOST_REALS] __attribute__((aligned(64)));
  site_links room __attribute__((aligned(64)));
  for (int64_t k = begin; k < end; k++) {
    const int64_t block = call->order ? call->order[k] : k, site = call->plan->site[block];
    const STORED *links = (const STORED *)call->links + block * TERMS * reals;
    const ARITH(*u)[TERMS] = (const ARITH(*)[TERMS])(const void *)links;
    for (int b = 0; b < TERMS * reals * (int)sizeof(STORED); b += LINE)
      __builtin_prefetch((const char *)(links + 2 * TERMS * reals) + b, 0, 2);
    if (!AS_STORED(reals)) {
      unpack(call, block, reals, room);
      u = (const ARITH(*)[TERMS])room;
    }
    for (int slice = 0; slice < call->slices; slice++) {
      sum_rows(call, block, slice, u, padded, turn, sums + (SCALED ? slice * HALF * padded : 0));
      if (!SCALED) finish_part(call, site, call->slices, slice, HALF, padded, sums);
    }
    if (SCALED) finish_part(call, site, 1, 0, call->slices * HALF, padded, sums);
  }
  if (call->stream) md_stream_end();
}

INLINED void spins_many(const md_simd_call *call, int64_t begin, int64_t end, int reals) {
  if (call->adjoint)
    spins_many_by(call, begin, end, reals, 2);
  else
    spins_many_by(call, begin, end, reals, 0);
}
