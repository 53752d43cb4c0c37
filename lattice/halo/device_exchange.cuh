#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <type_traits>

#include "base/device_peers.cuh"
#include "base/divisor.h"

extern "C" {
#include "lattice/halo/half_spinor.h"
#include "lattice/halo/transport.h"
}

/* The kernels of device_message.h. A grid is divided among the channels; the last block that
 * finishes a channel closes it. */

static constexpr int EXCHANGE_THREADS = 512;

/* One channel as the kernels see it. Message n goes to send[n % 2] and comes in receive[n % 2]. */
struct exchange_channel {
  const int32_t *face[MD_PARITIES];
  char *send[2];
  const char *receive[2];
  long long *raise;      /* the receiver's flag for this channel; NULL: none is needed */
  const long long *wait; /* this rank's */
  int from;              /* rank */
  int sites;
  int64_t zone;
  int first, blocks; /* of the grid */
  md_half_spinor leg;
};

/* On the device. */
struct exchange_counters {
  long long sent[MD_MOST_MESSAGES], received[MD_MOST_MESSAGES]; /* messages so far */
  long long number[2][MD_MOST_MESSAGES]; /* of the copied message in either buffer, now or next */
  long long looked[MD_MOST_MESSAGES];    /* see arrivals.h; `received` is its `arrived` then */
  unsigned packed[MD_MOST_MESSAGES], unpacked[MD_MOST_MESSAGES]; /* blocks that are done */
  unsigned long long hash_sent[MD_MOST_MESSAGES], hash_received[MD_MOST_MESSAGES];
};

/* In page-locked memory: the first message whose hash or number is not the sender's. */
struct exchange_damage {
  int channel; /* -1: none */
  long long number, got;
  int out_of_turn; /* a recording held an odd number of exchanges, see device_carry.cu */
};

/* Behind the scales of a message, with checks. */
struct exchange_seal {
  unsigned long long hash;
  long long number;
};

struct exchange {
  int channels;
  exchange_channel channel[MD_MOST_MESSAGES];
  exchange_counters *counters;
  md_peer_timeout *timeout;
  exchange_damage *damage;
  int slot; /* of `copied` messages: whose buffers the host has chosen for this exchange */
};

/* A field as the kernels see it. `stride` in entries. */
struct exchange_field {
  char *data;
  float *scale;
  int64_t stride;
  int planes, words; /* words of an entry, or of a half spinor of all right-hand sides */
  md_divisor by_words, by_slices;
  int turn; /* 2 where H^dag reads half spinors, whose q it changes; else 0 */
};

/* What a message carries: planes of values, entries of sites, or half spinors of each slice. */
enum class carried { PLANES, ENTRIES, HALVES };
/* Half spinors of complex numbers T go in such words. */
template <class T> using half_word = std::conditional_t<sizeof(T) == 4, uint2, uint4>;

static __host__ __device__ inline size_t whole_vectors(size_t bytes) {
  return (bytes + 15) / 16 * 16;
}

static __device__ inline unsigned long long mix(unsigned long long value, unsigned long long at) {
  value += at * 0x9e3779b97f4a7c15ull;
  value = (value ^ value >> 32) * 0xd6e8feb86659fd93ull;
  return value ^ value >> 29;
}
/* A sum over the words of a message, so that they may be taken in any order. */
static __device__ inline unsigned long long hash_of(const uint4 &word, unsigned at) {
  const unsigned long long low = word.x | (unsigned long long)word.y << 32;
  const unsigned long long high = word.z | (unsigned long long)word.w << 32;
  return mix(low, 2ull * at + 1) + mix(high, 2ull * at + 2);
}

/* Whether the COUNT sites from place k of a face on are neighbours. They rise within a layer of the
 * face, which has a multiple of four of them, so that the ends of each four tell. */
template <int COUNT> static __device__ inline bool are_neighbours(const int32_t *face, int k) {
  const int first = face[k];
  if (COUNT <= 4) return face[k + COUNT - 1] - first == COUNT - 1;
  return face[k + 3] - first == 3 && face[k + 4] - first == 4 && face[k + 7] - first == 7;
}

