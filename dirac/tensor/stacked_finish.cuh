#ifndef MD_DIRAC_TENSOR_STACKED_FINISH_CUH
#define MD_DIRAC_TENSOR_STACKED_FINISH_CUH

#include "dirac/tensor/stacked.cuh"

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

/* c = factor_c * c + factor_x * x */
template <typename T, int TILE, bool FULL>
__device__ inline void add_epilogue(typename storage<T>::accumulator c[4],
                                    typename storage<T>::accumulator factor_c,
                                    typename storage<T>::accumulator factor_x, const char *x_row,
                                    int count, const lane &at) {
  const pair<T> x = load_rows<T, TILE, FULL, true>(x_row + row_offset<T, TILE>(at.g), at.g, count);
  const auto low = widen(T{}, x.low), high = widen(T{}, x.high);
  c[0] = factor_c * c[0] + factor_x * low.x;
  c[1] = factor_c * c[1] + factor_x * low.y;
  c[2] = factor_c * c[2] + factor_x * high.x;
  c[3] = factor_c * c[3] + factor_x * high.y;
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
 * 2^(unit - 127): *factor turns numbers into what is stored, at most 2^15. */
__device__ inline float scale_of(uint32_t largest, int unit, float *factor) {
  const int exponent = max(static_cast<int>(largest >> 23), 14);
  const int scale = largest ? unit + exponent - 141 : 0; /* 127 + 14: stored in [2^14, 2^15) */
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

} // namespace stacked

#endif
