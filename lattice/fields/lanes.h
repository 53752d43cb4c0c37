#pragma once

/* Vectors as wide as the registers of the instruction set that this file is compiled for, by the
 * vector types of gcc and clang: the operators + - * work lane by lane and the compiler chooses the
 * instructions. Only what the language has no word for is spelled as an intrinsic: fp16 conversion
 * and the two-vector permutation. */

#include "base/precision.h"
#include <string.h>

#if defined(__AVX__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define MD_VECTOR_BYTES 64
#elif defined(__AVX__)
#define MD_VECTOR_BYTES 32
#else
#define MD_VECTOR_BYTES 16
#endif

typedef double md_lanes_double __attribute__((vector_size(MD_VECTOR_BYTES)));
typedef float md_lanes_float __attribute__((vector_size(MD_VECTOR_BYTES)));
typedef int64_t md_lanes_int64 __attribute__((vector_size(MD_VECTOR_BYTES)));
typedef int32_t md_lanes_int32 __attribute__((vector_size(MD_VECTOR_BYTES)));
typedef uint32_t md_lanes_uint32 __attribute__((vector_size(MD_VECTOR_BYTES)));
typedef int32_t md_half_lanes_int32 __attribute__((vector_size(MD_VECTOR_BYTES / 2)));
typedef int16_t md_lanes_int16 __attribute__((vector_size(MD_VECTOR_BYTES / 2)));
typedef uint16_t md_lanes_uint16 __attribute__((vector_size(MD_VECTOR_BYTES / 2)));

enum {
  MD_LANES_OF_double = MD_VECTOR_BYTES / 8,
  MD_LANES_OF_float = MD_VECTOR_BYTES / 4,
};

/* Loads and stores of W values from any address, the result in the arithmetic type; v with the sign
 * changed in the lanes whose bit is set. */
