#include "lattice/halo/device_messages.cuh"

#include <new>

/* Blocks that drive a link at 268 of the 284 GB/s that a whole GPU drives it at, and leave the
 * interior nearly all of the GPU. */
static constexpr int MOST_BLOCKS = 16, FLAG_BYTES = 128;

size_t md_device_message_values(const md_device_messages *m, int c) {
  const md_field_shape *shape = &m->plan->shape;
  const size_t sites = (size_t)m->plan->channel[c].sites;
  const size_t planes = md_shape_planar(shape) ? (size_t)shape->components : 1;
  const size_t parts = m->plan->half_spinors ? 2 : 1;
  return planes * whole_vectors(sites * md_message_entry_bytes(shape) / parts);
}

extern "C" size_t md_device_message_bytes(const md_device_messages *m, int c) {
  const md_field_shape *shape = &m->plan->shape;
  const bool scaled = shape->scaled && md_precision_scaled(shape->precision);
  const size_t scales = scaled ? (size_t)m->plan->channel[c].sites * sizeof(float) : 0;
  return md_device_message_values(m, c) + whole_vectors(scales) + sizeof(exchange_seal);
}

size_t md_device_messages_bytes(const md_device_messages *m) {
  size_t bytes = 0;
  for (int c = 0; c < m->plan->channels; c++) bytes += md_device_message_bytes(m, c);
  return bytes;
}

int md_device_messages_divide(const md_device_messages *m, int most_blocks, double block_bytes,
                              exchange *x) {
  const md_halo_plan *plan = m->plan;
  int all = 0;
  const double total = (double)md_device_messages_bytes(m);
  const double useful = total / block_bytes;
  const double most = useful < most_blocks ? useful : most_blocks;
  for (int c = 0; c < plan->channels; c++) {
    const int blocks = (int)(most * (double)md_device_message_bytes(m, c) / total);
    x->channel[c].first = all;
    x->channel[c].blocks = blocks > 1 ? blocks : 1;
    all += x->channel[c].blocks;
  }
  return all;
}

static md_status make_streams(md_context *context, md_device_messages *m) {
  int low = 0, high = 0;
  cudaDeviceGetStreamPriorityRange(&low, &high);
  cudaStream_t *const streams[] = {&m->stream, &m->in, &m->late};
  for (cudaStream_t *s : streams)
    MD_TRY(md_cuda_status(context, cudaStreamCreateWithPriority(s, cudaStreamNonBlocking, high),
                          "stream of the halo"));
  for (cudaEvent_t &e : m->event)
    MD_TRY(md_cuda_status(context, cudaEventCreateWithFlags(&e, cudaEventDisableTiming),
                          "event of the halo"));
  return MD_OK;
}

static md_status make_tables(md_context *context, md_device_messages *m) {
  const md_halo_plan *plan = m->plan;
  m->x.channels = plan->channels;
  for (int c = 0; c < plan->channels; c++) {
    const md_halo_message *from = &plan->channel[c];
    exchange_channel *to = &m->x.channel[c];
    const size_t bytes = (size_t)from->sites * sizeof(int32_t);
    to->from = from->receive_rank;
    to->sites = (int)from->sites;
    to->zone = from->first_site;
    to->leg = md_half_spinors[from->direction];
    MD_TRY(md_message_check(context, md_plan_bytes(plan, c)));
    for (int p = 0; p < MD_PARITIES; p++) {
      MD_TRY(md_device_allocate(context, bytes, "halo table", (void **)&m->face[p][c]));
      MD_TRY(md_device_upload(context, m->face[p][c], from->face[p], bytes));
      to->face[p] = m->face[p][c];
    }
  }
  MD_TRY(
      md_device_allocate_pinned(context, sizeof *m->x.damage, "halo check", (void **)&m->x.damage));
  m->x.damage->channel = -1;
  m->x.damage->out_of_turn = 0;
  m->x.slot = -1;
  return md_device_allocate(context, 2 * sizeof *m->x.counters, "halo counters",
                            (void **)&m->x.counters);
}

