#pragma once

#include "dirac/tensor/stacked.cuh"
#include "lattice/fields/cuda/unit_sum.cuh"

#include <type_traits>

/* From the accumulators of a site to memory: factor 1/2, epilogue, scale, rounding, store. Lane
 * 4g+t, t < 3, holds colour t of the tile rows g (c[0], c[1]) and g+8 (c[2], c[3]). */
namespace stacked {

__device__ inline float2 widen(__half, uint32_t v) {
  return __half22float2(*reinterpret_cast<const __half2 *>(&v));
}
__device__ inline float2 widen(__nv_bfloat16, uint32_t v) {
  return __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162 *>(&v));
}
__device__ inline double2 widen(double, double2 v) {
  return v;
}

__device__ inline uint32_t narrow(__half, float re, float im) {
  const __half2 v = __floats2half2_rn(re, im);
  return *reinterpret_cast<const uint32_t *>(&v);
}
__device__ inline uint32_t narrow(__nv_bfloat16, float re, float im) {
  const __nv_bfloat162 v = __floats2bfloat162_rn(re, im);
  return *reinterpret_cast<const uint32_t *>(&v);
}
__device__ inline double2 narrow(double, double re, double im) {
  return make_double2(re, im);
}

__device__ inline float power_of_two(int biased_exponent) {
  return __int_as_float(min(max(biased_exponent, 0), 254) << 23);
}

/* Sites that a warp works on at a time: as many as hide latency within the registers. What belongs
 * to one of them is held by the lanes 4g+t with g % batch = n; lane 4n hands it to the others. */
template <typename T> constexpr int batch = storage<T>::adjacent ? 4 : 1;
template <typename T> using sums = typename storage<T>::accumulator[batch<T>][4];

template <typename V> __device__ inline V of_site(V value, int n) {
  return __shfl_sync(0xffffffffu, value, 4 * n);
}

/* a b + c, rounded once: left to the compiler, which of the products are contracted would differ
 * from kernel to kernel, and with it the last bits. */
__device__ inline float product_plus(float a, float b, float c) {
  return __fmaf_rn(a, b, c);
}
__device__ inline double product_plus(double a, double b, double c) {
  return __fma_rn(a, b, c);
}

/* c = factor_c * c + factor_x * x */
template <typename T, int TILE, bool FULL>
__device__ inline void add_epilogue(typename storage<T>::accumulator c[4],
                                    typename storage<T>::accumulator factor_c,
                                    typename storage<T>::accumulator factor_x, const char *x_row,
                                    int count, const lane &at) {
  const pair<T> x = load_rows<T, TILE, FULL, true>(x_row + row_offset<T, TILE>(at.g), at.g, count);
  const auto low = widen(T{}, x.low), high = widen(T{}, x.high);
  c[0] = product_plus(factor_x, low.x, factor_c * c[0]);
  c[1] = product_plus(factor_x, low.y, factor_c * c[1]);
  c[2] = product_plus(factor_x, high.x, factor_c * c[2]);
  c[3] = product_plus(factor_x, high.y, factor_c * c[3]);
}

/* Factor 1/2 and epilogue of a batch. place(n): bytes from the start of a field to the lane's
 * colour of site n at the tile's first right-hand side. my_site, unit: of the lane's site; unit is
 * the biased exponent of the largest source scale. Returns the biased exponent of the unit that
 * the lane's site is in afterwards (meant for half only). */
