#pragma once

#include "dirac/tensor/spin_walls.cuh"

/* What a warp does for one output site of quarks with four spins: the fragments of packing.h's
 * columns. Lane 4g+t has the directions t and t+4 of column g of a tile, as tile rows g and g+8
 * (spins 0 and 1, or 2 and 3), and the links towards result g. In a tile of four columns it has
 * half of the spins of column g / 2: number n of the lane is then the n-th spin of that half, of
 * sources first its own two, then the others. */
namespace stacked {

/* The compiler is to keep v, in memory if need be, instead of working it out anew for each site. */
__device__ inline void keep(uint32_t &v) {
  asm volatile("" : "+r"(v));
}

/* How a lane's direction t mixes spins, see md_spin_partner_of; in t+4, and all over for H^dag, the
 * sign is the other. projected(s, v): number s of the projection of v. */
template <typename T> struct mixing {
  uint32_t select[2]; /* of two registers: the partner of spin 0 or 2, and of 1 or 3, turned */
  uint32_t sign[4];   /* 1 or -1 for the real and the imaginary part */
  __device__ mixing(int t, bool adjoint) {
    const int direction = adjoint ? t + 4 : t;
    constexpr uint32_t one = storage<T>::scaled ? 0x3c003c00u : 0x3f803f80u;
#pragma unroll
    for (int s = 0; s < 4; s++) {
      const md_spin_partner p = md_spin_partner_of(direction, s);
      if (s < 2) select[s] = (p.turn % 2 ? 0x1032 : 0x3210) + p.spin % 2 * 0x4444;
      sign[s] =
          one | (p.turn == 1 || p.turn == 2 ? 0x8000u : 0u) | (p.turn >= 2 ? 0x80000000u : 0u);
      keep(sign[s]);
    }
    keep(select[0]), keep(select[1]);
  }
  /* In a tile of four columns, where numbers 0 and 1 are the lower spins or the upper ones. Made
   * for each site: kept they would take registers. */
  __device__ mixing of_half(uint32_t lower) const {
    mixing half = *this;
    keep(lower);
    for (int s = 0; s < 2; s++) half.sign[s] = lower ? sign[s + 2] : sign[s];
    return half;
  }
  template <bool AHEAD> __device__ uint32_t projected(int s, const uint32_t v[4]) const {
    const uint32_t partner = __byte_perm(v[s < 2 ? 2 : 0], v[s < 2 ? 3 : 1], select[s % 2]);
    return fma_of<AHEAD>(T{}, partner, sign[s], v[s]);
  }
  template <bool AHEAD>
  static __device__ uint32_t fma_of(T, uint32_t partner, uint32_t sign, uint32_t own) {
    using two = std::conditional_t<storage<T>::scaled, __half2, __nv_bfloat162>;
    const two p = *reinterpret_cast<const two *>(&partner);
    const two sum = __hfma2(AHEAD ? p : __hneg2(p), *reinterpret_cast<const two *>(&sign),
                            *reinterpret_cast<const two *>(&own));
    return *reinterpret_cast<const uint32_t *>(&sum);
  }
};
template <> struct mixing<double> {
  bool odd, crossed;   /* turns; the partner of spin 0 is 3 */
  uint32_t sign[4][2]; /* what to change in the upper half of a number */
  __device__ mixing(int t, bool adjoint)
      : odd(md_spin_partner_of(t, 0).turn % 2), crossed(t % 4 < 2) {
#pragma unroll
    for (int s = 0; s < 4; s++) {
      const md_spin_partner p = md_spin_partner_of(adjoint ? t + 4 : t, s);
      sign[s][0] = p.turn == 1 || p.turn == 2 ? 0x80000000u : 0u;
      sign[s][1] = p.turn >= 2 ? 0x80000000u : 0u;
    }
  }
  static __device__ double turned(double v, uint32_t sign) {
    return __hiloint2double(__double2hiint(v) ^ static_cast<int>(sign), __double2loint(v));
  }
  template <bool AHEAD> __device__ double2 projected(int s, const double2 v[4]) const {
    const double2 p = crossed ? v[3 - s] : v[s ^ 2];
    const double re = turned(odd ? p.y : p.x, sign[s][0]);
    const double im = turned(odd ? p.x : p.y, sign[s][1]);
    return AHEAD ? make_double2(v[s].x + re, v[s].y + im) : make_double2(v[s].x - re, v[s].y - im);
  }
};

/* One spinor of a source column. Number 2 of the lane lies `second` pairs behind number 0, six
 * where the tile is `whole`, which the compiler knows: with one right-hand side (ONE) in 16 bits it
 * is 48 bytes, read at once; else a pair lies pair_bytes behind the one before it. */
template <typename T, bool ONE> struct spinor {
  using number = typename storage<T>::number;
  const char *half[2];
  int pair_bytes;
  __device__ spinor(const char *column, int apart, bool, int second)
      : half{column, column + second * apart}, pair_bytes(apart) {}
  __device__ number operator()(int colour, int n) const {
    return *reinterpret_cast<const number *>(half[n / 2] + (colour + n % 2 * 3) * pair_bytes);
  }
};
template <typename T> struct spinor16 {
  uint32_t number[12];
  __device__ spinor16(const char *column, int, bool whole, int second) {
    if (whole) {
#pragma unroll
      for (int n = 0; n < 3; n++) {
        const uint4 piece = reinterpret_cast<const uint4 *>(column)[n];
        number[4 * n] = piece.x, number[4 * n + 1] = piece.y;
        number[4 * n + 2] = piece.z, number[4 * n + 3] = piece.w;
      }
      return;
    }
#pragma unroll
    for (int n = 0; n < 6; n++) {
      const char *half = column + n / 3 * second * static_cast<int>(sizeof(uint32_t));
      const uint2 piece = reinterpret_cast<const uint2 *>(half)[n % 3];
      number[2 * n] = piece.x, number[2 * n + 1] = piece.y;
    }
  }
  __device__ uint32_t operator()(int colour, int n) const {
    return number[colour + 3 * n];
  }
};
template <> struct spinor<__half, true> : spinor16<__half> { using spinor16::spinor16; };
template <> struct spinor<__nv_bfloat16, true> : spinor16<__nv_bfloat16> {
  using spinor16::spinor16;
};

/* c: the accumulators of each of the tiles that a warp keeps at once, one of a tile of four. */
template <typename T, int TILES>
using spin_sums = typename storage<T>::accumulator[TILES][MD_SPIN_ACCUMULATORS][4];

/* What does not change from site to site. ONE: one right-hand side, in 16 bits. FOURS: of columns
 * that a warp keeps. PASSES: there are more columns. WALLS: the matrix multiplies x, or where END
 * is plain the hop. Norms are left and steps taken with WALLS alone. */
template <typename T, bool ONE, int FOURS, bool PASSES, ending END, bool WALLS = false>
struct spin_worker {
  static constexpr int TILES = tiles_of(FOURS);
  using number = typename storage<T>::number;
  using real = typename storage<T>::accumulator;
  using sums = spin_sums<T, TILES>;
  static constexpr bool scaled = storage<T>::scaled, ENDS = END != ending::plain;
  static_assert(!leaves_norms<END> || (WALLS && scaled && !PASSES), "what is served");
  static_assert(!PASSES || FOURS % 2 == 0, "passes take whole tiles");
  const md_tensor_call &call;
  const lane at;
  const mixing<T> mix;
  const std::conditional_t<WALLS, wall_matrix<T, FOURS>, no_matrix> walls;
  int columns, pair_bytes;
  typename storage<T>::links links; /* of the site to come */
  norm_adder<T> norm;
  float step;

