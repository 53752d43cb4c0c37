/* Many right-hand sides: one site at a time, vectors along the right-hand sides. Part of
 * hop.inc.h. A product of complex u and v is taken as two real ones, re(u) * (vr, vi) and
 * im(u) * (vr, vi); the sums of both kinds are combined once per site, so that the loop over
 * directions holds no shuffle. */

#define MOST_REALS (2 * MD_MAX_RHS) /* of one colour */
/* Vectors of one colour taken together: 6 sums each must stay in registers. */
#if defined(__AVX512F__)
enum { MOST_VECTORS = 4 };
#else
enum { MOST_VECTORS = 2 };
#endif

/* The eight links of a site as [real][direction] in the arithmetic type. */
typedef ARITH site_links[MD_LINK_REALS][MD_DIRECTIONS];

/* Third rows of the eight links, all directions at once. */
static inline void third_rows(site_links u, const uint16_t sign[MD_DIRECTIONS]) {
  for (int c = 0; c < 3; c++) {
    const int a = (c + 1) % 3 * 2, b = (c + 2) % 3 * 2;
    for (int d = 0; d < MD_DIRECTIONS; d++) {
      const ARITH s = sign[d] ? -1 : 1;
      u[12 + 2 * c][d] = s * (u[a][d] * u[6 + b][d] - u[a + 1][d] * u[7 + b][d] -
                              u[b][d] * u[6 + a][d] + u[b + 1][d] * u[7 + a][d]);
      u[13 + 2 * c][d] = s * (u[b][d] * u[7 + a][d] + u[b + 1][d] * u[6 + a][d] -
                              u[a][d] * u[7 + b][d] - u[a + 1][d] * u[6 + b][d]);
    }
  }
}

/* Unpacks the links; the scale of a half neighbour goes into its link. */
static inline void unpack(const md_simd_call *call, int64_t block, int reals, site_links u) {
  const int64_t e = block * MD_DIRECTIONS;
  const STORED *links = (const STORED *)call->links + e * reals;
  for (int k = 0; k < MD_DIRECTIONS * reals; k += LANES) {
    const VECTOR v = LOAD(links + k);
    memcpy(&u[0][0] + k, &v, sizeof v);
  }
  if (reals != MD_LINK_REALS) third_rows(u, call->plan->sign + e);
#if SCALED
  float scale[MD_DIRECTIONS];
  for (int d = 0; d < MD_DIRECTIONS; d++) scale[d] = call->in_scale[call->plan->first[e + d]];
  for (int c = 0; c < MD_LINK_REALS; c++)
    for (int d = 0; d < MD_DIRECTIONS; d++) u[c][d] *= scale[d];
#endif
}

/* The first `count` of LANES values; the others are zero. */
static inline VECTOR load_some(const STORED *p, int count) {
  STORED lane[LANES] = {0};
  if (count == LANES) return LOAD(p);
  for (int l = 0; l < count; l++) lane[l] = p[l];
  return LOAD(lane);
}

/* sum[colour][..] = over directions, link times neighbour, for `vectors` vectors from real `from`
 * of each colour, of which the last holds `count` values. */
static inline void sum_part(const md_simd_call *call, int64_t block, const site_links u, int from,
                            const int vectors, int count, ARITH *sum) {
  const int row = 2 * call->n_rhs;
  VECTOR re[3][MOST_VECTORS], im[3][MOST_VECTORS];
#pragma GCC unroll 3
  for (int i = 0; i < 3; i++)
#pragma GCC unroll 4
    for (int j = 0; j < vectors; j++) re[i][j] = im[i][j] = (VECTOR){0};
  for (int d = 0; d < MD_DIRECTIONS; d++) {
    const int64_t neighbour = call->plan->first[block * MD_DIRECTIONS + d];
    const STORED *in = (const STORED *)call->in + neighbour * 3 * row + from;
#pragma GCC unroll 3
    for (int c = 0; c < 3; c++) {
      VECTOR v[MOST_VECTORS];
#pragma GCC unroll 4
      for (int j = 0; j < vectors; j++)
        v[j] = j + 1 < vectors ? LOAD(in + c * row + j * LANES)
                               : load_some(in + c * row + j * LANES, count);
#pragma GCC unroll 3
      for (int i = 0; i < 3; i++) {
        const ARITH ur = u[(i * 3 + c) * 2][d], ui = u[(i * 3 + c) * 2 + 1][d];
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++) {
          re[i][j] += ur * v[j];
          im[i][j] += ui * v[j];
        }
      }
    }
  }
  int32_t swap[LANES];
  for (int l = 0; l < LANES; l++) swap[l] = l ^ 1;
