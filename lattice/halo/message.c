#include "lattice/halo/half_spinor.h"
#include "lattice/halo/transport.h"

#include <string.h>

size_t md_message_entry_bytes(const md_field_shape *shape) {
  return md_precision_bytes(shape->precision) *
         (size_t)(md_shape_planar(shape) ? 1 : shape->components * shape->n_rhs);
}

size_t md_message_bytes(const md_field_shape *shape, int64_t sites) {
  const size_t planes = md_shape_planar(shape) ? (size_t)shape->components : 1;
  const bool scaled = shape->scaled && md_precision_scaled(shape->precision);
  return (size_t)sites * (planes * md_message_entry_bytes(shape) + (scaled ? sizeof(float) : 0));
}

size_t md_plan_bytes(const md_halo_plan *plan, int channel) {
  md_field_shape shape = plan->shape;
  if (plan->half_spinors) shape.components /= 2;
  return md_message_bytes(&shape, plan->channel[channel].sites);
}

md_status md_message_check(md_context *context, size_t bytes) {
  if (bytes <= INT32_MAX - 256) return MD_OK;
  return md_fail(context, MD_INPUT,
                 "a halo message must stay below 2 GiB, got %zu bytes; use more ranks", bytes);
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

/* Half spinors of the surface, in planes of sites, or site by site in rows of right-hand sides: the
 * additions are those of H on whole ones. turn: 2 for H^dag, else 0. */
enum { SPINOR = 24, HALF = SPINOR / 2, COLOURS = 6 /* reals of a spin */ };
#define DEFINE_PACK(T)                                                                             \
  static void pack_##T(const md_field *f, const md_halo_message *channel, int turn, T *to) {       \
    const md_half_spinor *leg = &md_half_spinors[channel->direction];                              \
    const int32_t *sites = channel->face[f->parity];                                               \
    const int halves = f->components / 2, rows = md_field_planar(f) ? halves : 1;                  \
    for (int plane = 0; plane < rows; plane++)                                                     \
      for (int64_t i = 0; i < channel->sites; i++)                                                 \
        for (int c = plane; c < (rows > 1 ? plane + 1 : halves); c += 2)                           \
          for (int k = 0; k < (rows > 1 ? 1 : 2 * f->n_rhs); k++) {                                \
            const int upper = c % HALF, spin = upper / COLOURS, q = leg->q[spin] ^ turn;           \
            const int lower = HALF + COLOURS * (spin ^ leg->swap) + upper % COLOURS;               \
            const int slice = c / HALF * SPINOR, part = (c + k) % 2;                               \
            const T sign = q == 2 || q == (part ? 3 : 1) ? -1 : 1;                                 \
            const int other = slice + lower / 2 * 2 + (q % 2 ? part ^ 1 : part);                   \
            const int own = slice + upper / 2 * 2 + part;                                          \
            *to++ = ((const T *)f->data)[md_field_at(f, sites[i], own, k / 2)] +                   \
                    sign * ((const T *)f->data)[md_field_at(f, sites[i], other, k / 2)];           \
          }                                                                                        \
  }
DEFINE_PACK(double)
DEFINE_PACK(float)
#undef DEFINE_PACK

/* Rows of a zone, each of which lies in one piece: planes, or the halves of slices. */
static void unpack_halves(md_field *f, const md_halo_message *channel, const char *message) {
  const bool planar = md_field_planar(f);
  const size_t bytes = md_precision_bytes(f->precision), zone = (size_t)channel->first_site;
  const size_t row = bytes * (planar ? (size_t)channel->sites : (size_t)(HALF * f->n_rhs));
  const size_t apart = planar ? bytes * (size_t)f->stride : row;
  const int64_t slices = f->components / SPINOR * (planar ? 1 : channel->sites);
  const int64_t together = planar ? HALF : 1; /* rows of a half */
  char *to = (char *)f->data + zone * bytes * (size_t)md_field_entry(f);
  for (int64_t i = 0; i < 2 * together * slices; i++, to += apart) {
    if (i / together % 2)
      memset(to, 0, row);
    else {
      memcpy(to, message, row);
      message += row;
    }
  }
}