  __device__ explicit spin_worker(const md_tensor_call &c)
      : call(c), at(), mix(at.t, c.adjoint), walls(c.walls, c.adjoint, at),
        columns(c.slices * c.n_rhs),
        pair_bytes((ONE ? 1 : c.n_rhs) * static_cast<int>(sizeof(number))) {}
  /* Before the first site, once what the call reads is there; after the last one. A step need not
   * be summed. */
  __device__ void begin_ending() {
    if constexpr (leaves_norms<END>) norm.begin(call.norm2 ? *call.units : sum_units{});
    if constexpr (takes_step<END>) step = static_cast<float>(*call.step);
  }
  __device__ void leave_norm(int place) const {
    if (!leaves_norms<END> || !call.norm2) return;
    unit_sum sum = norm.sum(*call.units);
    for (int distance = 16; distance > 0; distance /= 2)
      sum.high += __shfl_xor_sync(0xffffffffu, sum.high, distance);
    if (threadIdx.x % 32 == 0) add_to_slot<storage<T>::adjacent>(call.norm2, 0, place, sum);
  }
  __device__ int site_bytes() const {
    return call.slices * 12 * call.n_rhs * static_cast<int>(sizeof(number));
  }
  /* Asks for the links of a site. */
  __device__ void load(int64_t site) {
    links = storage<T>::load_links(static_cast<const char *>(call.links) +
                                       site * static_cast<int64_t>(72 * sizeof(number)),
                                   at.slot);
  }
  /* Of tile `first` + k: the lane's column in it and its first spin; how many spins it has. */
  __device__ md_spin_place row_of(int k) const {
    return md_spin_place_of(is_whole(FOURS, k) ? MD_SPIN_TILE : MD_SPIN_FOUR, 0, at.g);
  }
  static constexpr __device__ int spins(int k) { return is_whole(FOURS, k) ? 4 : 2; }
  __device__ int column_in(int first, int k) const {
    return MD_SPIN_TILE * (first + k) + row_of(k).column;
  }
  /* Bytes from the site to the lane's first spin, of the last column where there are fewer. */
  __device__ int offset(int first, int k) const {
    const int column = min(column_in(first, k), columns - 1);
    const int of_spin = is_whole(FOURS, k) ? 0 : row_of(k).spin * 3 * pair_bytes;
    if constexpr (ONE) return column * 12 * static_cast<int>(sizeof(number)) + of_spin;
    const int slice = column / call.n_rhs;
    return (column + 11 * slice * call.n_rhs) * static_cast<int>(sizeof(number)) + of_spin;
  }

