#include "base/device.cuh"

#include <new>

extern "C" {
#include "lattice/halo/device_message.h"
#include "lattice/halo/message.h"
}

struct md_device_messages {
  const md_halo_plan *plan;
  int32_t *face[MD_PARITIES][MD_DIRECTIONS]; /* of each channel, on the device */
  cudaStream_t stream;
  cudaEvent_t event;
};

/* Entry k of plane c of the message = entry face[k] of plane c; then the scales. WORD divides the
 * bytes of an entry. */
template <class WORD>
__global__ void gather(WORD *send, float *send_scale, const WORD *data, const float *scale,
                       const int32_t *face, int count, int words, int64_t stride) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x, plane = blockIdx.y;
  const int k = at / words, word = at % words;
  if (k >= count) return;
  send[((int64_t)plane * count + k) * words + word] =
      data[((int64_t)plane * stride + face[k]) * words + word];
  if (scale && plane == 0 && word == 0) send_scale[k] = scale[face[k]];
}

template <class WORD>
static void gather_words(const md_field *f, const int32_t *face, int count, size_t entry_bytes,
                         void *send, cudaStream_t stream) {
  const int words = (int)(entry_bytes / sizeof(WORD)), planes = md_field_planes(f);
  const dim3 grid(((unsigned)count * words + 127) / 128, planes);
  float *scales = (float *)((char *)send + (size_t)planes * count * entry_bytes);
  gather<<<grid, 128, 0, stream>>>((WORD *)send, scales, (const WORD *)f->data, f->scale, face,
                                   count, words, f->stride);
}

extern "C" md_status md_device_messages_create(md_context *context, const md_halo_plan *plan,
                                               md_device_messages **messages) {
  md_device_messages *m = *messages = new (std::nothrow) md_device_messages();
  if (!m) return md_fail_memory(context, sizeof *m, "halo");
  m->plan = plan;
  MD_TRY(md_device_open(context));
  MD_TRY(md_cuda_status(context, cudaStreamCreateWithFlags(&m->stream, cudaStreamNonBlocking),
                        "stream of the halo"));
  MD_TRY(md_cuda_status(context, cudaEventCreateWithFlags(&m->event, cudaEventDisableTiming),
                        "event of the halo"));
  for (int p = 0; p < MD_PARITIES; p++)
    for (int c = 0; c < plan->channels; c++) {
      const size_t bytes = (size_t)plan->channel[c].sites * sizeof(int32_t);
      MD_TRY(md_device_allocate(context, bytes, "halo table", (void **)&m->face[p][c]));
      MD_TRY(md_device_upload(context, m->face[p][c], plan->channel[c].face[p], bytes));
    }
  return MD_OK;
}

extern "C" void md_device_messages_destroy(md_device_messages *messages) {
  if (!messages) return;
  for (int p = 0; p < MD_PARITIES; p++)
    for (int c = 0; c < MD_DIRECTIONS; c++) md_device_free(messages->face[p][c]);
  if (messages->event) cudaEventDestroy(messages->event);
  if (messages->stream) cudaStreamDestroy(messages->stream);
  delete messages;
}

/* Work queued on `later` from here on waits for what is queued on `earlier`. */
static md_status order(md_context *context, md_device_messages *m, cudaStream_t earlier,
                       cudaStream_t later) {
  MD_TRY(md_cuda_status(context, cudaEventRecord(m->event, earlier), "event of the halo"));
  return md_cuda_status(context, cudaStreamWaitEvent(later, m->event, 0), "order of the halo");
}

extern "C" md_status md_device_message_pack(md_context *context, md_device_messages *m,
                                            const md_field *field, int c, void *send) {
  const int32_t *face = m->face[field->parity][c];
  const int count = (int)m->plan->channel[c].sites;
  const size_t bytes = md_message_entry_bytes(&m->plan->shape);
  MD_TRY(order(context, m, md_stream(), m->stream));
  if (bytes % 16 == 0)
    gather_words<uint4>(field, face, count, bytes, send, m->stream);
  else if (bytes % 8 == 0)
    gather_words<uint2>(field, face, count, bytes, send, m->stream);
  else if (bytes % 4 == 0)
    gather_words<uint32_t>(field, face, count, bytes, send, m->stream);
  else
    gather_words<uint16_t>(field, face, count, bytes, send, m->stream);
  return md_cuda_launched(context, "gathering a surface");
}

extern "C" md_status md_device_messages_wait(md_context *context, md_device_messages *m) {
  return md_cuda_status(context, cudaStreamSynchronize(m->stream), "a halo exchange");
}

extern "C" md_status md_device_message_unpack(md_context *context, md_device_messages *m,
                                              md_field *field, int c, const void *receive) {
  const size_t bytes = md_message_entry_bytes(&m->plan->shape);
  const size_t zone = (size_t)m->plan->channel[c].zone, count = (size_t)m->plan->channel[c].sites;
  const size_t planes = (size_t)md_field_planes(field);
  cudaError_t error =
      cudaMemcpy2DAsync((char *)field->data + zone * bytes, (size_t)field->stride * bytes, receive,
                        count * bytes, count * bytes, planes, cudaMemcpyHostToDevice, m->stream);
  if (error == cudaSuccess && field->scale)
    error = cudaMemcpyAsync(field->scale + zone, (const char *)receive + planes * count * bytes,
                            count * sizeof(float), cudaMemcpyHostToDevice, m->stream);
  MD_TRY(md_cuda_status(context, error, "copy of a halo to the device"));
  return order(context, m, m->stream, md_stream());
}
