#ifndef MD_LATTICE_HALO_DEVICE_COPY_CUH
#define MD_LATTICE_HALO_DEVICE_COPY_CUH

#include "lattice/halo/device_exchange.cuh"

/* Messages that the copy engines carry between GPUs. They drive the link faster than a few blocks
 * do and take no place on a multiprocessor from the interior, even where one block of it fills one;
 * what a copy costs to start pays only for long messages. A thread raises the flag of a message
 * behind it; one warp awaits the flags of all channels. */

/* Shorter messages go on two streams, as a copy and its flag spend more time on being started than
 * on their way; longer ones are faster one behind the other. */
static constexpr size_t BESIDE_BYTES = (size_t)4 << 20;

static inline bool is_contiguous(const int32_t *site, int64_t sites) {
  for (int64_t k = 1; k < sites; k++)
    if (site[k] != site[0] + k) return false;
  return true;
}

/* After the copies of the message of channel c into buffer `slot`. The host chose it by its own
 * count of messages, so a replayed recording must go on in turn. */
static __global__ void raise_flag(const __grid_constant__ exchange x, int c, int slot) {
  const long long number = x.counters->sent[c] + 1;
  if (number % 2 != slot) *(volatile int *)&x.damage->out_of_turn = 1;
  x.counters->sent[c] = number;
  md_raise_flag(x.channel[c].raise, number);
}

/* Before the copies of what arrived, after all of raise_flag: the messages that come have the
 * number of those that went. */
static __global__ void await_flags(const __grid_constant__ exchange x) {
  const int c = threadIdx.x;
  if (c >= x.channels) return;
  md_wait_for_flag(x.channel[c].wait, x.counters->sent[c], x.channel[c].from, x.timeout);
}

/* One message: `planes` rows of values of `row_bytes`, in a field `pitch` bytes apart, in the
 * message each filled up to 16 bytes; then the scales, unless NULL. */
struct carried {
  char *values;
  float *scales;
  size_t planes, row_bytes, pitch, scale_bytes;
};
static inline carried carried_of(const exchange_field &f, size_t entry, int64_t first, int sites) {
  return {f.data + (size_t)first * entry,
          f.scale ? f.scale + first : NULL,
          (size_t)f.planes,
          (size_t)sites * entry,
          (size_t)f.stride * entry,
          (size_t)sites * sizeof(float)};
}

/* Queues the copies from the field into the message, or back. */
static inline cudaError_t carry(const carried &c, char *message, bool out, cudaStream_t stream) {
  const size_t row = whole_vectors(c.row_bytes);
  void *const to = out ? message : c.values;
  const void *const from = out ? c.values : message;
  cudaError_t error = cudaMemcpy2DAsync(to, out ? row : c.pitch, from, out ? c.pitch : row,
                                        c.row_bytes, c.planes, cudaMemcpyDeviceToDevice, stream);
  if (error != cudaSuccess || !c.scales) return error;
  char *const scales = message + c.planes * row;
  return out ? cudaMemcpyAsync(scales, c.scales, c.scale_bytes, cudaMemcpyDeviceToDevice, stream)
             : cudaMemcpyAsync(c.scales, scales, c.scale_bytes, cudaMemcpyDeviceToDevice, stream);
}

#endif
