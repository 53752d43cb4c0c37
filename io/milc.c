#include "io/lattice_format.h"
#include "io/vectors.h"

#include <endian.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Files of MILC: 32-bit words in one byte order that the magic number tells, single precision,
 * sites in lexicographic order.
 *   links: version 5: magic 20103, four extents, 64 characters of time stamp, site order (0),
 *     sum29, sum31; then the links. No plaquette.
 * KS propagators (io_prop_ks.c, io_prop_ks_fm.c and file_types.h of its generic_ks and include) of
 * three right-hand sides, one for each colour of a source:
 *   milc: magic 0x5aa9, extents, time stamp and site order as of links; then for each colour its
 *     number, sum29, sum31 and its vectors
 *   fnal: magic 0x71626434, seconds since 1970, bytes of a number (4), numbers of a site (18), four
 *     extents, site order (0); then on each site the three vectors. No checksum. */
enum { LINKS_MAGIC = 20103, VECTORS_MAGIC = 0x5aa9, FNAL_MAGIC = 0x71626434 };
enum { MILC_HEAD = 88, LINKS_SUMS = 8, COLOUR_HEAD = 12, FNAL_HEAD = 36 }; /* bytes */
enum { STAMP_AT = 20, STAMP = 64, COLOURS = 3, NUMBERS = 18 };

static const char stamp_name[] = "milc time_stamp";

static uint32_t word_at(const unsigned char *head, int number, bool big_endian) {
  uint32_t word;
  memcpy(&word, head + 4 * number, sizeof word);
  return big_endian ? be32toh(word) : le32toh(word);
}

static bool starts_with(uint32_t magic, const unsigned char *head, size_t bytes) {
  return bytes >= 4 && (word_at(head, 0, true) == magic || word_at(head, 0, false) == magic);
}
static bool recognises_links(const unsigned char *head, size_t bytes) {
  return starts_with(LINKS_MAGIC, head, bytes);
}
static bool recognises_vectors(const unsigned char *head, size_t bytes) {
  return starts_with(VECTORS_MAGIC, head, bytes);
}
static bool recognises_fnal(const unsigned char *head, size_t bytes) {
  return starts_with(FNAL_MAGIC, head, bytes);
}

/* Extents that are fit to count bytes with, and the site order. */
static md_status get_sites(const md_header_input *s, const unsigned char *head, int first,
                           int order_at, bool big, long long dims[MD_DIMS]) {
  for (int d = 0; d < MD_DIMS; d++) dims[d] = (int32_t)word_at(head, first + d, big);
  MD_TRY(md_header_input_check_dims(s, dims));
  const int32_t order = (int32_t)word_at(head, order_at, big);
  if (order == 0) return MD_OK;
  return md_fail(s->context, MD_INPUT,
                 "%s: MILC site order must be 0 (lexicographic), the header says %d", s->path,
                 order);
}

static md_checksum sums_at(const unsigned char *head, int number, bool big) {
  return (md_checksum){.kind = MD_CHECKSUM_MILC,
                       .a = word_at(head, number, big),
                       .b = word_at(head, number + 1, big)};
}

static md_status take_stamp(const md_header_input *s, const unsigned char *head) {
  const char *stamp = (const char *)head + STAMP_AT;
  return md_file_texts_add(s->context, &s->notes->texts, stamp_name, stamp, strnlen(stamp, STAMP));
}

static md_status describe_links(const md_header_input *s) {
  unsigned char head[MILC_HEAD + LINKS_SUMS];
  long long dims[MD_DIMS];
  MD_TRY(md_header_input_read(s, 0, head, sizeof head));
  const bool big = word_at(head, 0, true) == LINKS_MAGIC;
  MD_TRY(get_sites(s, head, 1, MILC_HEAD / 4 - 1, big, dims));
  s->header->precision = MD_SINGLE;
  s->header->site = (md_site_format){.rows = 3, .real_bytes = 4, .big_endian = big};
  s->header->offset = sizeof head;
  s->header->checksum = sums_at(head, MILC_HEAD / 4, big);
  MD_TRY(md_header_input_take_sites(s, "links"));
  if (!memchr(head + STAMP_AT, 0, STAMP))
    md_notes_departure(s->notes, "the time stamp is not closed by a zero byte");
  return take_stamp(s, head);
}