template <typename T, int TILE, bool FULL, bool EPILOGUE, typename PLACE>
__device__ inline int combine(sums<T> &c, const md_tensor_call &call, int64_t my_site, int unit,
                              PLACE place, int count, const lane &at) {
  using real = typename storage<T>::accumulator;
  const char *x = static_cast<const char *>(call.x);
  if constexpr (!storage<T>::scaled) {
    const real half_b = static_cast<real>(EPILOGUE ? MD_HOP_FACTOR * call.b : MD_HOP_FACTOR);
#pragma unroll
    for (int n = 0; n < batch<T>; n++)
      if constexpr (EPILOGUE) {
        add_epilogue<T, TILE, FULL>(c[n], half_b, static_cast<real>(call.a), x + place(n), count,
                                    at);
      } else {
#pragma unroll
        for (int i = 0; i < 4; i++) c[n][i] *= half_b;
      }
    return 127;
  } else {
    if constexpr (!EPILOGUE) return unit - 1; /* the factor 1/2 */
    const int x_unit = __float_as_int(call.x_scale[my_site]) >> 23, common = max(unit - 1, x_unit);
    const float factor_c = static_cast<float>(call.b) * power_of_two(126 + unit - common);
    const float factor_x = static_cast<float>(call.a) * power_of_two(127 + x_unit - common);
#pragma unroll
    for (int n = 0; n < batch<T>; n++)
      add_epilogue<T, TILE, FULL>(c[n], of_site(factor_c, n), of_site(factor_x, n), x + place(n),
                                  count, at);
    return common;
  }
}

/* Largest |c| of the lane's site over the tile, as float bits. The lanes t = 3 repeat t = 2. */
template <typename T> __device__ inline uint32_t largest_of(const sums<T> &c, const lane &at) {
  uint32_t mine = 0;
#pragma unroll
  for (int n = 0; n < batch<T>; n++) {
    const float most =
        fmaxf(fmaxf(fabsf(c[n][0]), fabsf(c[n][1])), fmaxf(fabsf(c[n][2]), fabsf(c[n][3])));
    const uint32_t all = __reduce_max_sync(0xffffffffu, __float_as_uint(most));
    if (at.g % batch<T> == n) mine = all;
  }
  return mine;
}

/* The scale of a site whose largest |number| has the float bits `largest`, in units of
 * 2^(unit - 127): *factor turns numbers into what is stored, at most MD_HALF_MOST. */
__device__ inline float scale_of(uint32_t largest, int unit, float *factor) {
  const int exponent = max(static_cast<int>(largest + MD_HALF_CARRY >> 23), 14);
  const int scale = largest ? unit + exponent - 141 : 0; /* 127 + 14: stored from 2^14 on */
  const int lost = max(1 - scale, 0);                    /* below the smallest normal float */
  *factor = power_of_two(268 - exponent - lost);
  return power_of_two(scale + lost);
}

/* Stores the lane's two rows of a colour. */
template <typename T, int TILE, bool FULL>
__device__ inline void store_rows(char *row, typename storage<T>::number low,
                                  typename storage<T>::number high, int count, const lane &at) {
  using number = typename storage<T>::number;
  number *p = reinterpret_cast<number *>(row);
  if constexpr (TILE == 8) {
    if (FULL || at.g < count) __stcs(p + at.g, low);
  } else if constexpr (!storage<T>::adjacent) {
    if (FULL || at.g < count) __stcs(p + at.g, low);
    if (FULL || at.g + 8 < count) __stcs(p + at.g + 8, high);
  } else if constexpr (FULL) {
    __stcs(reinterpret_cast<uint2 *>(p + 2 * at.g), make_uint2(low, high));
  } else {
    if (2 * at.g < count) __stcs(p + 2 * at.g, low);
    if (2 * at.g + 1 < count) __stcs(p + 2 * at.g + 1, high);
  }
}

/* Rounds and stores those sites of the batch whose bit of `present` is set. my_factor: see
 * scale_of. */
template <typename T, int TILE, bool FULL, typename PLACE>
__device__ inline void store(const sums<T> &c, const md_tensor_call &call, float my_factor,
                             PLACE place, unsigned present, int count, const lane &at) {
#pragma unroll
  for (int n = 0; n < batch<T>; n++) {
    const float f = storage<T>::scaled ? of_site(my_factor, n) : 1.0f;
    const auto low = narrow(T{}, c[n][0] * f, c[n][1] * f);
    const auto high = narrow(T{}, c[n][2] * f, c[n][3] * f);
    if (at.t < 3 && present >> n & 1u)
      store_rows<T, TILE, FULL>(static_cast<char *>(call.out) + place(n), low, high, count, at);
  }
}

