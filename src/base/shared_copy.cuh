#pragma once

/* Barriers in shared memory (mbarrier) and the bulk copies that they count, for the kernels that
 * keep a copy engine busy beside their products: PTX ISA 8.0, chapters "mbarrier" and
 * "cp.async.bulk"; sm_90 and later. Addresses are in shared memory, 32 bits. */
#include <cstdint>

namespace md {

__device__ inline uint32_t shared_address(const void *pointer) {
  return (uint32_t)__cvta_generic_to_shared(pointer);
}

__device__ inline void barrier_init(uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}

/* Makes barrier_init visible to the copy engine and to the other blocks of a cluster. */
__device__ inline void fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* Arrives and adds `bytes` to what the phase waits for. */
__device__ inline void barrier_expect(uint32_t barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

/* It orders ordinary accesses to shared memory, not the copy engine's: before the engine is told
 * that it may write again, what stood there must have been used, not only its reads begun. */
__device__ inline void barrier_arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/* Returns when the phase of that parity is complete. */
__device__ inline void barrier_wait(uint32_t barrier, int parity) {
  asm volatile("{\n"
               ".reg .pred done;\n"
               "again:\n"
               "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
               "@done bra.uni out;\n"
               "bra.uni again;\n"
               "out:\n"
               "}" ::"r"(barrier),
               "r"(parity)
               : "memory");
}

/* `bytes`, a multiple of 16, from 16-byte aligned global memory; counted at `barrier`. */
__device__ inline void copy_bulk(uint32_t to, const void *from, int bytes, uint32_t barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
               "[%0], [%1], %2, [%3];" ::"r"(to),
               "l"(from), "r"(bytes), "r"(barrier)
               : "memory");
}

/* `bytes`, a multiple of 16, from shared to 16-byte aligned global memory, when the thread says
 * commit_stores; wait_for_reads returns when shared memory has been read. Other threads that wrote
 * there said fence_for_copies before they told this one. */
__device__ inline void store_bulk(void *to, const void *from, int bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
               "r"(shared_address(from)), "r"(bytes)
               : "memory");
}
__device__ inline void commit_stores() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
__device__ inline void wait_for_reads() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
/* The same but for the last MANY commits; and when the stores have been made, for others to see
 * behind a fence of the thread. */
template <int MANY> __device__ inline void wait_for_reads_but() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(MANY) : "memory");
}
__device__ inline void wait_for_stores() {
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
__device__ inline void fence_for_copies() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* `threads` of the block, whole warps that do not end before, meet, beside __syncthreads. */
__device__ inline void meet(int threads) {
  asm volatile("bar.sync 1, %0;" ::"r"(threads) : "memory");
}

/* Asks L2 for `bytes`, a multiple of 16, of 16-byte aligned global memory. */
__device__ inline void prefetch_bulk(const void *from, int bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes) : "memory");
}

/* The same for pointers. */
__device__ inline void barrier_init(uint64_t *barrier, int arrivals) {
  barrier_init(shared_address(barrier), arrivals);
}
__device__ inline void barrier_expect(uint64_t *barrier, int bytes) {
  barrier_expect(shared_address(barrier), bytes);
}
__device__ inline void barrier_arrive(uint64_t *barrier) {
  barrier_arrive(shared_address(barrier));
}
__device__ inline void barrier_wait(uint64_t *barrier, int parity) {
  barrier_wait(shared_address(barrier), parity);
}
__device__ inline void copy_bulk(void *to, const void *from, int bytes, uint64_t *barrier) {
  copy_bulk(shared_address(to), from, bytes, shared_address(barrier));
}

} // namespace md
