#include "base/shared_copy.cuh"
#include "lattice/halo/device_messages.cuh"

/* Messages pumped to a peer by a few multiprocessors, which the interior leaves: one thread of each
 * brings pieces of a surface into its shared memory and from there into the peer's memory, both by
 * bulk copies. The first piece goes 15 us earlier than by a copy engine, and no pauses lie between
 * runs of sites, scales and flags; beside a march eight then do 0.23 TB/s, an engine 0.25. */

/* Pieces in shared memory, and how many of them are on their way there. So much of it leaves a
 * march no place beside the block. */
static constexpr int SLOTS = 24, AHEAD = 16, PIECE_BYTES = 8192, MULTIPROCESSORS = 8;
static constexpr int SHARED_BYTES = SLOTS * PIECE_BYTES;

/* A message: its values and its scales, each as so many runs of sites. */
struct pumped {
  int runs;
  struct run {
    const char *from;
    char *to;
    long long bytes; /* a multiple of 16, as the addresses are */
  } run[2 * MD_MOST_DEPTH];
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
/* Every gridDim.x-th piece of a message from this block's first one on. */
struct walk_of_pieces {
  const pumped &message;
  int run = 0;
  long long at = static_cast<long long>(blockIdx.x) * PIECE_BYTES;
  __device__ explicit walk_of_pieces(const pumped &m) : message(m) { find(); }
  __device__ void find() {
    while (run < message.runs && at >= whole(message.run[run].bytes))
      at -= whole(message.run[run++].bytes);
  }
  /* A run is so many whole pieces, the last one not full. */
  static __device__ long long whole(long long bytes) {
    return (bytes + PIECE_BYTES - 1) / PIECE_BYTES * PIECE_BYTES;
  }
  __device__ bool more() const { return run < message.runs; }
  __device__ int bytes() const {
    return static_cast<int>(min(message.run[run].bytes - at, (long long)PIECE_BYTES));
  }
  __device__ void next() {
    at += static_cast<long long>(gridDim.x) * PIECE_BYTES;
    find();
  }
};

/* The thread's share of the message, which lies in the peer's memory at the end. */
static __device__ inline void pump_pieces(const pumped &message, char *slots, uint64_t *filled) {
  walk_of_pieces in(message), out(message);
  const auto bring = [&](int slot) {
    md::barrier_expect(&filled[slot], in.bytes());
    md::copy_bulk(slots + slot * PIECE_BYTES, message.run[in.run].from + in.at, in.bytes(),
                  &filled[slot]);
    in.next();
  };
  for (int k = 0; k < SLOTS; k++) md::barrier_init(&filled[k], 1);
  md::fence_barrier_init();
  for (int k = 0; k < AHEAD && in.more(); k++) bring(k);
  for (int k = 0; out.more(); k++, out.next()) {
    const int slot = k % SLOTS;
    md::barrier_wait(&filled[slot], k / SLOTS % 2);
    md::store_bulk(message.run[out.run].to + out.at, slots + slot * PIECE_BYTES, out.bytes());
    md::commit_stores();
    if (!in.more()) continue;
    md::wait_for_reads_but<SLOTS - AHEAD>();
    bring((k + AHEAD) % SLOTS);
  }
  md::wait_for_stores();
}
#endif

static __global__ void pump(const __grid_constant__ exchange x, const __grid_constant__ pumped p,
                            int c) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900 /* not launched elsewhere */
  extern __shared__ __align__(128) char slots[];
  __shared__ uint64_t filled[SLOTS];
  pump_pieces(p, slots, filled);
  if (closes(&x.counters->packed[c], gridDim.x, NULL, 0, false))
    md_raise_flag(x.channel[c].raise, x.counters->number[x.slot][c]);
#endif
}

/* The message of channel c of `field`, of one plane. */
static pumped message_of(const md_device_messages *m, const md_field *field, int c) {
  const md_halo_message *ch = &m->plan->channel[c];
  const size_t entry = md_message_entry_bytes(&m->plan->shape);
  const exchange_field view = view_of(m, field, 1);
  const int64_t length = ch->sites / m->runs[c];
  char *const values = m->x.channel[c].send[m->x.slot];
  char *const scales = values + md_device_message_values(m, c);
  pumped p = {};
  for (int64_t k = 0; k < ch->sites; k += length) {
    const int64_t first = ch->face[field->parity][k];
    p.run[p.runs++] = {view.data + (size_t)first * entry, values + (size_t)k * entry,
                       (long long)((size_t)length * entry)};
    if (view.scale)
      p.run[p.runs++] = {(const char *)(view.scale + first), scales + (size_t)k * sizeof(float),
                         (long long)((size_t)length * sizeof(float))};
  }
  return p;
}

/* Sixteen bytes are four scales. */
static bool in_fours(const md_halo_message *ch, int runs) {
  bool all = ch->sites / runs % 4 == 0;
  for (int p = 0; p < MD_PARITIES; p++)
    for (int64_t k = 0; k < ch->sites; k += ch->sites / runs) all &= ch->face[p][k] % 4 == 0;
  return all;
}

int md_device_messages_pumps(const md_context *context, const md_device_messages *m) {
  const md_halo_plan *plan = m->plan;
  const md_device_facts *gpu = &context->gpu;
  bool can = gpu->code >= 90 && gpu->block_shared_bytes >= SHARED_BYTES + 1024 &&
             gpu->multiprocessors > 2 * MULTIPROCESSORS && !md_shape_planar(&plan->shape) &&
             md_message_entry_bytes(&plan->shape) % 16 == 0;
  for (int c = 0; c < plan->channels && can; c++)
    can = m->runs[c] > 0 && in_fours(&plan->channel[c], m->runs[c]);
  return can ? MULTIPROCESSORS : 0;
}

cudaError_t md_device_messages_pump(const md_device_messages *m, const md_field *field, int c) {
  const cudaError_t error =
      cudaFuncSetAttribute(pump, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
  if (error != cudaSuccess) return error;
  pump<<<m->pumps, 1, SHARED_BYTES, m->in>>>(m->x, message_of(m, field, c), c);
  return cudaGetLastError();
}