static md_vector_run run_of(int vectors, int colour) {
  return (md_vector_run){
      .vectors = vectors, .real_bytes = 4, .colour = colour, .value = NAN, .residual = NAN};
}

static md_status describe_vectors(const md_header_input *s) {
  unsigned char head[MILC_HEAD], check[COLOUR_HEAD];
  long long dims[MD_DIMS];
  MD_TRY(md_header_input_read(s, 0, head, sizeof head));
  const bool big = word_at(head, 0, true) == VECTORS_MAGIC;
  MD_TRY(get_sites(s, head, 1, MILC_HEAD / 4 - 1, big, dims));
  s->header->site = (md_site_format){.vectors = 1, .rows = 1, .real_bytes = 4};
  s->header->offset = MILC_HEAD;
  for (int c = 0; c < COLOURS; c++) {
    md_vector_run run = run_of(1, c);
    MD_TRY(md_header_input_read(s, s->header->offset, check, sizeof check));
    if (word_at(check, 0, big) != (uint32_t)c)
      return md_fail(s->context, MD_INPUT, "%s: colour %d must be at byte %lld, found %d", s->path,
                     c, (long long)s->header->offset, (int32_t)word_at(check, 0, big));
    run.checksum = sums_at(check, 1, big);
    s->header->offset += COLOUR_HEAD;
    run.offset = s->header->offset;
    run.bytes = md_lattice_link_bytes(s->header);
    s->header->offset += run.bytes;
    MD_TRY(md_notes_run(s->context, s->notes, &run));
    md_notes_record(
        s->notes,
        &(md_record){.type = "vectors of a colour", .offset = run.offset, .bytes = run.bytes});
  }
  MD_TRY(md_vectors_settle(s, dims, big));
  return take_stamp(s, head);
}

static md_status describe_fnal(const md_header_input *s) {
  unsigned char head[FNAL_HEAD];
  long long dims[MD_DIMS];
  md_vector_run run = run_of(COLOURS, 0);
  MD_TRY(md_header_input_read(s, 0, head, sizeof head));
  const bool big = word_at(head, 0, true) == FNAL_MAGIC;
  if (word_at(head, 2, big) != sizeof(float) || word_at(head, 3, big) != NUMBERS)
    return md_fail(s->context, MD_INPUT,
                   "%s: a site must have 18 numbers of 4 bytes, the header says %u of %u", s->path,
                   word_at(head, 3, big), word_at(head, 2, big));
  MD_TRY(get_sites(s, head, 4, 8, big, dims));
  s->header->site = (md_site_format){.vectors = COLOURS, .rows = 1, .real_bytes = 4};
  run.offset = FNAL_HEAD;
  run.bytes = md_lattice_link_bytes(s->header);
  MD_TRY(md_notes_run(s->context, s->notes, &run));
  md_notes_record(s->notes,
                  &(md_record){.type = "vectors", .offset = run.offset, .bytes = run.bytes});
  return md_vectors_settle(s, dims, big);
}

static bool keeps_stamp(const char *name, const char *text, size_t *used) {
  (void)used;
  return strcmp(name, stamp_name) == 0 && strlen(text) <= STAMP;
}

static bool keeps_none(const char *name, const char *text, size_t *used) {
  (void)name;
  (void)text;
  (void)used;
  return false;
}

static void put_word(char *head, int number, uint32_t word) {
  const uint32_t big_endian = htobe32(word);
  memcpy(head + 4 * number, &big_endian, sizeof big_endian);
}