static md_device_messages *messages_of(void *state) {
  return ((md_device_carrier *)state)->messages;
}

extern "C" md_status md_device_carrier_create(md_context *context, const md_halo_plan *plan,
                                              size_t bytes, void **state) {
  md_device_carrier *carrier = (md_device_carrier *)calloc(1, bytes);
  *state = carrier;
  if (!carrier) return md_fail_memory(context, bytes, "halo");
  md_device_messages *m = new (std::nothrow) md_device_messages();
  carrier->plan = plan;
  carrier->messages = m;
  if (!m) return md_fail_memory(context, sizeof *m, "halo");
  m->plan = plan;
  MD_TRY(md_device_open(context));
  MD_TRY(make_streams(context, m));
  MD_TRY(make_tables(context, m));
  m->blocks = md_device_messages_divide(m, MOST_BLOCKS, 16.0 * EXCHANGE_THREADS, &m->x);
  return md_device_synchronise(context);
}

extern "C" md_status md_device_messages_buffers(md_context *context, md_device_messages *m,
                                                void **send, void **receive) {
  MD_TRY(md_device_allocate(context, 2 * md_device_messages_bytes(m), "halo messages",
                            (void **)&m->buffer));
  char *next = m->buffer;
  for (int c = 0; c < m->plan->channels; c++) {
    exchange_channel *ch = &m->x.channel[c];
    send[c] = ch->send[0] = ch->send[1] = next;
    next += md_device_message_bytes(m, c);
    receive[c] = next;
    ch->receive[0] = ch->receive[1] = next;
    next += md_device_message_bytes(m, c);
  }
  return md_device_synchronise(context);
}

/* Every rank's memory: a flag for each channel, then two buffers for each. A sender writes message
 * n + 2 over message n only after it has received its neighbour's message n + 1, which that one
 * sent after it had taken message n out. Channels to and from ranks on other nodes keep the buffers
 * that they have. */
static md_status map_buffers(md_context *context, md_device_messages *m, bool within) {
  const md_halo_plan *plan = m->plan;
  size_t at[MD_MOST_MESSAGES][2], bytes = MD_MOST_MESSAGES * FLAG_BYTES;
  for (int c = 0; c < plan->channels; c++)
    for (int slot = 0; slot < 2; slot++) {
      at[c][slot] = bytes;
      bytes += (md_device_message_bytes(m, c) + 255) / 256 * 256;
    }
  MD_TRY(md_device_peers_create(context, bytes, "halo messages of neighbours", within, &m->peers));
  for (int c = 0; c < plan->channels; c++) {
    exchange_channel *ch = &m->x.channel[c];
    char *theirs = (char *)m->peers->of[plan->channel[c].send_rank], *mine = (char *)m->peers->mine;
    const bool from_peer = m->peers->of[plan->channel[c].receive_rank] != NULL;
    if (theirs) ch->raise = (long long *)(theirs + c * FLAG_BYTES);
    if (from_peer) ch->wait = (const long long *)(mine + c * FLAG_BYTES);
    for (int slot = 0; slot < 2; slot++) {
      if (theirs) ch->send[slot] = theirs + at[c][slot];
      if (from_peer) ch->receive[slot] = mine + at[c][slot];
    }
  }
  m->x.timeout = m->peers->timeout;
  return MD_OK;
}

extern "C" md_status md_device_messages_peers(md_context *context, md_device_messages *m,
                                              bool within) {
  MD_TRY(map_buffers(context, m, within));
  return within ? MD_OK : md_device_messages_choose(context, m);
}

extern "C" bool md_device_message_to_peer(const md_device_messages *m, int c) {
  return m->x.channel[c].raise != NULL;
}
extern "C" bool md_device_message_from_peer(const md_device_messages *m, int c) {
  return m->x.channel[c].wait != NULL;
}

