/* One right-hand side: LANES consecutive sites at once. Part of hop.c. */

/* v[c] = lane by lane plane c at the neighbours of entry e. */
static inline void neighbours(const md_simd_plan *plan, int64_t e, const STORED *in, int64_t stride,
                              VECTOR v[MD_FERMION_REALS]) {
  const int pattern = plan->pattern[e];
  if (pattern == MD_SIMD_CONTIGUOUS) {
    for (int c = 0; c < MD_FERMION_REALS; c++) v[c] = LOAD(in + plan->first[e] + c * stride);
  } else if (pattern != MD_SIMD_GATHER) {
    const STORED *first = in + plan->first[e], *second = in + plan->second[e];
    for (int c = 0; c < MD_FERMION_REALS; c++)
      v[c] = PERMUTE(LOAD(first + c * stride), LOAD(second + c * stride),
                     PICK(plan->pick + pattern * LANES));
  } else {
    const int32_t *index = plan->gather + (int64_t)plan->first[e] * LANES;
    for (int c = 0; c < MD_FERMION_REALS; c++) {
      STORED lane[LANES];
      for (int l = 0; l < LANES; l++) lane[l] = in[c * stride + index[l]];
      v[c] = LOAD(lane);
    }
  }
}

#if SCALED
/* The scales of the same neighbours. */
static inline VECTOR neighbour_scales(const md_simd_plan *plan, int64_t e, const float *scale) {
  const int pattern = plan->pattern[e];
  if (pattern == MD_SIMD_CONTIGUOUS) return md_load_single(scale + plan->first[e]);
  if (pattern != MD_SIMD_GATHER)
    return PERMUTE(md_load_single(scale + plan->first[e]), md_load_single(scale + plan->second[e]),
                   PICK(plan->pick + pattern * LANES));
  const int32_t *index = plan->gather + (int64_t)plan->first[e] * LANES;
  float lane[LANES];
  for (int l = 0; l < LANES; l++) lane[l] = scale[index[l]];
  return md_load_single(lane);
}

/* Divides the values by a new scale, stores the scale of the first `count` lanes. */
static inline void rescale(int planes, VECTOR *v, float *scale, int count) {
  md_lanes_int32 largest = {0}; /* bit patterns of |v| are ordered as the values are */
  for (int c = 0; c < planes; c++) {
    const md_lanes_int32 bits = (md_lanes_int32)v[c] & INT32_MAX;
    largest = md_lanes_larger(bits, largest);
  }
  const VECTOR chosen = SCALE_OF(largest), inverse = 1.0f / chosen;
  for (int c = 0; c < planes; c++) v[c] *= inverse;
  if (count == LANES)
    md_store_single(scale, chosen);
  else
    for (int l = 0; l < count; l++) scale[l] = chosen[l];
}
#endif

/* Row k of a link times v, added to the real and imaginary sums of that colour. */
#define ADD_ROW(k, u, re, im)                                                                      \
  re += (u)[0] * v[0];                                                                             \
  im += (u)[0] * v[1];                                                                             \
  re -= (u)[1] * v[1];                                                                             \
  im += (u)[1] * v[0];                                                                             \
  re += (u)[2] * v[2];                                                                             \
  im += (u)[2] * v[3];                                                                             \
  re -= (u)[3] * v[3];                                                                             \
  im += (u)[3] * v[2];                                                                             \
  re += (u)[4] * v[4];                                                                             \
  im += (u)[4] * v[5];                                                                             \
  re -= (u)[5] * v[5];                                                                             \
  im += (u)[5] * v[4]

/* Functions of which there is a copy for each pair of `reals` and `fetch`: left to itself gcc
 * makes fewer and asks at every load. */
#define INLINED __attribute__((always_inline)) static inline