/* Up to the site order; stamp NULL: now. */
static void put_head(char *head, uint32_t magic, const int dims[MD_DIMS], const char *stamp) {
  const time_t now = time(NULL);
  struct tm calendar;
  put_word(head, 0, magic);
  for (int d = 0; d < MD_DIMS; d++) put_word(head, 1 + d, (uint32_t)dims[d]);
  if (stamp)
    memcpy(head + STAMP_AT, stamp, strnlen(stamp, STAMP));
  else
    strftime(head + STAMP_AT, STAMP, "%a %b %d %H:%M:%S %Y", gmtime_r(&now, &calendar));
}

static md_status compose_links(md_context *context, const md_lattice_header *header,
                               md_frame *frame) {
  char *head = calloc(1, MILC_HEAD + LINKS_SUMS);
  if (!head) return md_fail_memory(context, MILC_HEAD + LINKS_SUMS, "lattice header");
  put_head(head, LINKS_MAGIC, header->dims, md_file_texts_find(header->texts, stamp_name));
  put_word(head, MILC_HEAD / 4, header->checksum.a);
  put_word(head, MILC_HEAD / 4 + 1, header->checksum.b);
  *frame = (md_frame){.head = head, .head_bytes = MILC_HEAD + LINKS_SUMS};
  return MD_OK;
}

static md_status compose_vectors(md_context *context, const md_lattice_header *header,
                                 md_frame *frame) {
  const int before = header->run == 0 ? MILC_HEAD : 0;
  char *head = calloc(1, (size_t)before + COLOUR_HEAD);
  if (!head) return md_fail_memory(context, MILC_HEAD, "header of vectors");
  if (before) put_head(head, VECTORS_MAGIC, header->dims, NULL);
  put_word(head + before, 0, (uint32_t)header->run);
  put_word(head + before, 1, header->checksum.a);
  put_word(head + before, 2, header->checksum.b);
  *frame = (md_frame){.head = head, .head_bytes = (size_t)before + COLOUR_HEAD};
  return MD_OK;
}

static md_status compose_fnal(md_context *context, const md_lattice_header *header,
                              md_frame *frame) {
  char *head = calloc(1, FNAL_HEAD);
  if (!head) return md_fail_memory(context, FNAL_HEAD, "header of vectors");
  put_word(head, 0, FNAL_MAGIC);
  put_word(head, 1, (uint32_t)time(NULL));
  put_word(head, 2, sizeof(float));
  put_word(head, 3, NUMBERS);
  for (int d = 0; d < MD_DIMS; d++) put_word(head, 4 + d, (uint32_t)header->dims[d]);
  *frame = (md_frame){.head = head, .head_bytes = FNAL_HEAD};
  return MD_OK;
}

const md_lattice_format md_format_milc = {.name = "milc",
                                          .suffixes = ".milc",
                                          .holds = MD_HOLDS_LINKS,
                                          .single_only = true,
                                          .checksum = MD_CHECKSUM_MILC,
                                          .keeps = keeps_stamp,
                                          .recognises = recognises_links,
                                          .describe = describe_links,
                                          .compose = compose_links};
const md_lattice_format md_format_milc_vectors = {.name = "milc",
                                                  .suffixes = ".milc .ks",
                                                  .holds = MD_HOLDS_VECTORS,
                                                  .single_only = true,
                                                  .vectors_only = COLOURS,
                                                  .checksum = MD_CHECKSUM_MILC,
                                                  .keeps = keeps_none,
                                                  .recognises = recognises_vectors,
                                                  .describe = describe_vectors,
                                                  .compose = compose_vectors};
/* The sum is not in the file: what was written is compared by it. */
const md_lattice_format md_format_fnal = {.name = "fnal",
                                          .suffixes = ".fnal",
                                          .holds = MD_HOLDS_VECTORS,
                                          .single_only = true,
                                          .vectors_only = COLOURS,
                                          .together = true,
                                          .checksum = MD_CHECKSUM_SCIDAC,
                                          .keeps = keeps_none,
                                          .recognises = recognises_fnal,
                                          .describe = describe_fnal,
                                          .compose = compose_fnal};