/* 16 bytes of a surface in plane order: the values of up to 16 / sizeof(S) sites from k on. */
template <class S>
static __device__ inline uint4 gather_values(const S *plane, const int32_t *face, int k,
                                             int sites) {
  constexpr int V = 16 / sizeof(S);
  union {
    uint4 word;
    S value[V];
  } part;
  const S *const first = plane + face[k];
  if (k + V <= sites && (reinterpret_cast<uintptr_t>(first) & 15) == 0 &&
      are_neighbours<V>(face, k))
    return *reinterpret_cast<const uint4 *>(first);
  part.word = make_uint4(0, 0, 0, 0);
#pragma unroll
  for (int v = 0; v < V; v++)
    if (k + v < sites) part.value[v] = plane[face[k + v]];
  return part.word;
}
template <class S>
static __device__ inline void scatter_values(S *zone, int k, int sites, const uint4 &word) {
  constexpr int V = 16 / sizeof(S);
  if (k + V <= sites && (reinterpret_cast<uintptr_t>(zone + k) & 15) == 0) {
    *reinterpret_cast<uint4 *>(zone + k) = word;
    return;
  }
  union {
    uint4 word;
    S value[V];
  } part = {word};
#pragma unroll
  for (int v = 0; v < V; v++)
    if (k + v < sites) zone[k + v] = part.value[v];
}

static __device__ inline uint4 widen(const uint4 &word) {
  return word;
}
static __device__ inline uint4 widen(const uint2 &word) {
  return make_uint4(word.x, word.y, 0, 0);
}
static __device__ inline uint4 widen(uint32_t word) {
  return make_uint4(word, 0, 0, 0);
}

/* store(i, load(i)) for this thread's share of n words, several on their way at once: few threads
 * are to keep a link busy. Returns their part of the hash. */
template <class WORD, bool CHECK, class LOAD, class STORE>
static __device__ inline unsigned long long carry_words(int n, int thread, int threads,
                                                        unsigned salt, LOAD load, STORE store) {
  constexpr int AT_ONCE = 4;
  unsigned long long hash = 0;
  for (int first = thread; first < n; first += AT_ONCE * threads) {
    WORD word[AT_ONCE]; /* without branches between the loads */
#pragma unroll
    for (int u = 0; u < AT_ONCE; u++) word[u] = load(min(first + u * threads, n - 1));
#pragma unroll
    for (int u = 0; u < AT_ONCE; u++) {
      const int i = first + u * threads;
      if (i >= n) break;
      store(i, word[u]);
      if (CHECK) hash += hash_of(widen(word[u]), salt + i);
    }
  }
  return hash;
}

/* Values of `planes` planes of type S to or from a message: word i of it holds V sites of a plane.
 */
template <class S, bool CHECK>
static __device__ inline unsigned long long pack_planes(const S *data, int64_t stride, int planes,
                                                        const int32_t *face, int sites, uint4 *to,
                                                        int thread, int threads, unsigned salt) {
  constexpr int V = 16 / sizeof(S);
  const int row = (sites + V - 1) / V;
  return carry_words<uint4, CHECK>(
      row * planes, thread, threads, salt,
      [&](int i) {
        const int c = i / row;
        return gather_values(data + c * stride, face, (i - c * row) * V, sites);
      },
      [&](int i, const uint4 &word) { to[i] = word; });
}
/* What a peer wrote must not come from the L1 cache. */
template <class S, bool CHECK>
static __device__ inline unsigned long long unpack_planes(S *zone, int64_t stride, int planes,
                                                          int sites, const uint4 *from, int thread,
                                                          int threads, unsigned salt) {
  constexpr int V = 16 / sizeof(S);
  const int row = (sites + V - 1) / V;
  return carry_words<uint4, CHECK>(
      row * planes, thread, threads, salt, [&](int i) { return __ldcg(from + i); },
      [&](int i, const uint4 &word) {
        const int c = i / row;
        scatter_values(zone + c * stride, (i - c * row) * V, sites, word);
      });
}

/* Entries of many right-hand sides, `words` WORDs each. */
template <class WORD, bool CHECK>
static __device__ inline unsigned long long pack_entries(const WORD *data, int words,
                                                         const int32_t *face, int sites, WORD *to,
                                                         int thread, int threads) {
  return carry_words<WORD, CHECK>(
      sites * words, thread, threads, 0,
      [&](int i) {
        const int k = i / words;
        return data[(int64_t)face[k] * words + (i - k * words)];
      },
      [&](int i, const WORD &word) { to[i] = word; });
}
template <class WORD, bool CHECK>
static __device__ inline unsigned long long
unpack_entries(WORD *zone, int words, int sites, const WORD *from, int thread, int threads) {
  return carry_words<WORD, CHECK>(
      sites * words, thread, threads, 0, [&](int i) { return __ldcg(from + i); },
      [&](int i, const WORD &word) { zone[i] = word; });
}

/* How numbers j of two spins, of `spin` numbers each, become those of a half spinor: to each comes
 * i^q times number j + lower, by its spin. */
