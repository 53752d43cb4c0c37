/* Many right-hand sides: one site at a time, vectors along the right-hand sides. Part of
 * hop.c. A product of complex u and v is taken as two real ones, re(u) * (vr, vi) and
 * im(u) * (vr, vi); the sums of both kinds are combined once per site, so that the loop over
 * directions holds no shuffle. */

#define MOST_REALS (2 * MD_MAX_RHS) /* of one colour */
/* Vectors of one colour taken together: 6 sums each must stay in registers. */
#if defined(__AVX512F__)
enum { MOST_VECTORS = 4 };
#else
enum { MOST_VECTORS = 2 };
#endif

/* Whether links are used as they are stored. */
#define AS_STORED(reals) (!SCALED && (reals) == MD_LINK_REALS && sizeof(STORED) == sizeof(ARITH))

/* The links of a site as [real][term] in the arithmetic type. */
typedef ARITH site_links[MD_LINK_REALS][TERMS];

/* Third rows of the links, all terms at once. */
static inline void third_rows(site_links u, const uint16_t sign[TERMS]) {
  for (int c = 0; c < 3; c++) {
    const int a = (c + 1) % 3 * 2, b = (c + 2) % 3 * 2;
    for (int d = 0; d < TERMS; d++) {
      const ARITH s = sign[d] ? -1 : 1;
      u[12 + 2 * c][d] = s * (u[a][d] * u[6 + b][d] - u[a + 1][d] * u[7 + b][d] -
                              u[b][d] * u[6 + a][d] + u[b + 1][d] * u[7 + a][d]);
      u[13 + 2 * c][d] = s * (u[b][d] * u[7 + a][d] + u[b + 1][d] * u[6 + a][d] -
                              u[a][d] * u[7 + b][d] - u[a + 1][d] * u[6 + b][d]);
    }
  }
}

/* Unpacks the links; the scale of a neighbour goes into its link. */
static inline void unpack(const md_simd_call *call, int64_t block, int reals, site_links u) {
  const int64_t e = block * TERMS;
  const STORED *links = (const STORED *)call->links + e * reals;
  for (int k = 0; k < TERMS * reals; k += LANES) {
    VECTOR v = LOAD(links + k);
#if defined LINK_UNIT && FIELDS == 1
    v *= LINK_UNIT;
#endif
    memcpy(&u[0][0] + k, &v, sizeof v);
  }
  if (reals != MD_LINK_REALS) third_rows(u, call->plan->sign + e);
#if SCALED
  float scale[TERMS];
  for (int d = 0; d < TERMS; d++) scale[d] = call->in_scale[call->plan->first[e + d]];
#if defined LINK_UNIT && FIELDS == 2
  for (int d = 0; d < TERMS; d++) scale[d] *= call->link_unit[d / MD_DIRECTIONS];
#endif
  for (int c = 0; c < MD_LINK_REALS; c++)
    for (int d = 0; d < TERMS; d++) u[c][d] *= scale[d];
#endif
}

/* Up to MOST_VECTORS neighbouring vectors of one colour, by name, so that sums of them stay in
 * registers (an array would live in memory). */
typedef struct strip {
  VECTOR a, b, c, d;
} strip;

static inline strip load_strip(const STORED *p, int vectors) {
  strip s = {{0}, {0}, {0}, {0}};
  s.a = LOAD(p);
  if (vectors > 1) s.b = LOAD(p + LANES);
  if (vectors > 2) s.c = LOAD(p + 2 * LANES);
  if (vectors > 3) s.d = LOAD(p + 3 * LANES);
  return s;
}
static inline void fetch_strip(const STORED *p, int vectors) {
  for (int k = 0; k < vectors; k++) __builtin_prefetch(p + k * LANES);
}

/* sum + u v */
static inline strip add_product(strip sum, ARITH u, strip v, int vectors) {
  sum.a += u * v.a;
  if (vectors > 1) sum.b += u * v.b;
  if (vectors > 2) sum.c += u * v.c;
  if (vectors > 3) sum.d += u * v.d;
  return sum;
}

/* i times (re, im) in turn: (-im, re). */
static inline VECTOR times_i(VECTOR v) {
  return NEGATE(SWAP(v), 0x5555u);
}

static inline void store_sum(ARITH *out, VECTOR re, VECTOR im) {
  const VECTOR both = re + times_i(im);
  memcpy(out, &both, sizeof both);
}
static inline void store_strip(ARITH *out, strip re, strip im, int vectors) {
  store_sum(out, re.a, im.a);
  if (vectors > 1) store_sum(out + LANES, re.b, im.b);
  if (vectors > 2) store_sum(out + 2 * LANES, re.c, im.c);
  if (vectors > 3) store_sum(out + 3 * LANES, re.d, im.d);
}

/* sum[colour][..] = over terms, link times neighbour, for `vectors` vectors from real `from`
 * of each colour. Lanes past a row hold what follows it (a field may be read behind its end). Each
 * load fetches the same of the next site, whose neighbours are too short a stream for the core. */
