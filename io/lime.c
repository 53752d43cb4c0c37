#include "io/lime.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* LIME records (USQCD c-lime, version 1): a header of 144 bytes (magic, version, flags of message
 * begin and end, length of the data, name of 128 bytes; big-endian), data, zeros up to a
 * multiple of 8. */
enum { LIME_HEAD = MD_LIME_HEAD, LIME_VERSION = 1, LIME_BEGIN = 0x8000, LIME_END = 0x4000 };
static const unsigned char magic[4] = {0x45, 0x67, 0x89, 0xab};

bool md_lime_recognises(const unsigned char *head, size_t bytes) {
  return bytes >= sizeof magic && memcmp(head, magic, sizeof magic) == 0;
}

static uint64_t big_endian(const unsigned char *at, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; i++) value = value << 8 | at[i];
  return value;
}

static void note_head(const unsigned char *head, const md_record *previous, const md_record *record,
                      md_notes *notes) {
  const unsigned version = (unsigned)big_endian(head + 4, 2);
  const unsigned flags = (unsigned)big_endian(head + 6, 2);
  if (version != LIME_VERSION)
    md_notes_departure(notes, "record %s has LIME version %u, not 1", record->type, version);
  if (flags & ~(unsigned)(LIME_BEGIN | LIME_END))
    md_notes_departure(notes, "record %s has reserved flag bits set: 0x%04x", record->type, flags);
  if (!memchr(head + 16, 0, 128))
    md_notes_departure(notes, "the name of record %s is not closed by a zero byte", record->type);
  const bool begins = !previous || previous->message_end;
  if (begins && !record->message_begin)
    md_notes_departure(notes, "record %s starts a message without the flag MB", record->type);
  if (!begins && record->message_begin)
    md_notes_departure(notes, "record %s has the flag MB, but %s did not end its message (ME)",
                       record->type, previous->type);
}

md_status md_lime_next(const md_header_input *s, const md_record *previous, int64_t *at,
                       md_record *record) {
  unsigned char head[LIME_HEAD], zeros[8] = {0};
  MD_TRY(md_header_input_read(s, *at, head, sizeof head));
  if (!md_lime_recognises(head, sizeof head))
    return md_fail(s->context, MD_INPUT,
                   "%s: a LIME record must start at byte %lld, found 0x%08llx", s->path,
                   (long long)*at, (unsigned long long)big_endian(head, 4));
  const uint64_t bytes = big_endian(head + 8, 8);
  const int64_t data = *at + LIME_HEAD;
  *record = (md_record){.offset = data};
  memcpy(record->type, head + 16, 128);
  for (char *c = record->type; *c; c++)
    if (*c < ' ' || *c > '~') *c = '?';
  record->message_begin = head[6] & 0x80;
  record->message_end = head[6] & 0x40;
  if (bytes > (uint64_t)(s->bytes - data))
    return md_fail(s->context, MD_INPUT,
                   "%s is truncated: record %.60s claims %llu bytes from byte %lld, the file ends "
                   "at %lld",
                   s->path, record->type, (unsigned long long)bytes, (long long)data,
                   (long long)s->bytes);
  record->bytes = (int64_t)bytes;
  note_head(head, previous, record, s->notes);
  int64_t padding = (8 - record->bytes % 8) % 8;
  const int64_t end = data + record->bytes;
  if (end + padding > s->bytes) {
    md_notes_departure(s->notes, "record %s is not padded to 8 bytes", record->type);
    padding = s->bytes - end;
  }
  MD_TRY(md_header_input_read(s, end, zeros, (size_t)padding));
  if (big_endian(zeros, 8) != 0)
    md_notes_departure(s->notes, "the padding of record %s is not zero", record->type);
  *at = end + padding;
  return MD_OK;
}

const char *md_xml_tag(const char *text, const char *tag) {
  const size_t length = strlen(tag);
  for (const char *at = strchr(text, '<'); at; at = strchr(at + 1, '<')) {
    if (strncmp(at + 1, tag, length) || !strchr("> \t\r\n", at[1 + length])) continue;
    at = strchr(at, '>');
    return at ? at + 1 + strspn(at + 1, " \t\r\n") : NULL;
  }
  return NULL;
}

bool md_xml_integers(const char *text, const char *tag, long long *values, int count) {
  const char *at = md_xml_tag(text, tag);
  char *end = NULL;
  for (int i = 0; at && i < count; i++, at = end) {
    values[i] = strtoll(at, &end, 10);
    if (end == at) return false;
  }
  return at != NULL;
}

static bool hexadecimal_of(const char *text, const char *tag, uint32_t *value, md_notes *notes) {
  const char *at = md_xml_tag(text, tag);
  char *end = NULL;
  const unsigned long long sum = at ? strtoull(at, &end, 16) : 0;
  if (!at || end == at || sum > UINT32_MAX) {
    md_notes_departure(notes, "scidac-checksum: %s is not a 32-bit hexadecimal number", tag);
    return false;
  }
  *value = (uint32_t)sum;
  return true;
}

bool md_lime_checksum(const char *text, md_checksum *sum, md_notes *notes) {
  md_checksum found = {.kind = MD_CHECKSUM_SCIDAC};
  if (!hexadecimal_of(text, "suma", &found.a, notes) ||
      !hexadecimal_of(text, "sumb", &found.b, notes))
    return false;
  *sum = found;
  return true;
}

void md_lime_put_head(FILE *out, const char *type, uint64_t bytes, bool begin, bool end) {
  unsigned char head[LIME_HEAD] = {0};
  memcpy(head, magic, sizeof magic);
  head[5] = LIME_VERSION;
  head[6] = (unsigned char)((begin ? LIME_BEGIN : 0) >> 8 | (end ? LIME_END : 0) >> 8);
  for (int i = 0; i < 8; i++) head[8 + i] = (unsigned char)(bytes >> (56 - 8 * i));
  snprintf((char *)head + 16, 128, "%s", type);
  fwrite(head, 1, sizeof head, out);
}

void md_lime_put_text(FILE *out, const char *type, bool begin, bool end, const char *format, ...) {
  static const char zeros[8] = {0};
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  const size_t bytes = (size_t)vsnprintf(NULL, 0, format, again) + 1;
  md_lime_put_head(out, type, bytes, begin, end);
  vfprintf(out, format, arguments);
  fwrite(zeros, 1, 1 + (8 - bytes % 8) % 8, out);
  va_end(again);
  va_end(arguments);
}

void md_lime_put_dims(FILE *out, const int dims[MD_DIMS]) {
  md_lime_put_text(out, "scidac-private-file-xml", true, false,
                   MD_XML "<scidacFile><version>1.1</version><spacetime>4</spacetime>"
                          "<dims>%d %d %d %d </dims><volfmt>0</volfmt></scidacFile>",
                   dims[0], dims[1], dims[2], dims[3]);
}

void md_lime_put_checksum(FILE *out, const md_checksum *sum) {
  md_lime_put_text(out, "scidac-checksum", false, true,
                   MD_XML "<scidacChecksum><version>1.0</version><suma>%08x</suma><sumb>%08x</sumb>"
                          "</scidacChecksum>",
                   sum->a, sum->b);
}

void md_lime_date(char text[MD_LIME_DATE]) {
  const time_t now = time(NULL);
  struct tm calendar;
  strftime(text, MD_LIME_DATE, "%a %b %d %H:%M:%S %Y UTC", gmtime_r(&now, &calendar));
}
