#include "lattice/halo/halo.h"
#include "base/device.h"
#include "base/memory.h"
#include "base/ranks_mpi.h"
#include "lattice/fields/cuda/device_field.h"

#include <stdlib.h>
#include <string.h>

/* A message of the geometry's list for one field shape. */
typedef struct channel {
  const md_halo_message *message;
  int64_t sites;
  size_t bytes; /* of the message */
  char *send, *receive;
} channel;

struct md_halo {
  md_field_shape shape;
  const md_geometry *geometry;
  int channels;
  channel channel[MD_MOST_MESSAGES];
  MPI_Request request[2 * MD_MOST_MESSAGES]; /* receives, then sends */
  md_device_halo *device;                    /* fields on the device; NULL: on the host */
};

/* A message holds the planes one after another, then the scales. */
static size_t plane_bytes(const md_field_shape *shape) {
  return md_precision_bytes(shape->precision) *
         (size_t)(shape->n_rhs == 1 ? 1 : shape->components * shape->n_rhs);
}

static size_t message_bytes(const md_field_shape *shape, int64_t sites) {
  const size_t planes = shape->n_rhs == 1 ? (size_t)shape->components : 1;
  const bool scaled = shape->scaled && md_precision_scaled(shape->precision);
  return (size_t)sites * (planes * plane_bytes(shape) + (scaled ? sizeof(float) : 0));
}

static md_status allocate(md_context *context, md_halo *halo) {
  const bool device = halo->shape.space == MD_DEVICE;
  md_status (*const get)(md_context *, size_t, const char *, void **) =
      device ? md_device_allocate_pinned : md_allocate;
  if (halo->channels == 0) return MD_OK;
#ifdef MINIDIRAC_HAVE_CUDA
  if (device) MD_TRY(md_device_halo_create(context, halo->geometry, &halo->device));
#endif
  for (int c = 0; c < halo->channels; c++) {
    channel *ch = &halo->channel[c];
    if (ch->bytes > INT32_MAX)
      return md_fail(context, MD_INPUT,
                     "a halo message must stay below 2 GiB, got %zu bytes; use more ranks",
                     ch->bytes);
    MD_TRY(get(context, ch->bytes, "halo buffer", (void **)&ch->send));
    MD_TRY(get(context, ch->bytes, "halo buffer", (void **)&ch->receive));
  }
  return MD_OK;
}

/* The tag is the message's place in the list, so that two messages between the same pair of ranks
 * (extent of two ranks, self-halo) are told apart. */
static void make_requests(md_context *context, md_halo *halo) {
  for (int c = 0; c < halo->channels; c++) {
    channel *ch = &halo->channel[c];
    MPI_Recv_init(ch->receive, (int)ch->bytes, MPI_BYTE, ch->message->receive_rank, c,
                  md_mpi(context), &halo->request[c]);
    MPI_Send_init(ch->send, (int)ch->bytes, MPI_BYTE, ch->message->send_rank, c, md_mpi(context),
                  &halo->request[halo->channels + c]);
  }
}

md_status md_halo_create(md_context *context, const md_geometry *geometry,
                         const md_field_shape *shape, md_halo **halo) {
  md_halo *h = calloc(1, sizeof *h);
  *halo = NULL;
  md_status status = h ? MD_OK : md_fail_memory(context, sizeof *h, "halo");
  if (status == MD_OK) {
    h->shape = *shape;
    h->geometry = geometry;
    for (int i = 0; i < 2 * MD_MOST_MESSAGES; i++) h->request[i] = MPI_REQUEST_NULL;
    for (int m = 0; m < geometry->messages; m++) {
      const int64_t sites = geometry->message[m].sites;
      h->channel[h->channels++] = (channel){
          .message = &geometry->message[m], .sites = sites, .bytes = message_bytes(shape, sites)};
    }
    status = allocate(context, h);
  }
  status = md_agree(context, status);
  if (status != MD_OK) {
    md_halo_destroy(h);
    return status;
  }
  make_requests(context, h);
  *halo = h;
  return MD_OK;
}

void md_halo_destroy(md_halo *halo) {
  if (!halo) return;
  for (int i = 0; i < 2 * MD_MOST_MESSAGES; i++)
    if (halo->request[i] != MPI_REQUEST_NULL) MPI_Request_free(&halo->request[i]);
  void (*const release)(void *) = halo->shape.space == MD_DEVICE ? md_device_free_pinned : free;
  for (int c = 0; c < halo->channels; c++) {
    release(halo->channel[c].send);
    release(halo->channel[c].receive);
  }
#ifdef MINIDIRAC_HAVE_CUDA
  md_device_halo_destroy(halo->device);
#endif
  free(halo);
}