static void destroy(md_device_messages *m) {
  if (m->stream) cudaStreamSynchronize(m->stream);
  if (m->in) cudaStreamSynchronize(m->in);
  if (m->late) cudaStreamSynchronize(m->late);
  md_device_peers_destroy(m->peers);
  md_device_free(m->buffer);
  md_device_free(m->x.counters);
  md_device_free_pinned(m->x.damage);
  for (int p = 0; p < MD_PARITIES; p++)
    for (int c = 0; c < MD_MOST_MESSAGES; c++) md_device_free(m->face[p][c]);
  for (cudaEvent_t e : m->event)
    if (e) cudaEventDestroy(e);
  if (m->stream) cudaStreamDestroy(m->stream);
  if (m->in) cudaStreamDestroy(m->in);
  if (m->late) cudaStreamDestroy(m->late);
  delete m;
}

extern "C" void md_device_carrier_destroy(void *state) {
  if (messages_of(state)) destroy(messages_of(state));
  free(state);
}

extern "C" void *md_device_carrier_stream(void *state) {
  return messages_of(state)->stream;
}

md_status md_device_messages_order(md_context *context, cudaEvent_t event, cudaStream_t earlier,
                                   cudaStream_t later) {
  MD_TRY(md_cuda_status(context, cudaEventRecord(event, earlier), "event of the halo"));
  return md_cuda_status(context, cudaStreamWaitEvent(later, event, 0), "order of the halo");
}

template <class T, carried WHAT, bool CHECK>
static void launch(md_device_messages *m, const md_field *f, bool pack) {
  const bool halves = WHAT == carried::HALVES;
  const exchange_field view = view_of(m, f, halves ? sizeof(half_word<T>) : sizeof(T));
  if (pack)
    md_launch_early(pack_all<T, WHAT, CHECK>, dim3(m->blocks), dim3(EXCHANGE_THREADS), 0,
                    m->copied ? m->gather : m->x, view, f->parity);
  else
    unpack_all<T, WHAT, CHECK><<<m->blocks, EXCHANGE_THREADS, 0, m->stream>>>(m->x, view);
}

template <class T, carried WHAT>
static void launch(md_device_messages *m, const md_field *f, bool pack) {
  m->plan->check ? launch<T, WHAT, true>(m, f, pack) : launch<T, WHAT, false>(m, f, pack);
}

static void launch_halves(md_device_messages *m, const md_field *f, bool pack) {
  constexpr carried HALVES = carried::HALVES;
  switch (f->precision) {
  case MD_DOUBLE:
    return launch<double2, HALVES>(m, f, pack);
  case MD_SINGLE:
    return launch<float2, HALVES>(m, f, pack);
  case MD_HALF:
    return launch<__half2, HALVES>(m, f, pack);
  default:
    return launch<__nv_bfloat162, HALVES>(m, f, pack);
  }
}

static md_status run(md_context *context, md_device_messages *m, const md_field *f, bool pack) {
  constexpr carried PLANES = carried::PLANES, ENTRIES = carried::ENTRIES;
  const size_t bytes = md_message_entry_bytes(&m->plan->shape);
  if (m->plan->half_spinors)
    launch_halves(m, f, pack);
  else if (!md_field_planar(f))
    bytes % 16 == 0 ? launch<uint4, ENTRIES>(m, f, pack) : launch<uint32_t, ENTRIES>(m, f, pack);
  else if (bytes == 2)
    launch<uint16_t, PLANES>(m, f, pack);
  else if (bytes == 4)
    launch<uint32_t, PLANES>(m, f, pack);
  else
    launch<uint64_t, PLANES>(m, f, pack);
  return md_cuda_launched(context, pack ? "gathering of surfaces" : "scattering of halos");
}

extern "C" bool md_device_carrier_leads(void *state) {
  const md_device_messages *m = messages_of(state);
  return !m->copied || m->gathers;
}