struct projection {
  int spin, lower[2], q[2];
};
/* own + i^q other; in 16 bits rounded once, as hops in them round it. */
template <class T> static __device__ inline T plus_turned(T own, T other, int q) {
  if constexpr (sizeof(T) == 4) {
    const uint32_t sign = (q == 1 || q == 2 ? 0x8000u : 0u) | (q >= 2 ? 0x80000000u : 0u);
    const uint32_t turned =
        sign ^ __byte_perm(reinterpret_cast<const uint32_t &>(other), 0, q % 2 ? 0x1032 : 0x3210);
    return __hadd2(own, reinterpret_cast<const T &>(turned));
  } else {
    const auto re = q % 2 ? other.y : other.x, im = q % 2 ? other.x : other.y;
    return {own.x + (q == 1 || q == 2 ? -re : re), own.y + (q >= 2 ? -im : im)};
  }
}
/* A word of a slice's half spinor from number j on. */
template <class T>
static __device__ inline half_word<T> project(const projection &leg, const T *slice, int j) {
  constexpr int V = sizeof(half_word<T>) / sizeof(T);
  union {
    half_word<T> word;
    T of[V];
  } sum = {*reinterpret_cast<const half_word<T> *>(slice + j)};
#pragma unroll
  for (int v = 0; v < V; v++) {
    const bool second = j + v >= leg.spin;
    const int lower = second ? leg.lower[1] : leg.lower[0], q = second ? leg.q[1] : leg.q[0];
    sum.of[v] = plus_turned(sum.of[v], slice[j + v + lower], q);
  }
  return sum.word;
}

/* Half spinors, site by site and slice by slice; the lower spins of a zone become zero. */
template <class T, bool CHECK>
static __device__ inline unsigned long long
pack_halves(const exchange_field &f, const md_half_spinor &leg, const int32_t *face, int sites,
            half_word<T> *to, int thread, int threads) {
  constexpr int V = sizeof(half_word<T>) / sizeof(T);
  const int slices = f.by_slices.by, spin = f.words * V / 2, across = leg.swap ? spin : 0;
  const projection p = {
      spin, {2 * spin + across, 2 * spin - across}, {leg.q[0] ^ f.turn, leg.q[1] ^ f.turn}};
  return carry_words<half_word<T>, CHECK>(
      sites * slices * f.words, thread, threads, 0,
      [&](int i) {
        const int half = md_quotient(i, f.by_words), k = md_quotient(half, f.by_slices);
        const int64_t slice = (int64_t)face[k] * slices + (half - k * slices);
        return project(p, (const T *)f.data + slice * 4 * spin, (i - half * f.words) * V);
      },
      [&](int i, const half_word<T> &word) { to[i] = word; });
}
template <class T, bool CHECK>
static __device__ inline unsigned long long unpack_halves(const exchange_field &f, int64_t zone,
                                                          int sites, const half_word<T> *from,
                                                          int thread, int threads) {
  const int slices = f.by_slices.by;
  half_word<T> *const to = (half_word<T> *)f.data + zone * slices * 2 * f.words;
  return carry_words<half_word<T>, CHECK>(
      sites * slices * f.words, thread, threads, 0, [&](int i) { return __ldcg(from + i); },
      [&](int i, const half_word<T> &word) {
        half_word<T> *const upper = to + i + md_quotient(i, f.by_words) * f.words;
        upper[0] = word;
        upper[f.words] = {};
      });
}

/* True in thread 0 of the block that is the last of its channel; everything that the blocks have
 * written then lies before what that thread does next. */
static __device__ inline bool closes(unsigned *done, int blocks, unsigned long long *sum,
                                     unsigned long long hash, bool check) {
  if (check) {
    for (int lane = 16; lane > 0; lane /= 2) hash += __shfl_down_sync(~0u, hash, lane);
    if (threadIdx.x % 32 == 0) atomicAdd(sum, hash);
  }
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x != 0) return false;
  const bool last = atomicAdd(done, 1u) == (unsigned)blocks - 1;
  __threadfence_system();
  if (last) *done = 0;
  return last;
}

static __device__ inline int channel_of(const exchange &x) {
  int c = 0;
  while (c + 1 < x.channels && (int)blockIdx.x >= x.channel[c + 1].first) c++;
  return c;
}