static inline void sum_part(const md_simd_call *call, int64_t block, const site_links u,
                            const char *ahead, int from, const int vectors, ARITH *sum) {
  const int row = 2 * call->n_rhs;
  const int32_t *neighbour = call->plan->first + block * TERMS;
  const STORED *in = (const STORED *)call->in + from;
  strip re0 = {{0}, {0}, {0}, {0}}, re1 = re0, re2 = re0, im0 = re0, im1 = re0, im2 = re0;
  for (int d = 0; d < TERMS; d++) {
    const STORED *site = in + (int64_t)neighbour[d] * 3 * row;
    const STORED *next = in + (int64_t)neighbour[d + TERMS] * 3 * row;
#pragma GCC unroll 3
    for (int c = 0; c < 3; c++) {
      const strip v = load_strip(site + c * row, vectors);
      fetch_strip(next + c * row, vectors);
      __builtin_prefetch(ahead + (d * 3 + c) * 64);
      re0 = add_product(re0, u[2 * c][d], v, vectors);
      im0 = add_product(im0, u[2 * c + 1][d], v, vectors);
      re1 = add_product(re1, u[6 + 2 * c][d], v, vectors);
      im1 = add_product(im1, u[7 + 2 * c][d], v, vectors);
      re2 = add_product(re2, u[12 + 2 * c][d], v, vectors);
      im2 = add_product(im2, u[13 + 2 * c][d], v, vectors);
    }
  }
  store_strip(sum + from, re0, im0, vectors);
  store_strip(sum + MOST_REALS + from, re1, im1, vectors);
  store_strip(sum + 2 * MOST_REALS + from, re2, im2, vectors);
}

static inline void sum_site(const md_simd_call *call, int64_t block, const site_links u,
                            const char *ahead, ARITH *sum) {
  const int row = 2 * call->n_rhs;
  for (int from = 0; from < row;) {
    const int left = (row - from + LANES - 1) / LANES;
    const int vectors = left < MOST_VECTORS ? left : MOST_VECTORS;
    switch (vectors) {
    case 1:
      sum_part(call, block, u, ahead, from, 1, sum);
      break;
#if defined(__AVX512F__)
    case 3:
      sum_part(call, block, u, ahead, from, 3, sum);
      break;
    case 4:
      sum_part(call, block, u, ahead, from, 4, sum);
      break;
#endif
    default:
      sum_part(call, block, u, ahead, from, 2, sum);
      break;
    }
    from += vectors * LANES;
  }
}

#if SCALED
/* Sets the scale of a site; returns its inverse. */
static inline ARITH rescale_site(int rows, int apart, int row, const ARITH *sum, float *scale) {
  uint32_t largest = 0, bits;
  for (int i = 0; i < rows; i++)
    for (int l = 0; l < row; l++) { /* bit patterns of |v| are ordered as the values are */
      memcpy(&bits, &sum[i * apart + l], sizeof bits);
      bits &= INT32_MAX;
      largest = bits > largest ? bits : largest;
    }
  *scale = SCALE_OF((md_lanes_int32){0} + (int32_t)largest)[0];
  return 1.0f / *scale;
}
#endif

/* sum = b sum + a x, for `rows` rows that are `apart`; x at its first, or
 * NULL. */
static inline void add_epilogue(const md_simd_call *call, ARITH a, const STORED *x, int rows,
                                int apart, ARITH *sum) {
  const int row = 2 * call->n_rhs;
  const ARITH b = (ARITH)call->b;
  for (int i = 0; i < rows; i++)
    for (int l = 0; l < row; l += LANES) {
      VECTOR s;
      memcpy(&s, sum + i * apart + l, sizeof s);
      s = b * s;
      if (x) s += a * LOAD(x + i * row + l);
      memcpy(sum + i * apart + l, &s, sizeof s);
    }
}

/* Epilogue, new scale, and rounding to the stored type of one of the parts of a site, `rows` rows;
 * all of it where it has a scale. */
static inline void finish_part(const md_simd_call *call, int64_t site, int parts, int part,
                               int rows, int apart, ARITH *sum) {
  const int row = 2 * call->n_rhs;
  const int64_t at = (site * parts + part) * rows * row;
  ARITH factor = 1, a = (ARITH)call->a;
#if SCALED
  if (call->x) a *= call->x_scale[site];
#endif
  add_epilogue(call, a, call->x ? (const STORED *)call->x + at : NULL, rows, apart, sum);
#if SCALED
  factor = rescale_site(rows, apart, row, sum, &call->out_scale[site]);
#endif
  const bool stream = call->stream && MD_VECTOR_BYTES == 64 &&
                      (size_t)row * sizeof(STORED) % 64 == 0; /* whole lines */
  STORED *out = (STORED *)call->out + at;
  for (int i = 0; i < rows; i++)
    for (int l = 0; l < row; l += LANES) {
      VECTOR s;
      memcpy(&s, sum + i * apart + l, sizeof s);
      s *= factor;
      if (row - l < LANES) {
        STORED lane[LANES];
        STORE(lane, s);
        for (int k = 0; k < row - l; k++) out[i * row + l + k] = lane[k];
      } else if (stream)
        STREAM(out + i * row + l, s);
      else
        STORE(out + i * row + l, s);
    }
}

static inline void many(const md_simd_call *call, int64_t begin, int64_t end, int reals) {
  const size_t bytes = (size_t)reals * TERMS * sizeof(STORED);
  ARITH sum[3 * MOST_REALS] __attribute__((aligned(64)));
  site_links u __attribute__((aligned(64)));
  for (int64_t k = begin; k < end; k++) {
    const int64_t block = call->order ? call->order[k] : k;
    const char *links = (const char *)call->links + (size_t)block * bytes,
               *ahead = links + 2 * bytes;
    if (AS_STORED(reals))
      sum_site(call, block, (const ARITH(*)[TERMS])(const void *)links, ahead, sum);
    else {
      unpack(call, block, reals, u);
      sum_site(call, block, (const ARITH(*)[TERMS])u, ahead, sum);
    }
    finish_part(call, call->plan->site[block], 1, 0, 3, MOST_REALS, sum);
  }
  if (call->stream) md_stream_end();
}
