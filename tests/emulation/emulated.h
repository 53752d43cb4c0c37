#pragma once

#include <cuda_runtime.h>

#include <math.h>
#include <string.h>

#include <algorithm>
#include <functional>

/* Runs the source of a CUDA kernel on the host, so that a machine without a GPU finds what is wrong
 * with its indices, its exchanges between lanes and its barriers. Each thread of a block is a fibre
 * of one thread of the host; it runs until it waits for others. What the compiler makes of a
 * kernel, speed, and races between warps are left to the GPU.
 *
 * The source is compiled by the host's compiler, which knows nothing of CUDA: this header comes
 * before it. */
#undef __launch_bounds__
#define __launch_bounds__(...)
#ifndef __grid_constant__
#define __grid_constant__
#endif
using std::max;
using std::min;

struct emulated_place {
  unsigned x, y, z;
};
extern emulated_place threadIdx, blockIdx, blockDim, gridDim;

/* Runs body() in every thread of block (x, y) of a grid of `blocks` blocks along x. False: lanes of
 * a warp met at different places, of which one had ended, or that compute different things. */
bool emulate_block(int threads, int blocks, int x, int y, const std::function<void()> &body);

/* Waits for the warp or the block. */
void emulated_wait_warp();
void emulated_wait_block();
/* d = a b of the warp; operands: a0 .. a3, b0, b1 of the lane (lattice/fields/cuda/block_mma.cuh).
 */
void emulated_mma(const double (&operands)[6], double (&d)[4]);
float __shfl_xor_sync(unsigned lanes, float value, int mask);

static inline void __syncthreads() {
  emulated_wait_block();
}
static inline void __syncwarp() {
  emulated_wait_warp();
}
static inline void __threadfence_system() {}
static inline void md_wait_for_predecessor() {}
static inline float __uint_as_float(unsigned bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
static inline unsigned __float_as_uint(float value) {
  unsigned bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
static inline int __float2int_rn(float value) {
  return (int)nearbyintf(value);
}