/* Asks for the line of links at p; where it is to go must be known to the compiler. */
INLINED void fetch_links(const char *p, md_simd_fetch fetch) {
  if (fetch == MD_SIMD_FETCH_ONCE)
    __builtin_prefetch(p, 0, 0);
  else if (fetch == MD_SIMD_FETCH_L2)
    __builtin_prefetch(p, 0, 2);
  else
    __builtin_prefetch(p, 0, 3);
}

/* Asks L2 for the neighbours of entry e. */
INLINED void fetch_neighbours(const md_simd_plan *plan, int64_t e, const STORED *in, int64_t stride,
                              int planes) {
  for (int c = 0; c < planes; c++) __builtin_prefetch(in + plan->first[e] + c * stride, 0, 2);
}

/* Each load fetches the line `ahead` bytes further in the stream of links. The loads themselves are
 * as the compiler orders them, mostly parts of the arithmetic that comes later; the fetches ask for
 * the lines one after the other, which is what the prefetcher of the core follows, so that they pay
 * even where `ahead` is one line behind. Where a line is loaded in parts, one fetch is enough for
 * 12 reals, which arithmetic binds; with 18 reals from memory one for each part is faster. */
INLINED void load_row(const STORED *links, int reals, int ahead, md_simd_fetch fetch, VECTOR u[6]) {
  enum { BYTES = LANES * sizeof(STORED), LINE = 64 };
  for (int c = 0; c < 6; c++) {
    u[c] = LOAD(links + c * LANES);
#if defined LINK_UNIT && FIELDS == 1
    u[c] *= LINK_UNIT;
#endif
    if (reals == MD_LINK_REALS || c * BYTES % LINE < BYTES)
      fetch_links((const char *)(links + c * LANES) + ahead, fetch);
  }
}

/* w = conj(u x v), the third row of a matrix of SU(3) from the first two. */
static inline void third_row(const VECTOR u[6], const VECTOR v[6], unsigned sign, VECTOR w[6]) {
  for (int c = 0; c < 3; c++) {
    const int a = (c + 1) % 3 * 2, b = (c + 2) % 3 * 2;
    const VECTOR re = u[a] * v[b] - u[a + 1] * v[b + 1] - u[b] * v[a] + u[b + 1] * v[a + 1];
    const VECTOR im = u[b] * v[a + 1] + u[b + 1] * v[a] - u[a] * v[b + 1] - u[a + 1] * v[b];
    w[2 * c] = NEGATE(re, sign);
    w[2 * c + 1] = NEGATE(im, sign);
  }
}

/* sum = over terms, link times neighbour. Where links are fetched for one use, neighbours along z
 * and t, which other planes and slices have driven from the near caches, are asked for a block
 * ahead, a direction at a time: all at once they disturb what fetches the links. With 12 reals,
 * which arithmetic binds, that takes more than it gives. */
INLINED void sum_block(const md_simd_call *call, int64_t block, int reals, md_simd_fetch fetch,
                       VECTOR sum[6]) {
  const md_simd_plan *plan = call->plan;
  const STORED *links = (const STORED *)call->links + block * TERMS * reals * LANES;
  VECTOR re0 = {0}, im0 = {0}, re1 = {0}, im1 = {0}, re2 = {0}, im2 = {0};
  for (int d = 0; d < TERMS; d++, links += reals * LANES) {
    const int64_t e = block * TERMS + d;
    VECTOR v[6], a[6], b[6], c[6];
    if (fetch == MD_SIMD_FETCH_ONCE && reals == MD_LINK_REALS && d % MD_DIMS >= MD_Z)
      fetch_neighbours(plan, e + TERMS, (const STORED *)call->in, call->in_stride, 6);
    neighbours(plan, e, call->in, call->in_stride, v);
#if SCALED
    VECTOR scale = neighbour_scales(plan, e, call->in_scale);
#if defined LINK_UNIT && FIELDS == 2
    scale *= call->link_unit[d / MD_DIRECTIONS];
#endif
    for (int k = 0; k < 6; k++) v[k] *= scale;
#endif
    load_row(links, reals, call->ahead, fetch, a);
    load_row(links + 6 * LANES, reals, call->ahead, fetch, b);
    if (reals == MD_LINK_REALS)
      load_row(links + 12 * LANES, reals, call->ahead, fetch, c);
    else
      third_row(a, b, plan->sign[e], c);
    ADD_ROW(0, a, re0, im0);
    ADD_ROW(1, b, re1, im1);
    ADD_ROW(2, c, re2, im2);
  }
  sum[0] = re0, sum[1] = im0, sum[2] = re1, sum[3] = im1, sum[4] = re2, sum[5] = im2;
}

