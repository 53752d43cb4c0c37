#pragma once

#include "base/device.cuh"
#include "base/device_peers.h"

/* Flags between GPUs. A flag only grows: the one who writes data for others raises it to a new tick
 * afterwards; who needs the data waits until the flag has reached the tick. */

/* Raises a flag, perhaps of another GPU, after everything that this thread has written or, behind a
 * barrier, its block. */
static __device__ inline void md_raise_flag(long long *flag, long long tick) {
  __threadfence_system();
  asm volatile("st.release.sys.global.s64 [%0], %1;" ::"l"(flag), "l"(tick) : "memory");
}
static __device__ inline long long md_read_flag(const long long *flag) {
  long long tick;
  asm volatile("ld.acquire.sys.global.s64 %0, [%1];" : "=l"(tick) : "l"(flag) : "memory");
  return tick;
}
static __device__ inline unsigned long long md_nanoseconds() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

/* True once ready() is; false after 20 s, or when an earlier wait failed: then *timeout names
 * `rank`, who was to make it so with its `tick`. The host's memory is looked at once in OFTEN looks
 * and not at first: when every block of a kernel did, copies between the GPUs took a hundred times
 * as long. */
template <unsigned OFTEN = 256, class READY>
static __device__ inline bool md_wait_until(READY ready, long long tick, int rank,
                                            md_peer_timeout *timeout) {
  constexpr unsigned long long patience = 20000000000ull; /* nanoseconds */
  if (ready()) return true;
  const unsigned long long start = md_nanoseconds();
  for (unsigned spins = 1; !ready(); spins++) {
    if (spins % OFTEN != 0) continue; /* a look at the host's memory takes longer than the flag */
    if (*(volatile int *)&timeout->rank >= 0) return false;
    if (md_nanoseconds() - start < patience) continue;
    timeout->tick = tick;
    __threadfence_system();
    *(volatile int *)&timeout->rank = rank;
    return false;
  }
  return true;
}

/* The same for this rank's flag, which `rank` raises. */
static __device__ inline bool md_wait_for_flag(const long long *flag, long long tick, int rank,
                                               md_peer_timeout *timeout) {
  return md_wait_until([=] { return md_read_flag(flag) >= tick; }, tick, rank, timeout);
}
