#include "lattice/halo/device_messages.cuh"

/* Messages that go between GPUs beside an interior of which one block fills a multiprocessor. Long
 * ones are carried by a copy engine, which takes no place there and drives the link best. It does
 * one thing after another, with pauses of 2 to 5 us, and 10 behind a kernel: so it carries all
 * messages in one stream, and behind each its flag. A thread awaits the flag of each channel, one
 * counts when all have gone; neither is in the way of the interior. For short messages the start
 * of copies takes longer than their way. They are pushed by one small block per multiprocessor,
 * which finds place beside the march of the tensor backend: a warp on each quarter, of 32 registers
 * per thread, and no shared memory. */

/* Shorter messages are pushed. */
static constexpr size_t PUSHED_BYTES = (size_t)4 << 20;
static constexpr int PUSH_THREADS = 128;
/* 32 registers: as many blocks share those of a multiprocessor, where it has places for 2048
 * threads. Those of compute capability 12.0 have 1536, which would get 40. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1200
#define MD_PUSH_BOUNDS __maxnreg__(32)
#else
#define MD_PUSH_BOUNDS __launch_bounds__(PUSH_THREADS, 16)
#endif

/* Where the messages of all channels lie. */
struct pushed {
  const uint4 *values[MD_MOST_MESSAGES];
  const float *scales[MD_MOST_MESSAGES]; /* NULL: none */
  int words[MD_MOST_MESSAGES];           /* of the values */
};

static __global__ void MD_PUSH_BOUNDS push_all(const __grid_constant__ exchange x,
                                               const __grid_constant__ pushed p) {
  constexpr int AT_ONCE = 3;
  const int c = channel_of(x);
  const exchange_channel &ch = x.channel[c];
  const int thread = ((int)blockIdx.x - ch.first) * PUSH_THREADS + threadIdx.x;
  const int threads = ch.blocks * PUSH_THREADS, words = p.words[c];
  const long long number = x.counters->sent[c] + 1;
  uint4 *const to = (uint4 *)ch.send[x.slot];
  const uint4 *const from = p.values[c];
  for (int first = thread; first < words; first += AT_ONCE * threads) {
    uint4 word[AT_ONCE];
#pragma unroll
    for (int u = 0; u < AT_ONCE; u++)
      if (first + u * threads < words) word[u] = from[first + u * threads];
#pragma unroll
    for (int u = 0; u < AT_ONCE; u++)
      if (first + u * threads < words) to[first + u * threads] = word[u];
  }
  if (p.scales[c])
    for (int k = thread; k < ch.sites; k += threads) ((float *)(to + words))[k] = p.scales[c][k];
  if (!closes(&x.counters->packed[c], ch.blocks, NULL, 0, false)) return;
  if (number % 2 != x.slot) *(volatile int *)&x.damage->out_of_turn = 1;
  x.counters->sent[c] = number;
  x.counters->number[1 - x.slot][c] = number + 1;
  md_raise_flag(ch.raise, number);
}

/* How many runs of sites behind each other, all of one length, make up a surface; 0: none do. */
static inline int64_t runs_of(const int32_t *site, int64_t sites) {
  int64_t runs = 1;
  for (int64_t k = 1; k < sites; k++) runs += site[k] != site[k - 1] + 1;
  const int64_t length = sites / runs;
  for (int64_t k = 1; k < sites; k++)
    if ((site[k] != site[k - 1] + 1) != (k % length == 0)) return 0;
  return runs;
}

/* The message that comes has the number of that which goes. */
static __global__ void await_flag(const __grid_constant__ exchange x, int c) {
  const long long number = x.counters->number[x.slot][c];
  md_wait_for_flag(x.channel[c].wait, number, x.channel[c].from, x.timeout);
}

/* After the messages have gone; the first time before, when none has (`slot` is -1). The host
 * chose the buffers by its own count, so a replayed recording must go on in turn. */
static __global__ void count_messages(const __grid_constant__ exchange x) {
  const int c = threadIdx.x;
  if (c >= x.channels) return;
  exchange_counters *n = x.counters;
  const long long number = x.slot < 0 ? 0 : n->number[x.slot][c];
  if (x.slot >= 0 && number != n->sent[c] + 1) *(volatile int *)&x.damage->out_of_turn = 1;
  n->sent[c] = number;
  n->number[(number + 1) % 2][c] = number + 1;
}

