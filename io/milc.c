#include "io/lattice_format.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* MILC version 5: 32-bit words in one byte order that the magic number tells: magic, four
 * extents, 64 characters of time stamp, site order (0 = lexicographic), sum29, sum31; then the
 * links in single precision. No plaquette. */
enum { MILC_MAGIC = 20103, MILC_HEAD = 96, MILC_STAMP = 64 };

static const char stamp_name[] = "milc time_stamp";

static bool keeps(const char *name, const char *text, size_t *used) {
  (void)text;
  (void)used;
  return strcmp(name, stamp_name) == 0;
}

static uint32_t word_at(const unsigned char *head, int offset, bool big_endian) {
  uint32_t word;
  memcpy(&word, head + offset, sizeof word);
  return big_endian ? be32toh(word) : le32toh(word);
}

static bool recognises(const unsigned char *head, size_t bytes) {
  return bytes >= 4 &&
         (word_at(head, 0, true) == MILC_MAGIC || word_at(head, 0, false) == MILC_MAGIC);
}

static md_status describe(const md_header_input *s) {
  unsigned char head[MILC_HEAD];
  long long dims[MD_DIMS];
  MD_TRY(md_header_input_read(s, 0, head, sizeof head));
  const bool big = word_at(head, 0, true) == MILC_MAGIC;
  for (int d = 0; d < MD_DIMS; d++) dims[d] = (int32_t)word_at(head, 4 + 4 * d, big);
  MD_TRY(md_header_input_check_dims(s, dims));
  const int32_t order = (int32_t)word_at(head, 84, big);
  if (order != 0)
    return md_fail(s->context, MD_INPUT,
                   "%s: MILC site order must be 0 (lexicographic), the header says %d", s->path,
                   order);
  s->header->precision = MD_SINGLE;
  s->header->site = (md_site_format){.rows = 3, .real_bytes = 4, .big_endian = big};
  s->header->offset = MILC_HEAD;
  s->header->checksum = (md_checksum){
      .kind = MD_CHECKSUM_MILC, .a = word_at(head, 88, big), .b = word_at(head, 92, big)};
  MD_TRY(md_header_input_take_sites(s, "links"));
  if (!memchr(head + 20, 0, MILC_STAMP))
    md_notes_departure(s->notes, "the time stamp is not closed by a zero byte");
  return md_file_texts_add(s->context, &s->notes->texts, stamp_name, (const char *)head + 20,
                           strnlen((const char *)head + 20, MILC_STAMP));
}

static void put_word(unsigned char *at, uint32_t word) {
  const uint32_t big_endian = htobe32(word);
  memcpy(at, &big_endian, sizeof big_endian);
}

static md_status compose(md_context *context, const md_lattice_header *header, md_frame *frame) {
  unsigned char *head = calloc(1, MILC_HEAD);
  if (!head) return md_fail_memory(context, MILC_HEAD, "lattice header");
  const time_t now = time(NULL);
  struct tm calendar;
  put_word(head, MILC_MAGIC);
  for (int d = 0; d < MD_DIMS; d++) put_word(head + 4 + 4 * d, (uint32_t)header->dims[d]);
  const char *stamp = md_file_texts_find(header->texts, stamp_name);
  if (stamp)
    snprintf((char *)head + 20, MILC_STAMP, "%s", stamp);
  else
    strftime((char *)head + 20, MILC_STAMP, "%a %b %d %H:%M:%S %Y", gmtime_r(&now, &calendar));
  put_word(head + 88, header->checksum.a);
  put_word(head + 92, header->checksum.b);
  *frame = (md_frame){.head = (char *)head, .head_bytes = MILC_HEAD};
  return MD_OK;
}

const md_lattice_format md_format_milc = {.name = "milc",
                                          .suffixes = ".milc",
                                          .holds = MD_HOLDS_LINKS,
                                          .single_only = true,
                                          .checksum = MD_CHECKSUM_MILC,
                                          .keeps = keeps,
                                          .recognises = recognises,
                                          .describe = describe,
                                          .compose = compose};
