#pragma once

#include "base/device.cuh"
#include "dirac/tensor/tensor.h"
#include "lattice/fields/cuda/block_mma.cuh"

/* One warp, one output site, a tile of 16 (or 8) right-hand sides: the fragments of `stacked`, see
 * packing.h. Lane 4g+t holds the directions t and t+4 of the tile rows g and g+8 and the links
 * towards column g. */
namespace stacked {

template <typename T> struct storage;

/* 16-bit types: a complex number is one 32-bit register. */
template <typename T> struct storage16 {
  using number = uint32_t;
  using accumulator = float;
  static constexpr bool adjacent = true; /* rows g and g+8 are neighbours in memory */
  struct links {
    uint4 first;  /* direction t: colours 0..2; t+4: colour 0 */
    uint2 second; /* t+4: colours 1, 2 */
  };
  static __device__ links load_links(const void *site_links, int lane_slot) {
    const uint4 *p = static_cast<const uint4 *>(site_links);
    return {__ldcs(p + lane_slot), __ldcs(reinterpret_cast<const uint2 *>(p + 12) + lane_slot)};
  }
};
template <> struct storage<__half> : storage16<__half> {
  static constexpr bool scaled = true, fuses = true;
};
template <> struct storage<__nv_bfloat16> : storage16<__nv_bfloat16> {
  static constexpr bool scaled = false, fuses = false;
};
template <> struct storage<double> {
  using number = double2;
  using accumulator = double;
  static constexpr bool scaled = false, fuses = true;
  static constexpr bool adjacent = false;
  struct links {
    double2 piece[6];
  };
  static __device__ links load_links(const void *site_links, int lane_slot) {
    const double2 *p = static_cast<const double2 *>(site_links);
    links l;
#pragma unroll
    for (int n = 0; n < 6; n++) l.piece[n] = __ldcs(p + 12 * n + lane_slot);
    return l;
  }
};

/* What `launch` returns for a number of the storage type. */
template <class LAUNCH> cudaError_t by_storage(md_precision precision, LAUNCH launch) {
  return precision == MD_DOUBLE ? launch(double())
         : precision == MD_HALF ? launch(__half())
                                : launch(__nv_bfloat16());
}

/* Launches a kernel of which each warp takes a group of eight output sites. */
enum { GATHER_WARPS = 4, GROUP = 8 };
template <class KERNEL> cudaError_t launch_groups(const md_tensor_call *call, KERNEL kernel) {
  const int64_t sites_per_block = GATHER_WARPS * GROUP;
  const unsigned blocks =
      static_cast<unsigned>((call->count + sites_per_block - 1) / sites_per_block);
  if (blocks == 0) return cudaSuccess;
  md_launch_early_on(call->queue, kernel, dim3(blocks), dim3(32 * GATHER_WARPS), 0, *call);
  return cudaGetLastError();
}

/* Of a lane: where it stands in the tile. */
struct lane {
  int g, t, slot; /* slot: md_stacked_link_at's lane; columns 6 and 7 repeat row 2, unused */
  __device__ lane() {
    const int id = threadIdx.x % 32;
    g = id / 4, t = id % 4;
    slot = 4 * min(g / 2, 2) + t;
  }
};

/* The two rows of one lane for one direction and colour. */
template <typename T> struct pair { typename storage<T>::number low, high; };

/* Bytes from a tile's first right-hand side of a colour to the low row of the lanes g. */
template <typename T, int TILE> __device__ inline int row_offset(int g) {
  constexpr int rows = TILE == 16 && storage<T>::adjacent ? 2 : 1;
  return rows * static_cast<int>(sizeof(typename storage<T>::number)) * g;
}

/* ONCE: from global memory, and not kept in L2, where it would drive out what is read again. */
template <bool ONCE, typename N> __device__ inline N load_number(const N *p) {
  if constexpr (ONCE)
    return __ldcs(p);
  else
    return *p;
}

/* Rows g and g+8 of a source colour: `row` points to the former. `count` right-hand sides belong
 * to this tile. FULL: count is the tile. */
template <typename T, int TILE, bool FULL, bool ONCE = false>
__device__ inline pair<T> load_rows(const char *row, int g, int count) {
  using number = typename storage<T>::number;
  const number *p = reinterpret_cast<const number *>(row);
  pair<T> v = {};
  if constexpr (TILE == 8) {
    if (FULL || g < count) v.low = load_number<ONCE>(p);
  } else if constexpr (!storage<T>::adjacent) {
    if (FULL || g < count) v.low = load_number<ONCE>(p);
    if (FULL || g + 8 < count) v.high = load_number<ONCE>(p + 8);
  } else if constexpr (FULL) {
    const uint2 both = load_number<ONCE>(reinterpret_cast<const uint2 *>(p));
    v.low = both.x, v.high = both.y;
  } else {
    if (2 * g < count) v.low = load_number<ONCE>(p);
    if (2 * g + 1 < count) v.high = load_number<ONCE>(p + 1);
  }
  return v;
}

/* Scale factors of a lane's two directions, with the sign that turns Im into -Im for real columns:
 * a pair of 16-bit numbers to multiply a pair of link numbers with. */
struct factors {
  uint32_t forward, backward;
};
/* packed: fp16 ratio of direction t, of t+4 in the upper half. */
__device__ inline factors factors_of(uint32_t packed, int g) {
  const uint32_t sign = g % 2 ? 0x3c003c00u : 0xbc003c00u; /* 1, 1 or 1, -1 */
  const __half2 ratios = *reinterpret_cast<const __half2 *>(&packed);
  const __half2 signs = *reinterpret_cast<const __half2 *>(&sign);
  const __half2 forward = __hmul2(__low2half2(ratios), signs);
  const __half2 backward = __hmul2(__high2half2(ratios), signs);
  return {*reinterpret_cast<const uint32_t *>(&forward),
          *reinterpret_cast<const uint32_t *>(&backward)};
}

/* (re, im) -> column pair of B: (re, -im) towards a real part, (im, re) towards an imaginary. */
__device__ inline uint32_t column_of(__half, uint32_t u, uint32_t factor, int g) {
  const uint32_t turned = __byte_perm(u, 0, g % 2 ? 0x1032 : 0x3210);
  const __half2 product = __hmul2(*reinterpret_cast<const __half2 *>(&turned),
                                  *reinterpret_cast<const __half2 *>(&factor));
  return *reinterpret_cast<const uint32_t *>(&product);
}
__device__ inline uint32_t column_of(__nv_bfloat16, uint32_t u, uint32_t, int g) {
  return __byte_perm(u, 0, g % 2 ? 0x1032 : 0x3210) ^ (g % 2 ? 0u : 0x80000000u);
}
__device__ inline double2 column_of(double, double2 u, uint32_t, int g) {
  return g % 2 ? make_double2(u.y, u.x) : make_double2(u.x, -u.y);
}

/* Complex number n = colour + 3 * (direction / 4) of the lane's six. */
template <typename L> __device__ inline uint32_t piece_of(const L &l, int n) {
  return n == 0   ? l.first.x
         : n == 1 ? l.first.y
         : n == 2 ? l.first.z
         : n == 3 ? l.first.w
         : n == 4 ? l.second.x
                  : l.second.y;
}
__device__ inline double2 piece_of(const storage<double>::links &l, int n) {
  return l.piece[n];
}

/* c += A B, one step of k = 16: a source colour of all eight directions. */
template <typename T>
__device__ inline void multiply(T type, float (&c)[4], pair<T> forward, pair<T> backward,
                                uint32_t b0, uint32_t b1) {
  md_block_rows::mma(c, make_uint4(forward.low, forward.high, backward.low, backward.high), b0, b1,
                     type);
}
__device__ inline void multiply(double, double (&c)[4], pair<double> forward, pair<double> backward,
                                double2 b0, double2 b1) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
  md::mma_m16n8k4(c, forward.low.x, forward.high.x, b0.x);
  md::mma_m16n8k4(c, forward.low.y, forward.high.y, b0.y);
  md::mma_m16n8k4(c, backward.low.x, backward.high.x, b1.x);
  md::mma_m16n8k4(c, backward.low.y, backward.high.y, b1.y);
#else
  asm("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, "
      "{%4,%5,%6,%7,%8,%9,%10,%11}, {%12,%13,%14,%15}, {%0,%1,%2,%3};"
      : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
      : "d"(forward.low.x), "d"(forward.high.x), "d"(forward.low.y), "d"(forward.high.y),
        "d"(backward.low.x), "d"(backward.high.x), "d"(backward.low.y), "d"(backward.high.y),
        "d"(b0.x), "d"(b0.y), "d"(b1.x), "d"(b1.y));
#endif
}

