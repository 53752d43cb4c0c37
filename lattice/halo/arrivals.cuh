#pragma once

#include "base/device_peers.cuh"
#include "lattice/halo/arrivals.h"

static __device__ inline long long md_newest_arrival(const md_halo_arrival &a) {
  long long number;
  asm volatile("ld.acquire.gpu.global.s64 %0, [%1];" : "=l"(number) : "l"(a.arrived) : "memory");
  return number;
}

/* Returns when message `number` has arrived, or gives up as base/device_peers.cuh says. The thread
 * that comes first looks at the flag and tells the others of the GPU, who look where it says so:
 * when all looked at the flag, copies between the GPUs were slower. */
static __device__ inline void md_look_for_arrival(const md_halo_arrivals &arrivals,
                                                  const md_halo_arrival &a, long long number) {
  const bool first = atomicMax(a.looked, number) < number;
  const bool there = md_wait_until<4096>(
      [&] {
        if ((first ? md_read_flag(a.flag) : md_newest_arrival(a)) >= number) return true;
        __nanosleep(first ? 100 : 500);
        return false;
      },
      number, a.from, arrivals.timeout);
  if (!first || !there) return;
  asm volatile("st.release.gpu.global.s64 [%0], %1;" ::"l"(a.arrived), "l"(number) : "memory");
}

/* Returns once the message is there, for what this thread reads and for the bulk copies that it
 * starts: which of its entries is the halo site `site`. The number of the message comes from a
 * counter on the device, as replayed recordings count on; its parity tells whether this rank's own
 * message has been counted already.
 *
 * told: in shared memory, 0 at first, and touched by atomic operations alone. One warp of the block
 * `looks` and tells the others. */
static __device__ inline int md_await_arrival(const md_halo_arrivals &arrivals, int direction,
                                              int site, bool looks, int *told) {
  const md_halo_arrival &a = arrivals.of[direction];
  const unsigned together = __activemask();
  if (threadIdx.x % 32 == __ffs(together) - 1 && looks && !atomicOr(told, 0)) {
    const long long sent = *(const volatile long long *)a.sent;
    md_look_for_arrival(arrivals, a, sent + (sent % 2 == arrivals.parity ? 0 : 1));
    atomicExch(told, 1);
  }
  while (!atomicOr(told, 0)) __nanosleep(100);
  __syncwarp(together);
  __threadfence();
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm volatile("fence.proxy.async.global;" ::: "memory");
#endif
  return site - static_cast<int>(a.zone);
}