/* The plan is read a little at a time, too seldom for the hardware to see that it is a stream. */
static inline void fetch_plan(const md_simd_plan *plan, int64_t block) {
  __builtin_prefetch(plan->site + block);
  __builtin_prefetch(plan->first + block * TERMS);
  __builtin_prefetch(plan->second + block * TERMS);
  __builtin_prefetch(plan->pattern + block * TERMS);
}

/* Asks for the right to write results some blocks after `site`: each store of a line that another
 * core has read would wait for it, one after another (Intel; a Zen 4 lost a tenth by asking). */
INLINED void fetch_results(const md_simd_call *call, int64_t site) {
  enum { BLOCKS = 4 };
  const STORED *out = (const STORED *)call->out + site + BLOCKS * LANES;
  for (int c = 0; c < MD_FERMION_REALS; c++) __builtin_prefetch(out + c * call->out_stride, 1);
}

/* Whether results go past the caches: whole lines, or halves where the next block brings the
 * other. */
INLINED bool streams(const md_simd_call *call) {
  enum { BYTES = LANES * sizeof(STORED) };
  return call->stream && BYTES == MD_VECTOR_BYTES && (BYTES == 64 || !call->order);
}

INLINED void one_by(const md_simd_call *call, int64_t begin, int64_t end, int reals,
                    md_simd_fetch fetch) {
  const ARITH a = (ARITH)call->a, b = (ARITH)call->b;
  const bool stream = streams(call);
  const md_simd_plan *plan = call->plan;
  for (int64_t k = begin; k < end; k++) {
    const int64_t block = call->order ? call->order[k] : k, site = plan->site[block];
    fetch_plan(plan, block + MD_SIMD_AHEAD);
    const int count = call->sites - site < LANES ? (int)(call->sites - site) : LANES;
    if (!stream && fetch == MD_SIMD_FETCH_L2) fetch_results(call, site);
    VECTOR sum[6];
    sum_block(call, block, reals, fetch, sum);
    for (int c = 0; c < 6; c++) sum[c] = b * sum[c];
    if (call->x) {
      const STORED *x = (const STORED *)call->x + site;
#if SCALED
      VECTOR scale = {0};
      for (int l = 0; l < count; l++) scale[l] = call->x_scale[site + l];
      scale = a * scale;
#else
      const ARITH scale = a;
#endif
      for (int c = 0; c < 6; c++) sum[c] += scale * load_part(x + c * call->x_stride, count);
    }
#if SCALED
    rescale(6, sum, call->out_scale + site, count);
#endif
    for (int c = 0; c < 6; c++)
      store_part((STORED *)call->out + site + c * call->out_stride, sum[c], count, stream);
  }
  if (stream) md_stream_end();
}

INLINED void one(const md_simd_call *call, int64_t begin, int64_t end, int reals) {
  if (call->fetch == MD_SIMD_FETCH_ONCE)
    one_by(call, begin, end, reals, MD_SIMD_FETCH_ONCE);
  else if (call->fetch == MD_SIMD_FETCH_L2)
    one_by(call, begin, end, reals, MD_SIMD_FETCH_L2);
  else
    one_by(call, begin, end, reals, MD_SIMD_FETCH_L1);
}