/* c += the product of a site and link field: three steps. forward and backward point to the lane's
 * low row in the source sites of its two directions; a colour has colour_bytes. */
template <typename T, int TILE, bool FULL>
__device__ inline void product(typename storage<T>::accumulator (&c)[4],
                               const typename storage<T>::links &links, const char *forward,
                               const char *backward, int colour_bytes, int count, factors f,
                               const lane &at) {
#pragma unroll
  for (int colour = 0; colour < 3; colour++) {
    const pair<T> ahead = load_rows<T, TILE, FULL>(forward + colour * colour_bytes, at.g, count);
    const pair<T> behind = load_rows<T, TILE, FULL>(backward + colour * colour_bytes, at.g, count);
    multiply(T{}, c, ahead, behind, column_of(T{}, piece_of(links, colour), f.forward, at.g),
             column_of(T{}, piece_of(links, colour + 3), f.backward, at.g));
  }
}

/* Half: lane 4g+t has the scales of the sources of site g in the directions t and t+4 of a link
 * field. The biased exponent of the largest of the site's eight. */
__device__ inline int largest_exponent(float forward, float backward) {
  int most = max(__float_as_int(forward) >> 23, __float_as_int(backward) >> 23);
  most = max(most, __shfl_xor_sync(0xffffffffu, most, 1));
  return max(most, __shfl_xor_sync(0xffffffffu, most, 2));
}
/* The ratios to the scale of exponent `most`, packed for factors_of. Scales are powers of two, so
 * ratios are exact; below 2^-24 they are zero. No scale is near the largest float, since 2^15 times
 * it is one. */
__device__ inline uint32_t ratios_to(int most, float forward, float backward) {
  const float inverse = __int_as_float((254 - most) << 23);
  const __half2 packed = __floats2half2_rn(forward * inverse, backward * inverse);
  return *reinterpret_cast<const uint32_t *>(&packed);
}

} // namespace stacked
