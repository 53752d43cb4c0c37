#include "io/lime.h"

#include <string.h>

enum { LIME_VERSION = 1, LIME_BEGIN = 0x8000, LIME_END = 0x4000 };
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

md_status md_lime_next(md_context *context, const md_source *source, const md_record *previous,
                       int64_t *at, md_record *record, md_notes *notes) {
  unsigned char head[MD_LIME_HEAD], zeros[8] = {0};
  MD_TRY(md_source_read(context, source, *at, head, sizeof head));
  if (!md_lime_recognises(head, sizeof head))
    return md_fail(context, MD_INPUT, "%s: a LIME record must start at byte %lld, found 0x%08llx",
                   source->path, (long long)*at, (unsigned long long)big_endian(head, 4));
  const uint64_t bytes = big_endian(head + 8, 8);
  const int64_t data = *at + MD_LIME_HEAD;
  *record = (md_record){.offset = data};
  memcpy(record->type, head + 16, 128);
  for (char *c = record->type; *c; c++)
    if (*c < ' ' || *c > '~') *c = '?';
  record->message_begin = head[6] & 0x80;
  record->message_end = head[6] & 0x40;
  if (bytes > (uint64_t)(source->bytes - data))
    return md_fail(context, MD_INPUT,
                   "%s is truncated: record %.60s claims %llu bytes from byte %lld, the file ends "
                   "at %lld",
                   source->path, record->type, (unsigned long long)bytes, (long long)data,
                   (long long)source->bytes);
  record->bytes = (int64_t)bytes;
  note_head(head, previous, record, notes);
  int64_t padding = (8 - record->bytes % 8) % 8;
  const int64_t end = data + record->bytes;
  if (end + padding > source->bytes) {
    md_notes_departure(notes, "record %s is not padded to 8 bytes", record->type);
    padding = source->bytes - end;
  }
  MD_TRY(md_source_read(context, source, end, zeros, (size_t)padding));
  if (big_endian(zeros, 8) != 0)
    md_notes_departure(notes, "the padding of record %s is not zero", record->type);
  *at = end + padding;
  return MD_OK;
}

void md_lime_put_head(FILE *out, const char *type, uint64_t bytes, bool begin, bool end) {
  unsigned char head[MD_LIME_HEAD] = {0};
  memcpy(head, magic, sizeof magic);
  head[5] = LIME_VERSION;
  head[6] = (unsigned char)((begin ? LIME_BEGIN : 0) >> 8 | (end ? LIME_END : 0) >> 8);
  for (int i = 0; i < 8; i++) head[8 + i] = (unsigned char)(bytes >> (56 - 8 * i));
  memcpy(head + 16, type, strnlen(type, 127));
  fwrite(head, 1, sizeof head, out);
}

void md_lime_put_text(FILE *out, const char *type, const char *text, bool begin, bool end) {
  static const char zeros[8] = {0};
  const size_t bytes = strlen(text) + 1;
  md_lime_put_head(out, type, bytes, begin, end);
  fwrite(text, 1, bytes, out);
  fwrite(zeros, 1, (8 - bytes % 8) % 8, out);
}