/* Sites of a field from `first` on, which are those of a message of `all` sites from `at` on. */
struct run {
  int64_t first, sites, at, all;
};

/* Queues the copies of a run into its message, or back: the planes, in the message each filled up
 * to 16 bytes, and the scales behind them, if there are any. */
static inline cudaError_t carry(const exchange_field &f, size_t entry, const run &r, char *message,
                                bool out, cudaStream_t stream) {
  const size_t bytes = (size_t)r.sites * entry, row = whole_vectors((size_t)r.all * entry);
  const size_t pitch = (size_t)f.stride * entry;
  char *const values = f.data + (size_t)r.first * entry, *const carried = message + r.at * entry;
  char *const scales = message + f.planes * row + (size_t)r.at * sizeof(float);
  float *const own = f.scale + (f.scale ? r.first : 0);
  void *const to = out ? carried : values;
  const void *const from = out ? values : carried;
  /* One plane is one copy: CUDA takes no pitch above 2^31 bytes, not even of a single row. */
  const cudaError_t error =
      f.planes == 1 ? cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream)
                    : cudaMemcpy2DAsync(to, out ? row : pitch, from, out ? pitch : row, bytes,
                                        (size_t)f.planes, cudaMemcpyDeviceToDevice, stream);
  if (error != cudaSuccess || !own) return error;
  return cudaMemcpyAsync(out ? scales : (char *)own, out ? (char *)own : scales,
                         (size_t)r.sites * sizeof(float), cudaMemcpyDeviceToDevice, stream);
}

/* From so many bytes of an exchange on the copy engines are faster beside an interior of small
 * blocks, of planes and of one plane, whose kernels wait for the gathering one. */
static constexpr size_t COPIED_BYTES[2] = {(size_t)8 << 20, (size_t)1 << 20};
/* Between two H200: until a push or a copy begins, and bytes per second that follow. */
static constexpr double PUSH_S = 8e-6, COPY_S = 25e-6, BYTES_PER_S = 0.25e12;
static constexpr double PUMPED_BYTES_PER_S = 0.23e12; /* after PUSH_S */

static void choose_push(const md_context *context, md_device_messages *m) {
  const md_halo_plan *plan = m->plan;
  size_t longest = 0;
  bool whole = true;
  for (int c = 0; c < plan->channels; c++) {
    const size_t bytes = md_device_message_bytes(m, c);
    if (bytes > longest) longest = bytes;
    whole &= m->runs[c] == 1;
  }
  const bool whole_words = md_message_entry_bytes(&plan->shape) % sizeof(uint4) == 0;
  m->pushes = plan->awaited && whole && !md_shape_planar(&plan->shape) && whole_words &&
              longest < PUSHED_BYTES;
  if (m->pushes)
    m->push_blocks =
        md_device_messages_divide(m, context->gpu.multiprocessors, 16.0 * PUSH_THREADS, &m->x);
}

/* Where the interior does not hide the copies, and the message is so short that their start
 * matters. */
static void choose_pumps(md_context *context, md_device_messages *m) {
  const double bytes = (double)md_device_messages_bytes(m), beside_s = m->plan->beside_s;
  const double copied_s = COPY_S + bytes / BYTES_PER_S;
  if (!m->pushes && !m->gathers && beside_s > 0.0 && copied_s > beside_s &&
      PUSH_S + bytes / PUMPED_BYTES_PER_S < copied_s)
    m->pumps = md_device_messages_pumps(context, m);
}