/* What a solver asks of the end of a hop: norms of the results, and the step
 * out += step (a x + b D in) into a field of the arithmetic type, or in half of its own
 * (md_hop_step). A lane adds up the norms of its two tile rows; the warps' sums go to memory at the
 * end of their work. */
enum class ending { plain, combined, summed, step, narrow_step, mixed };
template <ending E>
constexpr bool takes_step = E == ending::step || E == ending::narrow_step || E == ending::mixed;
template <ending E> constexpr bool leaves_norms = E == ending::summed || takes_step<E>;

/* The norms of a lane's two rows; beside numbers of 16 bits one word is exact enough. */
template <typename T> using norm_adder = unit_adder<storage<T>::adjacent>;

/* The right-hand side of the lane's low and high row. */
template <typename T, int TILE> __device__ inline int rhs_of_row(int row, const lane &at) {
  return TILE == 8 || !storage<T>::adjacent ? at.g + 8 * row : 2 * at.g + row;
}

/* A lane's rows of one colour in a field of the arithmetic type: v = step v + the field, and
 * field = v where `assigned`. */
template <typename T, int TILE>
__device__ inline void add_to_rows(char *row, const typename storage<T>::accumulator step[2],
                                   typename storage<T>::accumulator v[4], bool assigned,
                                   const lane &at) {
  if constexpr (TILE == 16 && storage<T>::adjacent) {
    float4 *p = reinterpret_cast<float4 *>(row) + at.g;
    const float4 old = __ldcs(p);
    v[0] = product_plus(step[0], v[0], old.x), v[1] = product_plus(step[0], v[1], old.y);
    v[2] = product_plus(step[1], v[2], old.z), v[3] = product_plus(step[1], v[3], old.w);
    if (at.t < 3 && assigned) __stcs(p, make_float4(v[0], v[1], v[2], v[3]));
  } else {
    using vector = typename std::conditional<storage<T>::adjacent, float2, double2>::type;
#pragma unroll
    for (int half = 0; half < TILE / 8; half++) {
      vector *p = reinterpret_cast<vector *>(row) + at.g + 8 * half;
      const vector old = __ldcs(p);
      v[2 * half] = product_plus(step[half], v[2 * half], old.x);
      v[2 * half + 1] = product_plus(step[half], v[2 * half + 1], old.y);
      if (at.t < 3 && assigned) __stcs(p, vector{v[2 * half], v[2 * half + 1]});
    }
  }
}

/* norms[row] of the sites of a batch that are `assigned`; numbers of the lane's site are in units
 * of 2^(unit - 127). */
template <typename T>
__device__ inline void add_norms(norm_adder<T> norms[2], const sums<T> &c, int unit,
                                 unsigned assigned, const lane &at) {
#pragma unroll
  for (int n = 0; n < batch<T>; n++) {
    const bool counts = at.t < 3 && (assigned >> n & 1u); /* others may hold NaN */
    double weight = 1.0;
    if constexpr (storage<T>::scaled)
      weight = __hiloint2double((2 * (of_site(unit, n) - 127) + 1023) << 20, 0);
#pragma unroll
    for (int row = 0; row < 2; row++) {
      const auto re = c[n][2 * row], im = c[n][2 * row + 1];
      norms[row].add(counts ? weight * static_cast<double>(product_plus(re, re, im * im)) : 0.0);
    }
  }
}

