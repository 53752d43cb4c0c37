/* H of quarks with four spins, slice by slice: LANES sites at once, or with many right-hand sides
 * LANES of them at one site, real and imaginary parts in vectors apart. Each neighbour is projected
 * to half a spinor, which the link multiplies. Part of hop.c. */

enum { SPINOR = 24, HALF = 12 };

/* y += i^q x of one spin. */
INLINED void add_turned(int q, const VECTOR x[6], VECTOR y[6]) {
  for (int c = 0; c < 6; c += 2) {
    const VECTOR re = q == 0 ? x[c] : q == 1 ? -x[c + 1] : q == 2 ? -x[c] : x[c + 1];
    const VECTOR im = q == 0 ? x[c + 1] : q == 1 ? x[c] : q == 2 ? -x[c + 1] : -x[c];
    y[c] += re;
    y[c + 1] += im;
  }
}

/* sum += (1 -+ gamma_mu) u psi. With q the powers of i in -+ S_mu, row by row (dirac/wilson:
 * gamma_mu = [[0, S], [S^dag, 0]]), which has its entries beside the diagonal where `swap`: the
 * upper spins of the projection are h_k = psi_k + i^q_k psi_(2 + k ^ swap), the lower ones follow
 * from h. */
INLINED void add_leg(const VECTOR psi[SPINOR], const VECTOR u[MD_LINK_REALS], int swap, int q0,
                     int q1, VECTOR sum[SPINOR]) {
  const int q[2] = {q0, q1};
  for (int k = 0; k < 2; k++) {
    VECTOR v[6], g[6];
    for (int c = 0; c < 6; c++) v[c] = psi[6 * k + c];
    add_turned(q[k], psi + HALF + 6 * (k ^ swap), v);
    for (int row = 0; row < 3; row++) {
      VECTOR re = {0}, im = {0};
      ADD_ROW(row, u + 6 * row, re, im);
      g[2 * row] = re;
      g[2 * row + 1] = im;
    }
    add_turned(0, g, sum + 6 * k);
    add_turned((4 - q[k]) % 4, g, sum + HALF + 6 * (k ^ swap));
  }
}

/* The link of a term of a block, LANES sites or one. */
INLINED void load_link(const md_simd_call *call, int64_t block, int d, int reals, bool many,
                       VECTOR u[MD_LINK_REALS]) {
  const STORED *links = (const STORED *)call->links;
  for (int c = 0; c < reals; c++)
    if (many)
      u[c] = (VECTOR){0} + (ARITH)links[(block * reals + c) * TERMS + d];
    else
      u[c] = LOAD(links + ((block * TERMS + d) * reals + c) * LANES);
  if (reals != MD_LINK_REALS)
    third_row(u, u + 6,
              many && call->plan->sign[block * TERMS + d] ? ~0u
                                                          : call->plan->sign[block * TERMS + d],
              u + 12);
}

/* `count` pairs (re, im) that follow each other, apart. */
INLINED void load_pairs(const STORED *p, int count, VECTOR *re, VECTOR *im) {
  STORED lane[2 * LANES] = {0};
  int32_t even[LANES], odd[LANES];
  for (int l = 0; l < LANES; l++) odd[l] = 1 + (even[l] = 2 * l);
  if (count < LANES) {
    memcpy(lane, p, 2 * (size_t)count * sizeof *p);
    p = lane;
  }
  const VECTOR a = LOAD(p), b = LOAD(p + LANES);
  *re = PERMUTE(a, b, PICK(even));
  *im = PERMUTE(a, b, PICK(odd));
}
INLINED void store_pairs(STORED *p, int count, VECTOR re, VECTOR im) {
  STORED lane[2 * LANES], *to = count < LANES ? lane : p;
  int32_t low[LANES], high[LANES];
  for (int l = 0; l < LANES; l++) high[l] = LANES / 2 + (low[l] = l / 2 + l % 2 * LANES);
  STORE(to, PERMUTE(re, im, PICK(low)));
  STORE(to + LANES, PERMUTE(re, im, PICK(high)));
  if (count < LANES) memcpy(p, lane, 2 * (size_t)count * sizeof *p);
}

