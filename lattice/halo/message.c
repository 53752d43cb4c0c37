#include "lattice/halo/message.h"

#include <string.h>

size_t md_message_entry_bytes(const md_field_shape *shape) {
  return md_precision_bytes(shape->precision) *
         (size_t)(shape->n_rhs == 1 ? 1 : shape->components * shape->n_rhs);
}

size_t md_message_bytes(const md_field_shape *shape, int64_t sites) {
  const size_t planes = shape->n_rhs == 1 ? (size_t)shape->components : 1;
  const bool scaled = shape->scaled && md_precision_scaled(shape->precision);
  return (size_t)sites * (planes * md_message_entry_bytes(shape) + (scaled ? sizeof(float) : 0));
}

md_status md_message_check(md_context *context, const md_halo_channel *channel) {
  if (channel->bytes <= INT32_MAX) return MD_OK;
  return md_fail(context, MD_INPUT,
                 "a halo message must stay below 2 GiB, got %zu bytes; use more ranks",
                 channel->bytes);
}

static size_t width_of(const md_field *f) {
  return (size_t)md_field_entry(f) * md_precision_bytes(f->precision);
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

void md_message_pack(const md_field *field, const md_halo_channel *channel, char *message) {
  const int32_t *sites = channel->face[field->parity];
  const size_t width = width_of(field), plane = (size_t)channel->sites * width;
  const int planes = md_field_planes(field);
  for (int c = 0; c < planes; c++)
    gather(message + (size_t)c * plane,
           (const char *)field->data + (size_t)c * (size_t)field->stride * width, sites,
           channel->sites, width);
  if (field->scale)
    gather(message + (size_t)planes * plane, (const char *)field->scale, sites, channel->sites,
           sizeof(float));
}

void md_message_unpack(md_field *field, const md_halo_channel *channel, const char *message) {
  const size_t width = width_of(field), plane = (size_t)channel->sites * width;
  const size_t zone = (size_t)channel->zone;
  const int planes = md_field_planes(field);
  for (int c = 0; c < planes; c++)
    memcpy((char *)field->data + ((size_t)c * (size_t)field->stride + zone) * width,
           message + (size_t)c * plane, plane);
  if (field->scale)
    memcpy(field->scale + zone, message + (size_t)planes * plane,
           (size_t)channel->sites * sizeof(float));
}
