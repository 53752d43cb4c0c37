#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

extern "C" {
#include "base/precision.h"
}

/* Storage type S -> type of arithmetic: double computes in double, the rest in float. */
template <class S> struct arithmetic { using real = float; };
template <> struct arithmetic<double> { using real = double; };
template <class S> using real_of = typename arithmetic<S>::real;

/* MD_FIXED: 16-bit integers, of which MD_FIXED_STEPS make the unit (base/precision.h). */
struct fixed16 {
  int16_t steps;
};
/* The same, read by more instructions but none of the conversion unit: for kernels that keep it
 * busy. */
struct fixed16_mantissa : fixed16 {};
template <class S> struct by_mantissa { using type = S; };
template <> struct by_mantissa<fixed16> { using type = fixed16_mantissa; };
template <class S> constexpr bool is_fixed = false;
template <> constexpr bool is_fixed<fixed16> = true;
template <> constexpr bool is_fixed<fixed16_mantissa> = true;
constexpr int fixed_steps = 32767;

/* f(S()) with the storage type of a precision; the second for those that are not MD_DOUBLE. Also
 * for the device, which the compiler would warn of where f is for the host. */
#pragma nv_exec_check_disable
template <class F> static __host__ __device__ inline auto with_narrow_type(md_precision p, F f) {
  switch (p) {
  case MD_HALF:
    return f(__half());
  case MD_BF16:
    return f(__nv_bfloat16());
  case MD_FIXED:
    return f(fixed16());
  default:
    return f(0.0f);
  }
}
#pragma nv_exec_check_disable
template <class F> static __host__ __device__ inline auto with_type(md_precision p, F f) {
  return p == MD_DOUBLE ? f(0.0) : with_narrow_type(p, f);
}

/* Fermions carry a scale per site (lattice/fields/field.h). */
template <class S> constexpr bool is_scaled = is_fixed<S>;
template <> constexpr bool is_scaled<__half> = true;
/* What stored links are multiples of. */
template <class S> constexpr float link_unit = is_fixed<S> ? 1.0f / fixed_steps : 1.0f;

static __device__ inline double load_real(double x) {
  return x;
}
static __device__ inline float load_real(float x) {
  return x;
}
static __device__ inline float load_real(__half x) {
  return __half2float(x);
}
static __device__ inline float load_real(__nv_bfloat16 x) {
  return __bfloat162float(x);
}

static __device__ inline float load_real(fixed16 x) {
  return (float)x.steps;
}

/* By the end of a float's mantissa, 2^23 + 2^15 + steps. */
static __device__ inline float load_real(fixed16_mantissa x) {
  return __uint_as_float((uint16_t)x.steps ^ 0x4b008000u) - 8421376.0f;
}

template <class S> static __device__ inline S store_real(real_of<S> x);
template <> __device__ inline double store_real<double>(double x) {
  return x;
}
template <> __device__ inline float store_real<float>(float x) {
  return x;
}
template <> __device__ inline __half store_real<__half>(float x) {
  return __float2half_rn(x);
}
template <> __device__ inline __nv_bfloat16 store_real<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}

template <> __device__ inline fixed16 store_real<fixed16>(float x) {
  return {(int16_t)max(-fixed_steps, min(fixed_steps, __float2int_rn(x)))};
}

template <> __device__ inline fixed16_mantissa store_real<fixed16_mantissa>(float x) {
  return {store_real<fixed16>(x)};
}

/* N neighbouring values, loaded and stored by one instruction of up to 16 bytes. */
template <class T, int N> struct alignas(sizeof(T) * N) vector_of { T v[N]; };

/* The larger magnitude, NaN before all. */
static __device__ inline float larger(float largest, float value) {
  return __uint_as_float(max(__float_as_uint(largest), __float_as_uint(value) & 0x7fffffffu));
}
/* The same in one instruction where S keeps a NaN in its components, so that the scale need not. */
template <class S> static __device__ inline float larger_component(float largest, float value) {
  if constexpr (is_fixed<S>) return larger(largest, value);
  return fmaxf(largest, fabsf(value));
}

/* Scale of a site whose largest component is `largest`, as md_field_scale_of on the host: the
 * power of two that brings it to MD_HALF_MOST at most, or for fixed its step; and its inverse. */
template <class S> static __device__ inline float scale_of(float largest) {
  if constexpr (is_fixed<S>) {
    const float scale = largest * (1.0f / fixed_steps);
    return scale < 0x1p-126f ? 0x1p-126f : scale;
  }
  const int exponent = (int)(__float_as_uint(largest) + MD_HALF_CARRY >> 23) - 14;
  return __uint_as_float((unsigned)(exponent < 1 || exponent > 240 ? 1 : exponent) << 23);
}
template <class S> static __device__ inline float inverse_of_scale(float scale) {
  if constexpr (is_fixed<S>) return 1.0f / scale;
  return __uint_as_float((254u << 23) - __float_as_uint(scale));
}

/* Link data passes through once: no place in L1, and first out of L2 unless `keep`. */
static __device__ inline uint64_t link_policy(bool keep) {
  uint64_t first, normal;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(first));
  asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(normal));
  return keep ? normal : first;
}
static __device__ inline uint4 load_once(const uint4 *p, uint64_t policy) {
  uint4 r;
  asm("ld.global.nc.L1::no_allocate.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
      : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w)
      : "l"(p), "l"(policy));
  return r;
}
static __device__ inline uint2 load_once(const uint2 *p, uint64_t policy) {
  uint2 r;
  asm("ld.global.nc.L1::no_allocate.L2::cache_hint.v2.u32 {%0, %1}, [%2], %3;"
      : "=r"(r.x), "=r"(r.y)
      : "l"(p), "l"(policy));
  return r;
}
static __device__ inline uint32_t load_once(const uint32_t *p, uint64_t policy) {
  uint32_t r;
  asm("ld.global.nc.L1::no_allocate.L2::cache_hint.u32 %0, [%1], %2;"
      : "=r"(r)
      : "l"(p), "l"(policy));
  return r;
}

/* The same into shared memory, without waiting for it; finish_loads waits for all of the thread. */
template <class C> static __device__ inline void start_load(C *to, const C *from, uint64_t policy) {
  asm volatile("cp.async.ca.shared.global.L2::cache_hint [%0], [%1], %2, %3;" ::"r"(
                   (uint32_t)__cvta_generic_to_shared(to)),
               "l"(from), "n"(sizeof(C)), "l"(policy)
               : "memory");
}
static __device__ inline void finish_loads() {
  asm volatile("cp.async.wait_all;" ::: "memory");
}