md_status md_device_messages_choose(md_context *context, md_device_messages *m) {
  const md_halo_plan *plan = m->plan;
  const size_t bytes = md_device_messages_bytes(m);
  for (int c = 0; c < plan->channels; c++) {
    const md_halo_message *ch = &plan->channel[c];
    const int64_t runs = runs_of(ch->face[MD_EVEN], ch->sites);
    const bool few = runs <= MD_MOST_DEPTH && runs == runs_of(ch->face[MD_ODD], ch->sites);
    m->runs[c] = few ? (int)runs : 0;
    m->turn[c] = c;
    m->gathers |= m->runs[c] == 0;
  }
  /* Of two the one of more copies, whose pauses the other one's reader need not see. */
  if (plan->channels == 2 && m->runs[1] > m->runs[0]) m->turn[0] = 1, m->turn[1] = 0;
  const size_t usual = COPIED_BYTES[!md_shape_planar(&plan->shape)];
  m->copied = !plan->check && !plan->half_spinors &&
              bytes >= (plan->copied_bytes > 0 ? plan->copied_bytes : usual);
  if (!m->copied) return MD_OK;
  choose_push(context, m);
  choose_pumps(context, m);
  count_messages<<<1, 32, 0, m->stream>>>(m->x);
  MD_TRY(md_cuda_launched(context, "the count of messages"));
  if (!m->gathers) return md_device_synchronise(context);
  MD_TRY(md_device_allocate(context, bytes, "halo messages", (void **)&m->buffer));
  m->gather = m->x;
  m->gather.counters = m->x.counters + 1;
  char *next = m->buffer;
  for (int c = 0; c < plan->channels; c++) {
    m->gather.channel[c].send[0] = m->gather.channel[c].send[1] = next;
    m->gather.channel[c].raise = NULL;
    next += md_device_message_bytes(m, c);
  }
  /* The gather is short and may take the whole GPU. */
  m->blocks = md_device_messages_divide(m, 2 * context->gpu.multiprocessors,
                                        16.0 * EXCHANGE_THREADS, &m->gather);
  return md_device_synchronise(context);
}

/* One kernel for the messages of all channels. */
static md_status push(md_context *context, md_device_messages *m, const md_field *field) {
  const md_halo_plan *plan = m->plan;
  const size_t entry = md_message_entry_bytes(&plan->shape);
  const exchange_field view = view_of(m, field, 1);
  pushed p = {};
  for (int c = 0; c < plan->channels; c++) {
    const int32_t first = plan->channel[c].face[field->parity][0];
    const size_t sites = (size_t)plan->channel[c].sites;
    p.values[c] = (const uint4 *)(view.data + (size_t)first * entry);
    p.words[c] = (int)(sites * entry / sizeof(uint4));
    p.scales[c] = view.scale ? view.scale + first : NULL;
  }
  push_all<<<m->push_blocks, PUSH_THREADS, 0, m->stream>>>(m->x, p);
  return md_cuda_launched(context, "a push of surfaces to other GPUs");
}

/* The surface that channel c sends, and then its flag: copies of one stream are carried one after
 * another. */
static cudaError_t copy_out(const md_device_messages *m, const md_field *field, int c) {
  const md_halo_message *ch = &m->plan->channel[c];
  const exchange_channel *x = &m->x.channel[c];
  const size_t entry = md_message_entry_bytes(&m->plan->shape);
  const exchange_field view = view_of(m, field, 1);
  char *const to = x->send[m->x.slot];
  cudaError_t error = m->pumps ? md_device_messages_pump(m, field, c) : cudaSuccess;
  if (m->pumps && error == cudaSuccess) return error;
  if (m->gathers)
    error = cudaMemcpyAsync(to, m->gather.channel[c].send[0], md_device_message_bytes(m, c),
                            cudaMemcpyDeviceToDevice, m->in);
  const int64_t length = m->gathers ? ch->sites : ch->sites / m->runs[c];
  for (int64_t k = 0; k < ch->sites && !m->gathers && error == cudaSuccess; k += length)
    error = carry(view, entry, {ch->face[field->parity][k], length, k, ch->sites}, to, true, m->in);
  /* After a failure too: the neighbour waits for it. */
  const cudaError_t raised = cudaMemcpyAsync(x->raise, &m->x.counters->number[m->x.slot][c],
                                             sizeof *x->raise, cudaMemcpyDeviceToDevice, m->in);
  return error == cudaSuccess ? raised : error;
}

static md_status send_copies(md_context *context, md_device_messages *m, const md_field *field) {
  md_status status = md_device_messages_order(context, m->event[READY], m->stream, m->in);
  cudaError_t error = cudaSuccess;
  for (int k = 0; k < m->plan->channels; k++) {
    const cudaError_t copied = copy_out(m, field, m->turn[k]);
    if (error == cudaSuccess) error = copied;
    /* A thread that awaits begins when this has gone: it would keep a place that the interior
     * wants, and in a recording could be in the way of what the neighbour awaits. */
    const md_status gone =
        md_device_messages_order(context, m->event[FETCHED + k], m->in, queue_of(m, k));
    if (status == MD_OK) status = gone;
  }
  count_messages<<<1, 32, 0, m->in>>>(m->x);
  MD_TRY(md_cuda_status(context, error, "copy of a surface to another GPU"));
  MD_TRY(status);
  return md_cuda_launched(context, "the count of messages");
}