void md_message_pack(const md_halo_plan *plan, int number, const md_field *field, char *message) {
  const md_halo_message *channel = &plan->channel[number];
  const int32_t *sites = channel->face[field->parity];
  const size_t width = md_message_entry_bytes(&plan->shape);
  const size_t plane = (size_t)channel->sites * width;
  const int planes = md_field_planes(field);
  if (plan->half_spinors) {
    const int turn = plan->turned ? 2 : 0;
    if (field->precision == MD_DOUBLE)
      pack_double(field, channel, turn, (double *)(void *)message);
    else
      pack_float(field, channel, turn, (float *)(void *)message);
    return;
  }
  for (int c = 0; c < planes; c++)
    gather(message + (size_t)c * plane,
           (const char *)field->data + (size_t)c * (size_t)field->stride * width, sites,
           channel->sites, width);
  if (field->scale)
    gather(message + (size_t)planes * plane, (const char *)field->scale, sites, channel->sites,
           sizeof(float));
}

void md_message_unpack(const md_halo_plan *plan, int number, const char *message, md_field *field) {
  const md_halo_message *channel = &plan->channel[number];
  const size_t width = md_message_entry_bytes(&plan->shape);
  const size_t plane = (size_t)channel->sites * width;
  const size_t zone = (size_t)channel->first_site;
  const int planes = md_field_planes(field);
  if (plan->half_spinors) {
    unpack_halves(field, channel, message);
    return;
  }
  for (int c = 0; c < planes; c++)
    memcpy((char *)field->data + ((size_t)c * (size_t)field->stride + zone) * width,
           message + (size_t)c * plane, plane);
  if (field->scale)
    memcpy(field->scale + zone, message + (size_t)planes * plane,
           (size_t)channel->sites * sizeof(float));
}

/* A sum over the 8-byte words, each mixed with its place; the last one filled up with zeros. */
static uint64_t hash_of(const char *message, size_t bytes) {
  uint64_t hash = 0;
  for (size_t at = 0; at < bytes; at += 8) {
    uint64_t word = 0;
    memcpy(&word, message + at, bytes - at < 8 ? bytes - at : 8);
    word += (at + 1) * 0x9e3779b97f4a7c15u;
    word = (word ^ word >> 32) * 0xd6e8feb86659fd93u;
    hash += word ^ word >> 29;
  }
  return hash;
}

void md_message_seal(char *message, size_t bytes, int64_t number) {
  const uint64_t hash = hash_of(message, bytes);
  memcpy(message + bytes, &hash, sizeof hash);
  memcpy(message + bytes + sizeof hash, &number, sizeof number);
}

md_status md_message_verify(md_context *context, const md_halo_message *channel,
                            const char *message, size_t bytes, int64_t number) {
  uint64_t hash;
  int64_t got;
  memcpy(&hash, message + bytes, sizeof hash);
  memcpy(&got, message + bytes + sizeof hash, sizeof got);
  if (hash == hash_of(message, bytes) && got == number) return MD_OK;
  return md_message_damaged(context, channel, number, got);
}

md_status md_message_damaged(md_context *context, const md_halo_message *channel, int64_t number,
                             int64_t got) {
  const char *sign = channel->direction < MD_DIMS ? "+" : "-";
  const char axis = "xyzt"[channel->direction % MD_DIMS];
  if (got == number)
    return md_fail(context, MD_ENVIRONMENT,
                   "halo message %lld from rank %d for the zone %s%c must arrive as it was sent, "
                   "and its hash on rank %d is another; check the network, or take another "
                   "--transport",
                   (long long)number, channel->receive_rank, sign, axis, context->rank);
  return md_fail(
      context, MD_ENVIRONMENT,
      "halo message %lld from rank %d for the zone %s%c must arrive in its turn, rank %d "
      "got number %lld; check the network, or take another --transport",
      (long long)number, channel->receive_rank, sign, axis, context->rank, (long long)got);
}
