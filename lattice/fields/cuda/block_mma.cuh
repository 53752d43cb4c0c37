#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "base/double_mma.cuh"

/* The products of block operations, d += a b of 16 x 8 and 8 x 8 numbers over a warp. Lane 4 g + t
 * holds a of rows g, g + 8 in column t and of the same rows in column t + 4, b of rows t and t + 4
 * in column g, d of row g in columns 2 t, 2 t + 1 and the same of row g + 8 (PTX ISA, "Matrix
 * Fragments for mma.m16n8k8"). In a file of their own, for which tests/emulation has another. */

namespace md_block_rows {

static __device__ inline void mma(double (&d)[4], const double (&a)[4], double b0, double b1) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
  md::mma_m16n8k4(d, a[0], a[1], b0);
  md::mma_m16n8k4(d, a[2], a[3], b1);
#else
  asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
      : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b0), "d"(b1));
#endif
}

/* In tf32: the lower 13 bits of a and b do not count. */
static __device__ inline void mma(float (&d)[4], float a0, float a1, float a2, float a3, float b0,
                                  float b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(__float_as_uint(a0)), "r"(__float_as_uint(a1)), "r"(__float_as_uint(a2)),
        "r"(__float_as_uint(a3)), "r"(__float_as_uint(b0)), "r"(__float_as_uint(b1)));
}

/* d += a b of 16 x 16 and 16 x 8 numbers in 16 bits, two in a word: a.x and a.y of rows g and g + 8
 * in columns 2 t and 2 t + 1, a.z and a.w of the same rows in columns 2 t + 8 and 2 t + 9, b0 and
 * b1 of the same rows in column g, d as above (PTX ISA, "Matrix Fragments for mma.m16n8k16"). The
 * last argument tells the type. */
static __device__ inline void mma(float (&d)[4], const uint4 &a, uint32_t b0, uint32_t b1, __half) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
}
static __device__ inline void mma(float (&d)[4], const uint4 &a, uint32_t b0, uint32_t b1,
                                  __nv_bfloat16) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
}

} // namespace md_block_rows
