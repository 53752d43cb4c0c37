#pragma once

/* Tensor Core products in double for GPUs before compute capability 9.0, which have the m8n8k4
 * shape only. PTX ISA 7.0, "Matrix Fragments for mma.m8n8k4 with .f64": lane 4g+t holds A(g, t),
 * B(t, g), C(g, 2t) and C(g, 2t+1). */
namespace md {

/* (c0, c1) += A B. */
__device__ inline void mma_m8n8k4(double &c0, double &c1, double a, double b) {
  asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
      : "+d"(c0), "+d"(c1)
      : "d"(a), "d"(b));
}

/* What m16n8 shapes do with four deep: rows g in c[0], c[1] and rows g+8 in c[2], c[3]. */
__device__ inline void mma_m16n8k4(double c[4], double low, double high, double b) {
  mma_m8n8k4(c[0], c[1], low, b);
  mma_m8n8k4(c[2], c[3], high, b);
}

} // namespace md