/* Gathers entries of `width` bytes; the constant widths let the compiler copy in registers. */
static void gather(char *to, const char *from, const int32_t *sites, int64_t count, size_t width) {
  switch (width) {
  case 2:
    for (int64_t k = 0; k < count; k++) memcpy(to + 2 * k, from + 2 * (size_t)sites[k], 2);
    break;
  case 4:
    for (int64_t k = 0; k < count; k++) memcpy(to + 4 * k, from + 4 * (size_t)sites[k], 4);
    break;
  case 8:
    for (int64_t k = 0; k < count; k++) memcpy(to + 8 * k, from + 8 * (size_t)sites[k], 8);
    break;
  default:
    for (int64_t k = 0; k < count; k++)
      memcpy(to + (size_t)k * width, from + (size_t)sites[k] * width, width);
  }
}

static void pack(const md_halo *halo, const md_field *field, const channel *ch) {
  const int32_t *sites = ch->message->face[field->parity];
  const size_t width = plane_bytes(&halo->shape);
  const int planes = md_field_planes(field);
  for (int c = 0; c < planes; c++)
    gather(ch->send + (size_t)c * (size_t)ch->sites * width,
           (const char *)field->data + (size_t)c * (size_t)field->stride * width, sites, ch->sites,
           width);
  if (field->scale)
    gather(ch->send + (size_t)planes * (size_t)ch->sites * width, (const char *)field->scale, sites,
           ch->sites, sizeof(float));
}

static void unpack(const md_halo *halo, md_field *field, const channel *ch) {
  const size_t width = plane_bytes(&halo->shape);
  const size_t zone = (size_t)ch->message->first_site;
  const size_t count = (size_t)ch->sites;
  const int planes = md_field_planes(field);
  for (int c = 0; c < planes; c++)
    memcpy((char *)field->data + ((size_t)c * (size_t)field->stride + zone) * width,
           ch->receive + (size_t)c * count * width, count * width);
  if (field->scale)
    memcpy(field->scale + zone, ch->receive + (size_t)planes * count * width,
           count * sizeof(float));
}

#ifdef MINIDIRAC_HAVE_CUDA
/* The surfaces leave the device while the caller queues the interior; they are sent when the
 * caller comes back. The receive buffers are free once the last unpacking is done. */
static void begin_on_device(md_halo *halo, const md_field *field) {
  md_device_halo_wait(halo->device);
  MPI_Startall(halo->channels, halo->request);
  for (int c = 0; c < halo->channels; c++)
    md_device_halo_pack(halo->device, field, c, halo->channel[c].send);
}

static void end_on_device(md_halo *halo, md_field *field) {
  md_device_halo_wait(halo->device);
  MPI_Startall(halo->channels, halo->request + halo->channels);
  MPI_Waitall(2 * halo->channels, halo->request, MPI_STATUSES_IGNORE);
  for (int c = 0; c < halo->channels; c++)
    md_device_halo_unpack(halo->device, field, c, halo->channel[c].receive);
}
#endif

void md_halo_begin(md_halo *halo, const md_field *field) {
  if (halo->channels == 0) return;
#ifdef MINIDIRAC_HAVE_CUDA
  if (halo->device) {
    begin_on_device(halo, field);
    return;
  }
#endif
  MPI_Startall(halo->channels, halo->request);
#pragma omp parallel for schedule(static)
  for (int c = 0; c < halo->channels; c++) pack(halo, field, &halo->channel[c]);
  MPI_Startall(halo->channels, halo->request + halo->channels);
}

void md_halo_end(md_halo *halo, md_field *field) {
  if (halo->channels == 0) return;
#ifdef MINIDIRAC_HAVE_CUDA
  if (halo->device) {
    end_on_device(halo, field);
    return;
  }
#endif
  MPI_Waitall(2 * halo->channels, halo->request, MPI_STATUSES_IGNORE);
#pragma omp parallel for schedule(static)
  for (int c = 0; c < halo->channels; c++) unpack(halo, field, &halo->channel[c]);
}

int64_t md_halo_bytes(const md_halo *halo) {
  int64_t bytes = 0;
  for (int c = 0; c < halo->channels; c++) bytes += (int64_t)halo->channel[c].bytes;
  return bytes;
}