  /* Whether there is no tile `first` + k: of those that a warp keeps more than half are there. */
  __device__ bool absent(int first, int k) const {
    return k > (PASSES ? 0 : TILES / 2) && MD_SPIN_TILE * (first + k) >= columns;
  }
  /* c of the tiles from `first` on. */
  __device__ void multiply(sums &c, int first, const char *ahead, const char *behind,
                           const number (&b)[2][3]) const {
#pragma unroll
    for (int k = 0; k < TILES; k++) {
#pragma unroll
      for (int i = 0; i < 2 * spins(k); i++) c[k][i / 4][i % 4] = 0;
      if (absent(first, k)) continue;
      mixing<T> mixed = mix;
      if constexpr (FOURS % 2)
        if (!is_whole(FOURS, k)) mixed = mix.of_half(at.g % 2);
      const int column = offset(first, k), second = !is_whole(FOURS, k) && at.g % 2 ? -6 : 6;
      const spinor<T, ONE> forward(ahead + column, pair_bytes, is_whole(FOURS, k), second);
      const spinor<T, ONE> backward(behind + column, pair_bytes, is_whole(FOURS, k), second);
#pragma unroll
      for (int colour = 0; colour < 3; colour++) {
        number v[4], w[4];
#pragma unroll
        for (int s = 0; s < 4; s++) v[s] = forward(colour, s), w[s] = backward(colour, s);
#pragma unroll
        for (int s = 0; s < spins(k); s += 2)
          stacked::multiply(T{}, c[k][s / 2],
                            pair<T>{mixed.template projected<true>(s, v),
                                    mixed.template projected<true>(s + 1, v)},
                            pair<T>{mixed.template projected<false>(s, w),
                                    mixed.template projected<false>(s + 1, w)},
                            b[0][colour], b[1][colour]);
      }
    }
  }
  /* Bytes from the start of a field to the lane's colour of its first spin in a tile. */
  __device__ int64_t place(int64_t site, int first, int k) const {
    return site * site_bytes() + offset(first, k) + min(at.t, 2) * pair_bytes;
  }
  /* The lane's colour of a field. */
  __device__ void load_numbers(const void *field, int first, int64_t site,
                               number (&v)[TILES][4]) const {
#pragma unroll
    for (int k = 0; k < TILES; k++) {
      const char *spinor = static_cast<const char *>(field) + place(site, first, k);
#pragma unroll
      for (int s = 0; s < spins(k); s++)
        v[k][s] = load_number<true>(reinterpret_cast<const number *>(spinor + 3 * s * pair_bytes));
    }
  }
  /* What the end of a hop reads: x of the lane's colour, and the biased exponent of its scale. It
   * is asked for before the products, which hide that it comes from L2. */
  struct ending_numbers {
    number x[ENDS ? TILES : 1][4];
    int unit;
  };
  __device__ ending_numbers load_ending(int first, int64_t site) const {
    ending_numbers end = {};
    if constexpr (ENDS) {
      load_numbers(call.x, first, site, end.x);
      if constexpr (scaled) end.unit = __float_as_int(call.x_scale[site]) >> 23;
    }
    return end;
  }
  /* The end of a hop; numbers of c come in units of 2^(unit - 127). Returns that of the results. */
  __device__ int combine(sums &c, int first, const ending_numbers &end, int unit) const {
    if constexpr (!ENDS) return unit;
    int common = unit;
    real factor_c = static_cast<real>(call.b), factor_x = static_cast<real>(call.a);
    if constexpr (scaled) {
      common = max(unit, end.unit);
      factor_c *= power_of_two(127 + unit - common);
      factor_x *= power_of_two(127 + end.unit - common);
    }
    const auto add = [&](int k, int s, real re, real im) {
      real *of = c[k][s / 2] + 2 * (s % 2);
      of[0] = product_plus(factor_x, re, factor_c * of[0]);
      of[1] = product_plus(factor_x, im, factor_c * of[1]);
    };
    if constexpr (WALLS && ENDS) {
#pragma unroll
      for (int s = 0; s < 2; s++) walls.apply(s, end.x, add);
    } else {
#pragma unroll
      for (int k = 0; k < TILES; k++) {
        if (absent(first, k)) continue;
#pragma unroll
        for (int s = 0; s < spins(k); s++) {
          const auto v = widen(T{}, end.x[k][s]);
          add(k, s, v.x, v.y);
        }
      }
    }
    return common;
  }
  /* What out is, asked for once the sources are used and there are registers for it. */
  struct old_numbers {
    number v[takes_step<END> ? TILES : 1][4];
    int unit;
  };
  __device__ old_numbers load_old(int64_t site) const {
    old_numbers old = {};
    if constexpr (takes_step<END>) {
      load_numbers(call.out, 0, site, old.v);
      old.unit = __float_as_int(call.out_scale[site]) >> 23;
    }
    return old;
  }
  /* c = step c + what out was; units as in `combine`. */
  __device__ int add_step(sums &c, const old_numbers &of_out, int unit) const {
    const int common = max(unit, of_out.unit);
    const real factor_c = step * power_of_two(127 + unit - common);
    const real factor_out = power_of_two(127 + of_out.unit - common);
#pragma unroll
    for (int k = 0; k < TILES; k++) {
      if (absent(0, k)) continue;
#pragma unroll
      for (int s = 0; s < spins(k); s++) {
        const auto old = widen(T{}, of_out.v[k][s]);
        real *of = c[k][s / 2] + 2 * (s % 2);
        of[0] = product_plus(factor_c, of[0], factor_out * old.x);
        of[1] = product_plus(factor_c, of[1], factor_out * old.y);
      }
    }
    return common;
  }
  /* Numbers of c, before they are rounded, are in units of 2^(unit - 127). */
  __device__ void add_norm(const sums &c, int unit, bool assigned) {
    real sum = 0;
#pragma unroll
    for (int k = 0; k < TILES; k++)
#pragma unroll
      for (int i = 0; i < 2 * spins(k) && column_in(0, k) < columns; i++) {
        const real v = c[k][i / 4][i % 4];
        sum = product_plus(v, v, sum);
      }
    const double weight = __hiloint2double((2 * (unit - 127) + 1023) << 20, 0);
    norm.add(at.t < 3 && assigned ? weight * static_cast<double>(sum) : 0.0);
  }
  /* What eight legs come to is stored in half before the matrix multiplies it: links are smaller
   * then, by so many powers of two. */
  static constexpr int smaller = WALLS && !ENDS && scaled ? 7 : 0;
  static __device__ uint32_t lowered(uint32_t factor) {
    const __half2 by = __float2half2_rn(1.0f / (1 << smaller));
    const __half2 product = __hmul2(*reinterpret_cast<const __half2 *>(&factor), by);
    return *reinterpret_cast<const uint32_t *>(&product);
  }
  /* c = the matrix times c, of all tiles, where it multiplies the hop. */
  __device__ void multiply_slices(sums &c) const {
    if constexpr (WALLS && !ENDS) {
#pragma unroll
      for (int s = 0; s < 2; s++) {
        uint32_t of[TILES][4];
#pragma unroll
        for (int k = 0; k < TILES; k++)
#pragma unroll
          for (int n = s; n < spins(k); n += 2) {
            const real *own = c[k][n / 2] + 2 * (n % 2);
            of[k][n] = narrow(T{}, own[0], own[1]);
          }
        walls.apply(s, of, [&](int k, int n, float re, float im) {
          c[k][n / 2][2 * (n % 2)] = re, c[k][n / 2][2 * (n % 2) + 1] = im;
        });
      }
    }
  }
  static __device__ void take_larger(float &most, float v) {
    asm("max.NaN.f32 %0, %0, %1;" : "+f"(most) : "f"(fabsf(v)));
  }
  /* Largest |c| as float bits, those of NaN where there is one: idle lanes repeat others. Behind a
   * matrix by several chains, as each step waits for the one before; else registers are short. */
  static __device__ uint32_t largest(const sums &c) {
    constexpr int chains = WALLS ? 4 : 1;
    float most[chains] = {};
#pragma unroll
    for (int i = 0; i < 4 * FOURS; i++) take_larger(most[i % chains], c[i / 8][i / 4 % 2][i % 4]);
#pragma unroll
    for (int left = chains / 2; left > 0; left /= 2)
#pragma unroll
      for (int n = 0; n < left; n++) take_larger(most[n], most[n + left]);
    return __reduce_max_sync(0xffffffffu, __float_as_uint(most[0]));
  }
  /* Rounds and stores. */
  __device__ void store(const sums &c, int first, int64_t site, real factor) const {
#pragma unroll
    for (int k = 0; k < TILES; k++) {
      if (absent(first, k)) continue;
      number v[4];
#pragma unroll
      for (int s = 0; s < spins(k); s++) {
        const real *of = c[k][s / 2] + 2 * (s % 2);
        v[s] = narrow(T{}, factor * of[0], factor * of[1]);
      }
      const bool stores = at.t < 3 && column_in(first, k) < columns;
      char *to = static_cast<char *>(call.out) + site * site_bytes() + offset(first, k);
      if constexpr (ONE && storage<T>::adjacent) {
        if (is_whole(FOURS, k))
          store_column(to, v, stores);
        else
          store_half(to, v, stores);
      } else if (stores) {
#pragma unroll
        for (int s = 0; s < spins(k); s++)
          __stcs(reinterpret_cast<number *>(to + (at.t + 3 * s) * pair_bytes), v[s]);
      }
    }
  }
  /* The 48 bytes of a column: lane t < 3 has colour t of the four spins, and stores numbers 4t to
   * 4t+3, the first and the last of which are its own. */
  __device__ void store_column(char *to, const uint32_t v[4], bool stores) const {
    uint32_t r[4]; /* from spin t on */
#pragma unroll
    for (int n = 0; n < 4; n++)
      r[n] = at.t == 0 ? v[n] : at.t == 1 ? v[(n + 1) % 4] : v[(n + 2) % 4];
    const int base = 4 * at.g, t = min(at.t, 2);
    const uint32_t second = __shfl_sync(0xffffffffu, r[3], base + (t + 1) % 3);
    const uint32_t third = __shfl_sync(0xffffffffu, r[2], base + (t + 2) % 3);
    if (stores) __stcs(reinterpret_cast<uint4 *>(to) + t, make_uint4(r[0], second, third, r[1]));
  }
  /* The 24 bytes of two spins of a column: lane t < 3 stores numbers 2t and 2t+1. */
  __device__ void store_half(char *to, const uint32_t v[4], bool stores) const {
    const int base = 4 * at.g;
    const uint32_t low = __shfl_sync(0xffffffffu, at.t == 2 ? v[0] : v[1], base + 3 - at.t);
    const uint32_t high = __shfl_sync(0xffffffffu, at.t == 0 ? v[1] : v[0], base + (at.t ^ 1));
    const uint2 both = make_uint2(at.t == 0 ? v[0] : low, at.t == 2 ? v[1] : high);
    if (stores) __stcs(reinterpret_cast<uint2 *>(to) + at.t, both);
  }