extern "C" md_status md_device_carrier_pack(md_context *context, void *state,
                                            const md_field *field) {
  md_device_messages *m = messages_of(state);
  if (m->copied) m->x.slot = m->x.slot == 1 ? 0 : 1;
  const md_status packed = md_device_carrier_leads(state) ? run(context, m, field, true) : MD_OK;
  const md_status ordered =
      md_device_messages_order(context, m->event[READY], md_stream(), m->stream);
  const md_status sent = m->copied ? md_device_messages_send(context, m, field) : MD_OK;
  return packed != MD_OK ? packed : ordered != MD_OK ? ordered : sent;
}

extern "C" md_status md_device_carrier_verify(md_context *context, void *state) {
  const md_device_messages *m = messages_of(state);
  const int c = __atomic_load_n(&m->x.damage->channel, __ATOMIC_ACQUIRE);
  if (m->peers) MD_TRY(md_device_peers_check(context, m->peers));
  if (__atomic_load_n(&m->x.damage->out_of_turn, __ATOMIC_ACQUIRE))
    return md_fail(context, MD_ENVIRONMENT,
                   "a recording must hold an even number of exchanges of a halo, so that its "
                   "messages go on in turn; record an even number");
  if (c < 0) return MD_OK;
  return md_message_damaged(context, &m->plan->channel[c], m->x.damage->number, m->x.damage->got);
}

extern "C" md_status md_device_carrier_unpack(md_context *context, void *state, md_field *field) {
  md_device_messages *m = messages_of(state);
  if (m->bringing) MD_TRY(md_device_messages_order(context, m->event[BROUGHT], m->in, m->stream));
  m->bringing = false;
  if (!m->copied) MD_TRY(run(context, m, field, false));
  for (int k = 0; k < m->plan->channels && m->copied; k++)
    MD_TRY(md_device_messages_take(context, m, field, m->turn[k], queue_of(m, k)));
  if (m->copied && !m->pushes)
    MD_TRY(md_device_messages_order(context, m->event[FILLED], m->late, m->stream));
  return md_device_carrier_verify(context, state);
}

extern "C" md_status md_device_carrier_join(md_context *context, void *state) {
  const md_device_messages *m = messages_of(state);
  if (m->copied && !m->pushes) {
    MD_TRY(md_device_messages_order(context, m->event[SENT], m->in, m->stream));
    MD_TRY(md_device_messages_order(context, m->event[FILLED], m->late, m->stream));
  }
  return md_device_messages_order(context, m->event[DONE], m->stream, md_stream());
}

extern "C" md_status md_device_messages_wait(md_context *context, md_device_messages *m) {
  return md_cuda_status(context, cudaStreamSynchronize(m->stream), "a halo exchange");
}

extern "C" md_status md_device_message_fetch(md_context *context, md_device_messages *m, int c,
                                             void *host) {
  MD_TRY(
      md_cuda_status(context,
                     cudaMemcpyAsync(host, m->x.channel[c].send[0], md_device_message_bytes(m, c),
                                     cudaMemcpyDeviceToHost, m->stream),
                     "copy of a surface from the device"));
  return md_cuda_status(context, cudaEventRecord(m->event[FETCHED + c], m->stream),
                        "event of the halo");
}

extern "C" md_status md_device_message_fetched(md_context *context, md_device_messages *m, int c) {
  return md_cuda_status(context, cudaEventSynchronize(m->event[FETCHED + c]), "a halo exchange");
}

extern "C" md_status md_device_message_bring(md_context *context, md_device_messages *m, int c,
                                             const void *host) {
  m->bringing = true;
  return md_cuda_status(context,
                        cudaMemcpyAsync((char *)m->x.channel[c].receive[0], host,
                                        md_device_message_bytes(m, c), cudaMemcpyHostToDevice,
                                        m->in),
                        "copy of a halo to the device");
}
