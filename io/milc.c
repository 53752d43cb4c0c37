#include "base/text.h"
#include "io/payload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* MILC version 5: 32-bit words in one byte order that the magic number tells: magic, four
 * extents, 64 characters of time stamp, site order (0 = lexicographic), sum29, sum31; then the
 * links in single precision. No plaquette. */
enum { MILC_MAGIC = 20103, MILC_HEAD = 96, MILC_STAMP = 64 };

static const char stamp_name[] = "milc time_stamp";

static bool keeps(const char *name, const char *text) {
  (void)text;
  return strcmp(name, stamp_name) == 0;
}

static uint32_t word_at(const unsigned char *head, int offset, bool big_endian) {
  const unsigned char *b = head + offset;
  return big_endian ? (uint32_t)b[0] << 24 | b[1] << 16 | b[2] << 8 | b[3]
                    : (uint32_t)b[3] << 24 | b[2] << 16 | b[1] << 8 | b[0];
}

static bool recognises(const unsigned char *head, size_t bytes) {
  return bytes >= 4 &&
         (word_at(head, 0, true) == MILC_MAGIC || word_at(head, 0, false) == MILC_MAGIC);
}

static md_status describe(md_context *context, const md_source *source, md_lattice_header *header,
                          md_notes *notes) {
  unsigned char head[MILC_HEAD];
  long long dims[MD_DIMS];
  int64_t rest = 0;
  MD_TRY(md_source_read(context, source, 0, head, sizeof head));
  const bool big = word_at(head, 0, true) == MILC_MAGIC;
  for (int d = 0; d < MD_DIMS; d++) dims[d] = (int32_t)word_at(head, 4 + 4 * d, big);
  MD_TRY(md_source_check_dims(context, source, dims, header));
  const int32_t order = (int32_t)word_at(head, 84, big);
  if (order != 0)
    return md_fail(context, MD_INPUT,
                   "%s: MILC site order must be 0 (lexicographic), the header says %d",
                   source->path, order);
  header->precision = MD_SINGLE;
  header->site = (md_site_format){.rows = 3, .real_bytes = 4, .big_endian = big};
  header->offset = MILC_HEAD;
  header->checksum = (md_checksum){
      .kind = MD_CHECKSUM_MILC, .a = word_at(head, 88, big), .b = word_at(head, 92, big)};
  MD_TRY(md_source_check_links(context, source, header, &rest));
  if (rest > 0)
    md_notes_departure(notes, "the links end %lld byte%s before the file", (long long)rest,
                       md_plural(rest));
  if (!memchr(head + 20, 0, MILC_STAMP))
    md_notes_departure(notes, "the time stamp is not closed by a zero byte");
  MD_TRY(md_file_texts_add(context, &notes->texts, stamp_name, (const char *)head + 20,
                           strnlen((const char *)head + 20, MILC_STAMP)));
  md_notes_record(notes, &(md_record){.type = "header", .bytes = MILC_HEAD});
  md_notes_record(
      notes,
      &(md_record){.type = "links", .offset = MILC_HEAD, .bytes = md_lattice_link_bytes(header)});
  return MD_OK;
}

static void put_word(unsigned char *at, uint32_t word) {
  for (int i = 0; i < 4; i++) at[i] = (unsigned char)(word >> (24 - 8 * i));
}

static md_status compose(md_context *context, const md_lattice_header *header,
                         md_payload_frame *frame) {
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
  *frame = (md_payload_frame){.head = (char *)head, .head_bytes = MILC_HEAD};
  return MD_OK;
}

static md_status write_file(md_context *context, const char *path, md_lattice_header *header,
                            const md_gauge *gauge) {
  header->site = (md_site_format){.rows = 3, .real_bytes = 4, .big_endian = true};
  header->checksum.kind = MD_CHECKSUM_MILC;
  return md_payload_write(context, path, header, gauge, compose);
}

const md_lattice_format md_format_milc = {.name = "milc",
                                          .suffixes = ".milc",
                                          .single_only = true,
                                          .keeps = keeps,
                                          .recognises = recognises,
                                          .describe = describe,
                                          .read = md_payload_read,
                                          .write = write_file};