#pragma GCC unroll 3
  for (int i = 0; i < 3; i++)
#pragma GCC unroll 4
    for (int j = 0; j < vectors; j++) { /* (a, b) + i (c, d) = (a - d, b + c) */
      const VECTOR turned = NEGATE(PERMUTE(im[i][j], im[i][j], PICK(swap)), 0x5555u);
      const VECTOR both = re[i][j] + turned;
      memcpy(sum + i * MOST_REALS + from + j * LANES, &both, sizeof both);
    }
}

static inline void sum_site(const md_simd_call *call, int64_t block, const site_links u,
                            ARITH *sum) {
  const int row = 2 * call->n_rhs;
  for (int from = 0; from < row;) {
    const int left = (row - from + LANES - 1) / LANES;
    const int vectors = left < MOST_VECTORS ? left : MOST_VECTORS;
    const int rest = row - from - (vectors - 1) * LANES, count = rest < LANES ? rest : LANES;
    switch (vectors) {
    case 1:
      sum_part(call, block, u, from, 1, count, sum);
      break;
#if defined(__AVX512F__)
    case 3:
      sum_part(call, block, u, from, 3, count, sum);
      break;
    case 4:
      sum_part(call, block, u, from, 4, count, sum);
      break;
#endif
    default:
      sum_part(call, block, u, from, 2, count, sum);
      break;
    }
    from += vectors * LANES;
  }
}

/* Epilogue, new scale, and rounding to the stored type. */
static inline void finish_site(const md_simd_call *call, int64_t site, ARITH *sum) {
  const int row = 2 * call->n_rhs;
  const ARITH b = (ARITH)call->b;
  for (int i = 0; i < 3; i++)
    for (int l = 0; l < row; l++) sum[i * MOST_REALS + l] *= b;
  if (call->x) {
    ARITH a = (ARITH)call->a;
#if SCALED
    a *= call->x_scale[site];
#endif
    const STORED *x = (const STORED *)call->x + site * 3 * row;
    for (int i = 0; i < 3; i++)
      for (int l = 0; l < row; l += LANES) {
        const int count = row - l < LANES ? row - l : LANES;
        VECTOR s;
        memcpy(&s, sum + i * MOST_REALS + l, sizeof s);
        s += a * load_some(x + i * row + l, count);
        memcpy(sum + i * MOST_REALS + l, &s, sizeof s);
      }
  }
  ARITH factor = 1;
#if SCALED
  uint32_t largest = 0;
  for (int i = 0; i < 3; i++)
    for (int l = 0; l < row; l++) {
      uint32_t bits;
      memcpy(&bits, &sum[i * MOST_REALS + l], sizeof bits);
      bits &= INT32_MAX;
      largest = bits > largest ? bits : largest;
    }
  const uint32_t scale = md_scale_bits(largest), inverse = (254u << 23) - scale;
  memcpy(&call->out_scale[site], &scale, sizeof scale);
  memcpy(&factor, &inverse, sizeof inverse);
#endif
  const bool stream = call->stream && (size_t)row * sizeof(STORED) % 64 == 0; /* whole lines */
  STORED *out = (STORED *)call->out + site * 3 * row;
  for (int i = 0; i < 3; i++)
    for (int l = 0; l < row; l += LANES) {
      const int count = row - l < LANES ? row - l : LANES;
      VECTOR s;
      memcpy(&s, sum + i * MOST_REALS + l, sizeof s);
      s *= factor;
      if (count == LANES) {
        if (stream)
          STREAM(out + i * row + l, s);
        else
          STORE(out + i * row + l, s);
        continue;
      }
      STORED lane[LANES];
      STORE(lane, s);
      for (int k = 0; k < count; k++) out[i * row + l + k] = lane[k];
    }
}

static inline void many(const md_simd_call *call, int64_t begin, int64_t end, int reals) {
  ARITH sum[3 * MOST_REALS] __attribute__((aligned(64)));
  site_links u __attribute__((aligned(64)));
  for (int64_t k = begin; k < end; k++) {
    const int64_t block = call->order ? call->order[k] : k;
    unpack(call, block, reals, u);
    sum_site(call, block, u, sum);
    finish_site(call, call->plan->site[block], sum);
  }
  if (call->stream) md_stream_end();
}

static void many_18(const md_simd_call *call, int64_t begin, int64_t end) {
  many(call, begin, end, MD_LINK_REALS);
}
static void many_12(const md_simd_call *call, int64_t begin, int64_t end) {
  many(call, begin, end, MD_LINK_12_REALS);
}
