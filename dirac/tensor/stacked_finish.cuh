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
__device__ inline double2 widen(double, double2 v) { return v; }

__device__ inline uint32_t narrow(__half, float re, float im) {
  const __half2 v = __floats2half2_rn(re, im);
  return *reinterpret_cast<const uint32_t *>(&v);
}
__device__ inline uint32_t narrow(__nv_bfloat16, float re, float im) {
  const __nv_bfloat162 v = __floats2bfloat162_rn(re, im);
  return *reinterpret_cast<const uint32_t *>(&v);
}
__device__ inline double2 narrow(double, double re, double im) { return make_double2(re, im); }

__device__ inline float power_of_two(int biased_exponent) {
  return __int_as_float(min(max(biased_exponent, 0), 254) << 23);
}

/* c = factor_c * c + factor_x * x; where x has no scale the factors are 0.5 b and a. */
template <typename T, int TILE, bool FULL>
__device__ inline void add_epilogue(typename storage<T>::accumulator c[4],
                                    typename storage<T>::accumulator factor_c,
                                    typename storage<T>::accumulator factor_x, const char *x_row,
                                    int count, const lane &at) {
  const pair<T> x = load_rows<T, TILE, FULL>(x_row, at.g, count);
  const auto low = widen(T{}, x.low), high = widen(T{}, x.high);
  c[0] = factor_c * c[0] + factor_x * low.x;
  c[1] = factor_c * c[1] + factor_x * low.y;
  c[2] = factor_c * c[2] + factor_x * high.x;
  c[3] = factor_c * c[3] + factor_x * high.y;
}

/* Largest |c| of the warp's tile, as float bits; results lie in t < 3. */
__device__ inline uint32_t largest_of(const float c[4], const lane &at) {
  const float most = fmaxf(fmaxf(fabsf(c[0]), fabsf(c[1])), fmaxf(fabsf(c[2]), fabsf(c[3])));
  return __reduce_max_sync(0xffffffffu, at.t < 3 ? __float_as_uint(most) : 0u);
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

/* Brings c into units of 2^(returned - 127) (of 1 where nothing is scaled), epilogue done. `unit`
 * is the biased exponent of the largest source scale. */
template <typename T, int TILE, bool FULL, bool EPILOGUE>
__device__ inline int combine(typename storage<T>::accumulator c[4], const md_tensor_call &call,
                              int64_t site, const char *x_row, int unit, int count,
                              const lane &at) {
  using real = typename storage<T>::accumulator;
  if constexpr (!storage<T>::scaled) {
    const real half_b = static_cast<real>(EPILOGUE ? 0.5 * call.b : 0.5);
    if constexpr (EPILOGUE) {
      add_epilogue<T, TILE, FULL>(c, half_b, static_cast<real>(call.a), x_row, count, at);
    } else {
#pragma unroll
      for (int i = 0; i < 4; i++) c[i] *= half_b;
    }
    return 127;
  } else {
    if constexpr (!EPILOGUE) return unit - 1; /* the factor 1/2 */
    const int x_unit = __float_as_int(call.x_scale[site]) >> 23, common = max(unit - 1, x_unit);
    add_epilogue<T, TILE, FULL>(
        c, static_cast<float>(call.b) * power_of_two(127 + unit - 1 - common),
        static_cast<float>(call.a) * power_of_two(127 + x_unit - common), x_row, count, at);
    return common;
  }
}

} // namespace stacked

#endif