/* T: values of a plane, words of an entry, or complex numbers of half spinors. */
template <class T, carried WHAT, bool CHECK>
static __global__ void __launch_bounds__(EXCHANGE_THREADS)
    pack_all(const __grid_constant__ exchange x, exchange_field f, int parity) {
  md_wait_for_predecessor(); /* it wrote the field */
  md_release_successor();    /* from here on: that one's places are what is left */
  const int c = channel_of(x);
  const exchange_channel &ch = x.channel[c];
  const long long number = x.counters->sent[c] + 1;
  const int threads = ch.blocks * blockDim.x;
  const int thread = ((int)blockIdx.x - ch.first) * blockDim.x + threadIdx.x;
  const int32_t *face = ch.face[parity];
  char *to = ch.send[number % 2];
  unsigned long long hash;
  size_t used;
  if constexpr (WHAT == carried::PLANES) {
    hash = pack_planes<T, CHECK>((const T *)f.data, f.stride, f.planes, face, ch.sites, (uint4 *)to,
                                 thread, threads, 0);
    used = f.planes * whole_vectors(ch.sites * sizeof(T));
  } else if constexpr (WHAT == carried::ENTRIES) {
    hash = pack_entries<T, CHECK>((const T *)f.data, f.words, face, ch.sites, (T *)to, thread,
                                  threads);
    used = whole_vectors((size_t)ch.sites * f.words * sizeof(T));
  } else {
    hash = pack_halves<T, CHECK>(f, ch.leg, face, ch.sites, (half_word<T> *)to, thread, threads);
    used = whole_vectors((size_t)ch.sites * f.by_slices.by * f.words * sizeof(half_word<T>));
  }
  if (f.scale) {
    hash += pack_planes<float, CHECK>(f.scale, 0, 1, face, ch.sites, (uint4 *)(to + used), thread,
                                      threads, 1u << 30);
    used += whole_vectors(ch.sites * sizeof(float));
  }
  exchange_counters *n = x.counters;
  if (!closes(&n->packed[c], ch.blocks, &n->hash_sent[c], hash, CHECK)) return;
  if (CHECK) {
    *(exchange_seal *)(to + used) = {n->hash_sent[c], number};
    n->hash_sent[c] = 0;
  }
  n->sent[c] = number;
  if (ch.raise) md_raise_flag(ch.raise, number);
}

template <class T, carried WHAT, bool CHECK>
static __global__ void __launch_bounds__(EXCHANGE_THREADS)
    unpack_all(const __grid_constant__ exchange x, exchange_field f) {
  const int c = channel_of(x);
  const exchange_channel &ch = x.channel[c];
  const long long number = x.counters->received[c] + 1;
  const int threads = ch.blocks * blockDim.x;
  const int thread = ((int)blockIdx.x - ch.first) * blockDim.x + threadIdx.x;
  const char *from = ch.receive[number % 2];
  unsigned long long hash;
  size_t used;
  if (ch.wait && threadIdx.x == 0) md_wait_for_flag(ch.wait, number, ch.from, x.timeout);
  __syncthreads();
  if constexpr (WHAT == carried::PLANES) {
    hash = unpack_planes<T, CHECK>((T *)f.data + ch.zone, f.stride, f.planes, ch.sites,
                                   (const uint4 *)from, thread, threads, 0);
    used = f.planes * whole_vectors(ch.sites * sizeof(T));
  } else if constexpr (WHAT == carried::ENTRIES) {
    hash = unpack_entries<T, CHECK>((T *)f.data + ch.zone * f.words, f.words, ch.sites,
                                    (const T *)from, thread, threads);
    used = whole_vectors((size_t)ch.sites * f.words * sizeof(T));
  } else {
    hash =
        unpack_halves<T, CHECK>(f, ch.zone, ch.sites, (const half_word<T> *)from, thread, threads);
    used = whole_vectors((size_t)ch.sites * f.by_slices.by * f.words * sizeof(half_word<T>));
  }
  if (f.scale) {
    hash += unpack_planes<float, CHECK>(f.scale + ch.zone, 0, 1, ch.sites,
                                        (const uint4 *)(from + used), thread, threads, 1u << 30);
    used += whole_vectors(ch.sites * sizeof(float));
  }
  exchange_counters *n = x.counters;
  if (!closes(&n->unpacked[c], ch.blocks, &n->hash_received[c], hash, CHECK)) return;
  if (CHECK) {
    const exchange_seal *seal = (const exchange_seal *)(from + used);
    const long long got = __ldcg(&seal->number);
    const bool whole = __ldcg(&seal->hash) == n->hash_received[c] && got == number;
    if (!whole && *(volatile int *)&x.damage->channel < 0) {
      x.damage->number = number;
      x.damage->got = got;
      __threadfence_system();
      *(volatile int *)&x.damage->channel = c;
    }
    n->hash_received[c] = 0;
  }
  n->received[c] = number;
}