md_status md_device_messages_send(md_context *context, md_device_messages *m,
                                  const md_field *field) {
  return m->pushes ? push(context, m, field) : send_copies(context, m, field);
}

static md_status await(md_context *context, const md_device_messages *m, int c,
                       cudaStream_t queue) {
  await_flag<<<1, 1, 0, queue>>>(m->x, c);
  return md_cuda_launched(context, "flags of the halo");
}

md_status md_device_messages_take(md_context *context, md_device_messages *m, md_field *field,
                                  int c, cudaStream_t queue) {
  const md_halo_message *ch = &m->plan->channel[c];
  const exchange_field view = view_of(m, field, 1);
  char *const message = const_cast<char *>(m->x.channel[c].receive[m->x.slot]);
  const md_status awaited = await(context, m, c, queue);
  const cudaError_t error = carry(view, md_message_entry_bytes(&m->plan->shape),
                                  {ch->first_site, ch->sites, 0, ch->sites}, message, false, queue);
  MD_TRY(md_cuda_status(context, error, "copy of what another GPU sent"));
  return awaited;
}

static bool find_arrivals(const md_device_messages *m, md_halo_arrivals *arrivals) {
  const md_halo_plan *plan = m->plan;
  const md_field_shape *shape = &plan->shape;
  if (!m->copied || md_shape_planar(shape)) return false;
  const int slot = m->x.slot;
  const bool scaled = shape->scaled && md_precision_scaled(shape->precision);
  *arrivals = {};
  arrivals->parity = slot;
  arrivals->timeout = m->x.timeout;
  const double all = (double)md_device_messages_bytes(m);
  double under_way = 0.0;
  for (int k = 0; k < plan->channels; k++) {
    const int c = m->turn[k];
    const md_halo_message *ch = &plan->channel[c];
    md_halo_arrival *a = &arrivals->of[ch->direction];
    if (a->values) return false;
    const char *const values = m->x.channel[c].receive[slot];
    a->values = values;
    a->scales = scaled ? (const float *)(values + md_device_message_values(m, c)) : NULL;
    a->zone = ch->first_site;
    a->flag = m->x.channel[c].wait;
    a->looked = &m->x.counters->looked[c];
    a->arrived = &m->x.counters->received[c];
    a->sent = &m->x.counters->sent[c];
    a->from = m->x.channel[c].from;
    under_way += (double)md_device_message_bytes(m, c);
    /* Pushed messages come together, copies one after the other. */
    a->expected_s = m->pushes ? PUSH_S + all / BYTES_PER_S : COPY_S + under_way / BYTES_PER_S;
  }
  return true;
}

extern "C" md_status md_device_carrier_arrivals(md_context *context, void *state,
                                                md_halo_arrivals *arrivals, bool *found) {
  *found = find_arrivals(((md_device_carrier *)state)->messages, arrivals);
  return *found ? md_device_carrier_verify(context, state) : MD_OK;
}

extern "C" int md_device_carrier_spares(void *state) {
  return ((md_device_carrier *)state)->messages->pumps;
}

extern "C" bool md_device_carrier_in_turn(void *state) {
  const md_device_messages *m = ((md_device_carrier *)state)->messages;
  return m->copied && !m->pushes && !md_shape_planar(&m->plan->shape);
}

extern "C" md_status md_device_carrier_await_next(md_context *context, void *state, int k,
                                                  md_halo_arrivals *arrivals, int *direction,
                                                  void **queue) {
  const md_device_messages *m = ((md_device_carrier *)state)->messages;
  const int c = m->turn[k];
  *queue = queue_of(m, k);
  *direction = m->plan->channel[c].direction;
  (void)find_arrivals(m, arrivals);
  arrivals->timeout = NULL;
  MD_TRY(await(context, m, c, queue_of(m, k)));
  return md_device_carrier_verify(context, state);
}