/* c = a x + b D in of site n of a batch, D in in units of my_c, x in those of my_x. */
template <typename T, int TILE>
__device__ inline void make_step(typename storage<T>::accumulator c[4], const md_tensor_call &call,
                                 float my_c, float my_x, int n, int64_t place, const lane &at) {
  using real = typename storage<T>::accumulator;
  real factor_c = static_cast<real>(MD_HOP_FACTOR * call.b), factor_x = static_cast<real>(call.a);
  if constexpr (storage<T>::scaled) factor_c *= of_site(my_c, n), factor_x *= of_site(my_x, n);
  add_epilogue<T, TILE, true>(c, factor_c, factor_x, static_cast<const char *>(call.x) + place,
                              TILE, at);
}

/* The step of the sites of a batch that are `assigned`, whose places are as in `combine`, with the
 * norms of what it leaves. */
template <typename T, int TILE, typename PLACE>
__device__ inline void take_step(norm_adder<T> norms[2], sums<T> &c, const md_tensor_call &call,
                                 int64_t my_site, int unit,
                                 const typename storage<T>::accumulator step[2], PLACE place,
                                 unsigned assigned, const lane &at) {
  using real = typename storage<T>::accumulator;
  constexpr int wider = 2 * sizeof(real) / sizeof(typename storage<T>::number);
  float my_c = 1.0f, my_x = 1.0f;
  if constexpr (storage<T>::scaled) my_c = power_of_two(unit), my_x = call.x_scale[my_site];
#pragma unroll
  for (int n = 0; n < batch<T>; n++) {
    make_step<T, TILE>(c[n], call, my_c, my_x, n, place(n), at);
    add_to_rows<T, TILE>(static_cast<char *>(call.out) + wider * place(n), step, c[n],
                         assigned >> n & 1u, at);
  }
  add_norms<T>(norms, c, 127, assigned, at);
}

/* What md_hop_step says of `before`, in double. The rows of steps lie in L1, and registers are
 * short. */
template <int TILE, typename PLACE>
__device__ inline void take_mixed_step(norm_adder<double> norms[2], sums<double> &c,
                                       const md_tensor_call &call, PLACE place, unsigned assigned,
                                       const lane &at) {
  constexpr int halves = TILE / 8;
#pragma unroll
  for (int n = 0; n < batch<double>; n++) {
    const int64_t start = place(n);
    const auto row = [&](const void *field, int half) {
      return reinterpret_cast<const double2 *>(static_cast<const char *>(field) + start) + at.g +
             8 * half;
    };
#pragma unroll
    for (int half = 0; half < halves; half++) {
      const double *step = call.step + rhs_of_row<double, TILE>(half, at);
      const double2 x = __ldcs(row(call.x, half)), before = __ldcs(row(call.before, half));
      const double of_in = MD_HOP_FACTOR * call.b * __ldg(step);
      const double of_x = __ldg(step + MD_MAX_RHS), of_before = __ldg(step + 2 * MD_MAX_RHS);
      double *v = c[n] + 2 * half;
      v[0] = product_plus(of_before, before.x, product_plus(of_x, x.x, of_in * v[0]));
      v[1] = product_plus(of_before, before.y, product_plus(of_x, x.y, of_in * v[1]));
      if (at.t < 3 && assigned >> n & 1u)
        __stcs(const_cast<double2 *>(row(call.out, half)), double2{v[0], v[1]});
    }
  }
  add_norms<double>(norms, c, 127, assigned, at);
}