  /* One output site, whose links are there; `next` asks for those of the next one as soon as these
   * are used. ahead, behind: the sources in the lane's two directions; f: see factors_of; unit: the
   * biased exponent of the largest of the sources' scales. */
  template <class NEXT>
  __device__ void run(int64_t site, const char *ahead, const char *behind, factors f, int unit,
                      bool assigned, NEXT next) {
    number b[2][3];
    if constexpr (smaller > 0) f = {lowered(f.forward), lowered(f.backward)};
#pragma unroll
    for (int n = 0; n < 6; n++)
      b[n / 3][n % 3] = column_of(T{}, piece_of(links, n), n < 3 ? f.forward : f.backward, at.g);
    next();
    if constexpr (PASSES)
      run_passes(site, ahead, behind, b, unit, assigned);
    else
      run_once(site, ahead, behind, b, unit, assigned);
  }
  /* All tiles at once. */
  __device__ void run_once(int64_t site, const char *ahead, const char *behind,
                           const number (&b)[2][3], int unit, bool assigned) {
    sums c;
    const ending_numbers end = load_ending(0, site);
    multiply(c, 0, ahead, behind, b);
    const old_numbers old = load_old(site);
    multiply_slices(c);
    int common = combine(c, 0, end, unit + smaller);
    if constexpr (takes_step<END>) common = add_step(c, old, common);
    if constexpr (leaves_norms<END>) add_norm(c, common, assigned);
    if constexpr (scaled) {
      const uint32_t most = largest(c);
      float factor;
      const float scale = scale_of(most, common, &factor);
      if (!assigned) return;
      if (threadIdx.x % 32 == 0) call.out_scale[site] = scale;
      store(c, 0, site, factor);
    } else if (assigned) {
      store(c, 0, site, 1);
    }
  }
  /* The scale is shared by all columns: with more of them than a warp keeps the products are formed
   * twice, first for the largest result. */
  __device__ void run_passes(int64_t site, const char *ahead, const char *behind,
                             const number (&b)[2][3], int unit, bool assigned) const {
    sums c;
    uint32_t most = 0;
    int common = unit;
    real factor = 1;
    for (int k = 0; scaled && MD_SPIN_TILE * k < columns; k += TILES) {
      const ending_numbers end = load_ending(k, site);
      multiply(c, k, ahead, behind, b);
      common = combine(c, k, end, unit);
      most = max(most, largest(c));
    }
    float scale = 1;
    if constexpr (scaled) {
      float of_numbers;
      scale = scale_of(most, common, &of_numbers);
      factor = of_numbers;
    }
    for (int k = 0; assigned && MD_SPIN_TILE * k < columns; k += TILES) {
      const ending_numbers end = load_ending(k, site);
      multiply(c, k, ahead, behind, b);
      combine(c, k, end, unit);
      store(c, k, site, factor);
    }
    /* Until then x, which may be out, is read by the old scale. */
    __syncwarp();
    if (scaled && assigned && threadIdx.x % 32 == 0) call.out_scale[site] = scale;
  }
};

} // namespace stacked
