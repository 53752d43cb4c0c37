#include "base/device.cuh"

#include <new>

extern "C" {
#include "lattice/fields/cuda/device_field.h"
}

struct md_device_halo {
  const md_geometry *geometry;
  int32_t *face[MD_PARITIES][MD_MOST_MESSAGES]; /* of the geometry's messages, on the device */
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

extern "C" md_status md_device_halo_create(md_context *context, const md_geometry *geometry,
                                           md_device_halo **halo) {
  md_device_halo *h = new (std::nothrow) md_device_halo();
  *halo = h;
  if (!h) return md_fail_memory(context, sizeof *h, "halo");
  h->geometry = geometry;
  MD_TRY(md_device_open(context));
  MD_TRY(md_cuda_status(context, cudaStreamCreateWithFlags(&h->stream, cudaStreamNonBlocking),
                        "stream of the halo"));
  MD_TRY(md_cuda_status(context, cudaEventCreateWithFlags(&h->event, cudaEventDisableTiming),
                        "event of the halo"));
  for (int p = 0; p < MD_PARITIES; p++) {
    for (int m = 0; m < geometry->messages; m++) {
      const size_t bytes = (size_t)geometry->message[m].sites * sizeof(int32_t);
      MD_TRY(md_device_allocate(context, bytes, "halo table", (void **)&h->face[p][m]));
      MD_TRY(md_device_upload(context, h->face[p][m], geometry->message[m].face[p], bytes));
    }
  }
  return MD_OK;
}

extern "C" void md_device_halo_destroy(md_device_halo *halo) {
  if (!halo) return;
  for (int p = 0; p < MD_PARITIES; p++)
    for (int m = 0; m < MD_MOST_MESSAGES; m++) md_device_free(halo->face[p][m]);
  if (halo->event) cudaEventDestroy(halo->event);
  if (halo->stream) cudaStreamDestroy(halo->stream);
  delete halo;
}

/* Work queued on `later` from here on waits for what is queued on `earlier`. */
static void order(md_device_halo *halo, cudaStream_t earlier, cudaStream_t later) {
  cudaEventRecord(halo->event, earlier);
  cudaStreamWaitEvent(later, halo->event, 0);
}

static size_t entry_bytes_of(const md_field *f) {
  return (size_t)md_field_entry(f) * md_precision_bytes(f->precision);
}

extern "C" void md_device_halo_pack(md_device_halo *halo, const md_field *field, int message,
                                    void *send) {
  const int32_t *face = halo->face[field->parity][message];
  const int count = (int)halo->geometry->message[message].sites;
  const size_t bytes = entry_bytes_of(field);
  order(halo, md_stream(), halo->stream);
  if (bytes % 16 == 0)
    gather_words<uint4>(field, face, count, bytes, send, halo->stream);
  else if (bytes % 8 == 0)
    gather_words<uint2>(field, face, count, bytes, send, halo->stream);
  else if (bytes % 4 == 0)
    gather_words<uint32_t>(field, face, count, bytes, send, halo->stream);
  else
    gather_words<uint16_t>(field, face, count, bytes, send, halo->stream);
}

extern "C" void md_device_halo_wait(md_device_halo *halo) {
  cudaStreamSynchronize(halo->stream);
}

extern "C" void md_device_halo_unpack(md_device_halo *halo, md_field *field, int message,
                                      const void *receive) {
  const md_halo_message *m = &halo->geometry->message[message];
  const size_t bytes = entry_bytes_of(field), zone = (size_t)m->first_site;
  const size_t count = (size_t)m->sites;
  const size_t planes = (size_t)md_field_planes(field);
  cudaMemcpy2DAsync((char *)field->data + zone * bytes, (size_t)field->stride * bytes, receive,
                    count * bytes, count * bytes, planes, cudaMemcpyHostToDevice, halo->stream);
  if (field->scale)
    cudaMemcpyAsync(field->scale + zone, (const char *)receive + planes * count * bytes,
                    count * sizeof(float), cudaMemcpyHostToDevice, halo->stream);
  order(halo, halo->stream, md_stream());
}