/* A step into a field of half, which gets new scales. The norms are of numbers not yet rounded. */
template <int TILE, typename PLACE>
__device__ inline void take_narrow_step(norm_adder<__half> norms[2], sums<__half> &c,
                                        const md_tensor_call &call, int64_t my_site, int unit,
                                        const float step[2], PLACE place, unsigned assigned,
                                        const lane &at) {
  const float my_c = power_of_two(unit), my_x = call.x_scale[my_site];
  const float my_old = call.out_scale[my_site];
#pragma unroll
  for (int n = 0; n < batch<__half>; n++) {
    make_step<__half, TILE>(c[n], call, my_c, my_x, n, place(n), at);
#pragma unroll
    for (int i = 0; i < 4; i++) c[n][i] *= step[i / 2];
    add_epilogue<__half, TILE, true>(c[n], 1.0f, of_site(my_old, n),
                                     static_cast<const char *>(call.out) + place(n), TILE, at);
  }
  add_norms<__half>(norms, c, 127, assigned, at);
  float factor;
  const float scale = scale_of(largest_of<__half>(c, at), 127, &factor);
  if (at.t == 0 && at.g < batch<__half> && assigned >> at.g & 1u) call.out_scale[my_site] = scale;
  store<__half, TILE, true>(c, call, factor, place, assigned, TILE, at);
}

/* One of them, as END says. */
template <typename T, int TILE, ending END, typename PLACE>
__device__ inline void take_any_step(norm_adder<T> norms[2], sums<T> &c, const md_tensor_call &call,
                                     int64_t my_site, int unit,
                                     const typename storage<T>::accumulator step[2], PLACE place,
                                     unsigned assigned, const lane &at) {
  if constexpr (END == ending::narrow_step)
    take_narrow_step<TILE>(norms, c, call, my_site, unit, step, place, assigned, at);
  else if constexpr (END == ending::mixed)
    take_mixed_step<TILE>(norms, c, call, place, assigned, at);
  else
    take_step<T, TILE>(norms, c, call, my_site, unit, step, place, assigned, at);
}

/* Before the first site: the lane's rows of call.step, and what norms begin as. A step need not be
 * summed: without call.norm2 nothing comes of its norms. */
template <typename T, int TILE, ending END>
__device__ inline void begin_ending(norm_adder<T> norms[2],
                                    typename storage<T>::accumulator step[2],
                                    const md_tensor_call &call, const lane &at) {
  using real = typename storage<T>::accumulator;
  if constexpr (leaves_norms<END>)
    for (int row = 0; row < TILE / 8; row++)
      norms[row].begin(call.norm2 ? call.units[rhs_of_row<T, TILE>(row, at)] : sum_units{});
  if constexpr (takes_step<END> && END != ending::mixed)
    for (int row = 0; row < TILE / 8; row++)
      step[row] = static_cast<real>(call.step[rhs_of_row<T, TILE>(row, at)]);
}

/* Leaves a warp's norms. */
template <typename T, int TILE>
__device__ inline void leave_norms(const norm_adder<T> norms[2], const md_tensor_call &call,
                                   int place, const lane &at) {
  if (!call.norm2) return;
  for (int row = 0; row < TILE / 8; row++) {
    const int rhs = rhs_of_row<T, TILE>(row, at);
    unit_sum sum = norms[row].sum(call.units[rhs]);
    for (int distance = 1; distance <= 2; distance *= 2) {
      sum.high += __shfl_xor_sync(0xffffffffu, sum.high, distance);
      if (!storage<T>::adjacent) sum.low += __shfl_xor_sync(0xffffffffu, sum.low, distance);
    }
    if (at.t == 0) add_to_slot<storage<T>::adjacent>(call.norm2, rhs, place, sum);
  }
}

/* What `launch` returns for the ending that a call asks for, as a type. */
template <ending END> using ending_type = std::integral_constant<ending, END>;
template <typename T, class LAUNCH>
cudaError_t by_ending(const md_tensor_call *call, LAUNCH launch) {
  if constexpr (storage<T>::scaled)
    if (call->narrow) return launch(ending_type<ending::narrow_step>());
  if constexpr (std::is_same<T, double>::value)
    if (call->before) return launch(ending_type<ending::mixed>());
  if constexpr (storage<T>::fuses) {
    if (call->step) return launch(ending_type<ending::step>());
    if (call->norm2) return launch(ending_type<ending::summed>());
  }
  return call->x ? launch(ending_type<ending::combined>()) : launch(ending_type<ending::plain>());
}

} // namespace stacked