#define MD_DEFINE_LANES(type, name, integer, sign_bit)                                             \
  static inline md_lanes_##type md_load_##name(const type *p) {                                    \
    md_lanes_##type v;                                                                             \
    memcpy(&v, p, sizeof v);                                                                       \
    return v;                                                                                      \
  }                                                                                                \
  static inline void md_store_##name(type *p, md_lanes_##type v) {                                 \
    memcpy(p, &v, sizeof v);                                                                       \
  }                                                                                                \
  static inline md_lanes_##type md_negate_##type(md_lanes_##type v, unsigned bits) {               \
    md_lanes_##integer lane_bit;                                                                   \
    for (int l = 0; l < MD_LANES_OF_##type; l++) lane_bit[l] = 1 << l;                             \
    const md_lanes_##integer chosen = ((lane_bit & (integer##_t)bits) != 0);                       \
    return (md_lanes_##type)((md_lanes_##integer)v ^ (chosen & (sign_bit)));                       \
  }
MD_DEFINE_LANES(double, double, int64, INT64_MIN)
MD_DEFINE_LANES(float, single, int32, INT32_MIN)
#undef MD_DEFINE_LANES

static inline md_lanes_float md_load_half(const uint16_t *p) {
#if defined(__AVX512F__)
  return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
#elif defined(__F16C__)
  return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
#else
  md_lanes_float v;
  for (int l = 0; l < MD_LANES_OF_float; l++) v[l] = md_float_of_half(p[l]);
  return v;
#endif
}
static inline void md_store_half(uint16_t *p, md_lanes_float v) {
#if defined(__AVX512F__)
  _mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
#elif defined(__F16C__)
  _mm_storeu_si128((__m128i *)(void *)p, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
#else
  for (int l = 0; l < MD_LANES_OF_float; l++) p[l] = md_half_of_float(v[l]);
#endif
}

static inline md_lanes_float md_load_bf16(const uint16_t *p) {
  md_lanes_uint16 stored;
  memcpy(&stored, p, sizeof stored);
  return (md_lanes_float)(__builtin_convertvector(stored, md_lanes_uint32) << 16);
}
static inline void md_store_bf16(uint16_t *p, md_lanes_float v) {
  const md_lanes_uint32 bits = (md_lanes_uint32)v;
  const md_lanes_uint32 rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const md_lanes_uint32 nan = (md_lanes_uint32)((bits & 0x7fffffffu) > 0x7f800000u);
  const md_lanes_uint32 chosen = (nan & ((bits >> 16) | 0x40u)) | (~nan & rounded);
  const md_lanes_uint16 stored = __builtin_convertvector(chosen, md_lanes_uint16);
  memcpy(p, &stored, sizeof stored);
}

static inline md_lanes_float md_load_fixed(const int16_t *p) {
  md_lanes_int16 stored;
  memcpy(&stored, p, sizeof stored);
  return __builtin_convertvector(__builtin_convertvector(stored, md_lanes_int32), md_lanes_float);
}
/* As md_fixed_of_float, of values that are not beyond the steps. */
static inline void md_store_fixed(int16_t *p, md_lanes_float v) {
  const md_lanes_int32 steps = (md_lanes_int32)(v + 0x1.8p23f) - 0x4b400000;
  const md_lanes_int16 stored = __builtin_convertvector(steps, md_lanes_int16);
  memcpy(p, &stored, sizeof stored);
}

/* Stores of whole cache lines, or of their halves in turn, that go past the caches: the line is not
 * read first. p is aligned to the bytes that are stored. Plain stores where there is no such
 * instruction; md_stream_end() before another thread reads. */
#if defined(__AVX512F__)
static inline void md_stream_double(double *p, md_lanes_double v) {
  _mm512_stream_pd(p, v);
}
static inline void md_stream_single(float *p, md_lanes_float v) {
  _mm512_stream_ps(p, v);
}
static inline void md_stream_half(uint16_t *p, md_lanes_float v) {
  const __m256i stored = _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT);
  _mm256_stream_si256((__m256i *)(void *)p, stored);
}
static inline void md_stream_end(void) {
  _mm_sfence();
}
#else
#if defined(__AVX__)
static inline void md_stream_double(double *p, md_lanes_double v) {
  _mm256_stream_pd(p, v);
}
static inline void md_stream_single(float *p, md_lanes_float v) {
  _mm256_stream_ps(p, v);
}
static inline void md_stream_end(void) {
  _mm_sfence();
}
#else
static inline void md_stream_double(double *p, md_lanes_double v) {
  md_store_double(p, v);
}
static inline void md_stream_single(float *p, md_lanes_float v) {
  md_store_single(p, v);
}
static inline void md_stream_end(void) {}
#endif
static inline void md_stream_half(uint16_t *p, md_lanes_float v) {
  md_store_half(p, v);
}
#endif
static inline void md_stream_bf16(uint16_t *p, md_lanes_float v) {
  md_store_bf16(p, v);
}
static inline void md_stream_fixed(int16_t *p, md_lanes_float v) {
  md_store_fixed(p, v);
}

/* Lane l of the result is lane pick[l] of (a, b), a's lanes first. */
static inline md_lanes_int64 md_pick_double(const int32_t *pick) {
  md_half_lanes_int32 v;
  memcpy(&v, pick, sizeof v);
  return __builtin_convertvector(v, md_lanes_int64);
}
static inline md_lanes_int32 md_pick_float(const int32_t *pick) {
  md_lanes_int32 v;
  memcpy(&v, pick, sizeof v);
  return v;
}
#if defined(__AVX512F__)
static inline md_lanes_double md_permute_double(md_lanes_double a, md_lanes_double b,
                                                md_lanes_int64 pick) {
  return _mm512_permutex2var_pd(a, (__m512i)pick, b);
}
static inline md_lanes_float md_permute_float(md_lanes_float a, md_lanes_float b,
                                              md_lanes_int32 pick) {
  return _mm512_permutex2var_ps(a, (__m512i)pick, b);
}
/* Neighbouring lanes in each other's place. */
static inline md_lanes_double md_swap_double(md_lanes_double a) {
  return _mm512_permute_pd(a, 0x55);
}
static inline md_lanes_float md_swap_float(md_lanes_float a) {
  return _mm512_permute_ps(a, 0xb1);
}
#elif defined(__clang__)
static inline md_lanes_double md_permute_double(md_lanes_double a, md_lanes_double b,
                                                md_lanes_int64 pick) {
  const md_lanes_double both[2] = {a, b};
  for (int l = 0; l < MD_LANES_OF_double; l++) a[l] = ((const double *)both)[pick[l]];
  return a;
}
static inline md_lanes_float md_permute_float(md_lanes_float a, md_lanes_float b,
                                              md_lanes_int32 pick) {
  const md_lanes_float both[2] = {a, b};
  for (int l = 0; l < MD_LANES_OF_float; l++) a[l] = ((const float *)both)[pick[l]];
  return a;
}
#else
static inline md_lanes_double md_permute_double(md_lanes_double a, md_lanes_double b,
                                                md_lanes_int64 pick) {
  return __builtin_shuffle(a, b, pick);
}
static inline md_lanes_float md_permute_float(md_lanes_float a, md_lanes_float b,
                                              md_lanes_int32 pick) {
  return __builtin_shuffle(a, b, pick);
}
#endif
#if !defined(__AVX512F__)
#define MD_DEFINE_SWAP(type)                                                                       \
  static inline md_lanes_##type md_swap_##type(md_lanes_##type a) {                                \
    int32_t swap[MD_LANES_OF_##type];                                                              \
    for (int l = 0; l < MD_LANES_OF_##type; l++) swap[l] = l ^ 1;                                  \
    return md_permute_##type(a, a, md_pick_##type(swap));                                          \
  }
MD_DEFINE_SWAP(double)
MD_DEFINE_SWAP(float)
#undef MD_DEFINE_SWAP
#endif

static inline md_lanes_int32 md_lanes_larger(md_lanes_int32 a, md_lanes_int32 b) {
  const md_lanes_int32 chosen = a > b;
  return (a & chosen) | (b & ~chosen);
}

/* The scales that md_field stores with sites whose largest |value| has these bits. */
static inline md_lanes_float md_scale_of_half(md_lanes_int32 largest) {
  const md_lanes_int32 smallest = (md_lanes_int32){0} + 1;
  const md_lanes_int32 exponent = ((largest >> 1) + MD_HALF_CARRY / 2) >> 22;
  return (md_lanes_float)(md_lanes_larger(exponent - 14, smallest) << 23);
}
static inline md_lanes_float md_scale_of_fixed(md_lanes_int32 largest) {
  const md_lanes_float scale = (md_lanes_float)largest * (1.0f / MD_FIXED_STEPS);
  const md_lanes_int32 smallest = (md_lanes_int32){0} + (1 << 23); /* 2^-126 */
  return (md_lanes_float)md_lanes_larger((md_lanes_int32)scale, smallest);
}