/* A spinor of a slice: the neighbours of entry e, right-hand sides from..from+count-1. */
INLINED void load_spinor(const md_simd_call *call, int64_t e, int slice, int from, int count,
                         bool many, VECTOR psi[SPINOR]) {
  const STORED *in = call->in;
  if (!many) {
    in += slice * SPINOR * call->in_stride;
    for (int k = 0; k < 4; k++)
      neighbours(call->plan, e, in + 6 * k * call->in_stride, call->in_stride, psi + 6 * k);
    return;
  }
  const int64_t pair = ((int64_t)call->plan->first[e] * call->slices + slice) * HALF;
  for (int k = 0; k < HALF; k++)
    load_pairs(in + 2 * ((pair + k) * call->n_rhs + from), count, &psi[2 * k], &psi[2 * k + 1]);
}

/* out = a x + b sum at the block. */
INLINED void store_spinor(const md_simd_call *call, int64_t block, int slice, int from, int count,
                          bool many, const VECTOR sum[SPINOR]) {
  const ARITH a = (ARITH)call->a, b = (ARITH)call->b;
  const STORED *x = call->x;
  STORED *out = call->out;
  const int64_t site = call->plan->site[block], pair = (site * call->slices + slice) * HALF;
  for (int k = 0; k < HALF; k++) {
    VECTOR re = b * sum[2 * k], im = b * sum[2 * k + 1], x_re, x_im;
    if (many) {
      const int64_t at = 2 * ((pair + k) * call->n_rhs + from);
      if (x) {
        load_pairs(x + at, count, &x_re, &x_im);
        re += a * x_re, im += a * x_im;
      }
      store_pairs(out + at, count, re, im);
      continue;
    }
    const int c = slice * SPINOR + 2 * k;
    if (x) {
      re += a * load_part(x + site + c * call->x_stride, count);
      im += a * load_part(x + site + (c + 1) * call->x_stride, count);
    }
    store_part(out + site + c * call->out_stride, re, count, false);
    store_part(out + site + (c + 1) * call->out_stride, im, count, false);
  }
}

INLINED void spins_of(const md_simd_call *call, int64_t block, int slice, int from, int count,
                      int reals, bool many) {
  /* Of (1 - gamma_mu), then (1 + gamma_mu). */
  static const struct {
    int swap, q0, q1;
  } leg[MD_DIRECTIONS] = {{1, 3, 3}, {1, 0, 2}, {0, 3, 1}, {0, 2, 2},
                          {1, 1, 1}, {1, 2, 0}, {0, 1, 3}, {0, 0, 0}};
  VECTOR sum[SPINOR] = {{0}};
#pragma GCC unroll 8
  for (int d = 0; d < MD_DIRECTIONS; d++) {
    VECTOR psi[SPINOR], u[MD_LINK_REALS];
    load_spinor(call, block * TERMS + d, slice, from, count, many, psi);
    load_link(call, block, d, reals, many, u);
    add_leg(psi, u, leg[d].swap, leg[d].q0, leg[d].q1, sum);
  }
  store_spinor(call, block, slice, from, count, many, sum);
}

INLINED void spins(const md_simd_call *call, int64_t begin, int64_t end, int reals, bool many) {
  for (int64_t k = begin; k < end; k++) {
    const int64_t block = call->order ? call->order[k] : k;
    const int64_t all = many ? call->n_rhs : call->sites - call->plan->site[block];
    for (int slice = 0; slice < call->slices; slice++)
      for (int from = 0; from < (many ? call->n_rhs : 1); from += LANES)
        spins_of(call, block, slice, from, all - from < LANES ? (int)(all - from) : LANES, reals,
                 many);
  }
}

static void spins_one_18(const md_simd_call *call, int64_t begin, int64_t end) {
  spins(call, begin, end, MD_LINK_REALS, false);
}
static void spins_one_12(const md_simd_call *call, int64_t begin, int64_t end) {
  spins(call, begin, end, MD_LINK_12_REALS, false);
}
static void spins_many_18(const md_simd_call *call, int64_t begin, int64_t end) {
  spins(call, begin, end, MD_LINK_REALS, true);
}
static void spins_many_12(const md_simd_call *call, int64_t begin, int64_t end) {
  spins(call, begin, end, MD_LINK_12_REALS, true);
}
