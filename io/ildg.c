#include "base/text.h"
#include "io/lattice_format.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* LIME records (USQCD c-lime, version 1): a header of 144 bytes (magic, version, flags of message
 * begin and end, length of the data, name of 128 bytes; big-endian), data, zeros up to a
 * multiple of 8. */
enum { LIME_HEAD = 144, LIME_VERSION = 1, LIME_BEGIN = 0x8000, LIME_END = 0x4000 };
static const unsigned char magic[4] = {0x45, 0x67, 0x89, 0xab};

static bool recognises(const unsigned char *head, size_t bytes) {
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

/* Reads the record header at *at (record->offset: its data) and moves *at to the next record.
 * `previous` is the record before, NULL at the start of the file: flags that do not fit it, an
 * unknown version and padding that is not zero are noted. MD_INPUT when there is no record or it
 * does not end within the file. */
static md_status next_record(const md_header_input *s, const md_record *previous, int64_t *at,
                             md_record *record) {
  unsigned char head[LIME_HEAD], zeros[8] = {0};
  MD_TRY(md_header_input_read(s, *at, head, sizeof head));
  if (!recognises(head, sizeof head))
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

/* ILDG (binary format 1.1) and SciDAC (QIO) lattices in LIME. In a file that is read either family
 * of records may be there; where both are, they must agree. Numbers are big-endian, links have
 * three rows. */
enum { TEXT_MOST = 1 << 20, RECORDS_MOST = 65536 };

typedef struct shape { /* what one of the two families says */
  bool given;
  long long dims[MD_DIMS];
  int bits; /* 32, 64; 0: not said */
} shape;

typedef struct content {
  shape ildg, scidac;
  md_record data;                /* the first binary record of links; bytes 0: none yet */
  bool has_lfn, has_format, own; /* own: written by us, who say in texts what is to be kept */
  char date[64];                 /* of the private record; empty: none */
} content;

/* Text between <tag ...> and the next '<', without leading blanks; NULL when there is none. */
static const char *tag_of(const char *text, const char *tag) {
  const size_t length = strlen(tag);
  for (const char *at = strchr(text, '<'); at; at = strchr(at + 1, '<')) {
    if (strncmp(at + 1, tag, length) || !strchr("> \t\r\n", at[1 + length])) continue;
    at = strchr(at, '>');
    return at ? at + 1 + strspn(at + 1, " \t\r\n") : NULL;
  }
  return NULL;
}

static bool integers_of(const char *text, const char *tag, long long *values, int count) {
  const char *at = tag_of(text, tag);
  char *end = NULL;
  for (int i = 0; at && i < count; i++, at = end) {
    values[i] = strtoll(at, &end, 10);
    if (end == at) return false;
  }
  return at != NULL;
}

static void read_ildg_format(const char *text, content *found, md_notes *notes) {
  static const char *const names[MD_DIMS] = {"lx", "ly", "lz", "lt"};
  const char *field = tag_of(text, "field");
  long long bits = 0;
  found->has_format = true;
  found->ildg.given = true;
  for (int d = 0; d < MD_DIMS; d++)
    if (!integers_of(text, names[d], &found->ildg.dims[d], 1)) found->ildg.given = false;
  if (!found->ildg.given) md_notes_departure(notes, "ildg-format lacks one of lx, ly, lz, lt");
  if (!integers_of(text, "precision", &bits, 1)) bits = 0;
  if (bits == 32 || bits == 64)
    found->ildg.bits = (int)bits;
  else
    md_notes_departure(notes, "ildg-format: precision must be 32 or 64, got %lld", bits);
  if (!field || strncmp(field, "su3gauge", 8))
    md_notes_departure(notes, "ildg-format: field must be su3gauge");
  if (!strstr(text, "http://www.lqcd.org/ildg"))
    md_notes_departure(notes, "ildg-format lacks the namespace http://www.lqcd.org/ildg");
}

static void read_scidac_record(const char *text, content *found, md_notes *notes) {
  const char *precision = tag_of(text, "precision"), *type = tag_of(text, "datatype");
  long long typesize = 0, count = 0;
  if (precision && *precision == 'F') found->scidac.bits = 32;
  if (precision && *precision == 'D') found->scidac.bits = 64;
  if (!type || strncmp(type, "QDP_", 4) || !strstr(type, "ColorMatrix"))
    md_notes_departure(notes, "scidac-private-record-xml: datatype is not a QDP ColorMatrix");
  if (!integers_of(text, "datacount", &count, 1) || count != MD_DIMS)
    md_notes_departure(notes, "scidac-private-record-xml: datacount must be 4, got %lld", count);
  if (!integers_of(text, "typesize", &typesize, 1) ||
      typesize != (long long)MD_LINK_REALS * found->scidac.bits / 8)
    md_notes_departure(notes, "scidac-private-record-xml: typesize %lld does not fit %d bits",
                       typesize, found->scidac.bits);
}

static bool hexadecimal_of(const char *text, const char *tag, uint32_t *value, md_notes *notes) {
  const char *at = tag_of(text, tag);
  char *end = NULL;
  const unsigned long long sum = at ? strtoull(at, &end, 16) : 0;
  if (!at || end == at || sum > UINT32_MAX) {
    md_notes_departure(notes, "scidac-checksum: %s is not a 32-bit hexadecimal number", tag);
    return false;
  }
  *value = (uint32_t)sum;
  return true;
}

/* What the label of links says, in files that we write, of links without phases and boundary sign.
 */
static const char bare_words[] = "no phases, no boundary sign";

/* "Fat links" or "Long links" and, from us, what they are made by: "Fat links, MADE; ...". */
static void read_label(const char *text, md_link_label *label) {
  const char *fat = strstr(text, "Fat links"), *words = fat ? fat : strstr(text, "Long links");
  if (!words) return;
  label->kind = fat ? MD_LINKS_FAT : MD_LINKS_LONG;
  label->bare = strstr(words, bare_words) != NULL;
  words = strstr(words, "links") + strlen("links");
  if (strncmp(words, ", ", 2) == 0)
    snprintf(label->made, sizeof label->made, "%.*s", (int)strcspn(words + 2, ";<"), words + 2);
}

static void read_text(const md_header_input *s, const char *type, const char *text,
                      content *found) {
  if (strcmp(type, "ildg-format") == 0) {
    read_ildg_format(text, found, s->notes);
  } else if (strcmp(type, "scidac-private-file-xml") == 0) {
    found->scidac.given = integers_of(text, "dims", found->scidac.dims, MD_DIMS);
    if (!found->scidac.given)
      md_notes_departure(s->notes, "scidac-private-file-xml has no four dims");
  } else if (strcmp(type, "scidac-private-record-xml") == 0 && found->data.bytes == 0) {
    read_scidac_record(text, found, s->notes);
  } else if (strcmp(type, "ildg-data-lfn") == 0) {
    found->has_lfn = true;
    if (strncmp(text, "lfn://", 6) && strncmp(text, "mc://", 5))
      md_notes_departure(s->notes, "ildg-data-lfn does not start with lfn:// or mc://");
  } else if (strcmp(type, "scidac-checksum") == 0 && found->data.bytes > 0 &&
             s->header->checksum.kind == MD_CHECKSUM_NONE) {
    md_checksum sum = {.kind = MD_CHECKSUM_SCIDAC};
    if (hexadecimal_of(text, "suma", &sum.a, s->notes) &&
        hexadecimal_of(text, "sumb", &sum.b, s->notes))
      s->header->checksum = sum;
  } else if (strcmp(type, "scidac-record-xml") == 0 && found->data.bytes == 0) {
    const char *plaquette = tag_of(text, "plaq"), *trace = tag_of(text, "linktr");
    if (plaquette) s->header->has_plaquette = sscanf(plaquette, "%lf", &s->header->plaquette) == 1;
    if (trace) s->header->has_link_trace = sscanf(trace, "%lf", &s->header->link_trace) == 1;
    read_label(text, &s->header->label);
  }
}

static bool is_one_of(const char *word, const char *const *words) {
  while (*words && strcmp(*words, word) != 0) words++;
  return *words != NULL;
}

/* Keeps what we do not say anew when we write such a file. */
static md_status keep_text(const md_header_input *s, const char *type, const char *text,
                           size_t bytes, content *found) {
  static const char *const anew[] = {"ildg-format", "scidac-private-file-xml",
                                     "scidac-private-record-xml", "scidac-checksum", NULL};
  static const char *const own[] = {"<title>miniDirac gauge configuration</title>",
                                    "written by miniDirac</info>", "lfn://unregistered/miniDirac"};
  if (strcmp(type, "scidac-private-record-xml") == 0 && !*found->date) {
    const char *date = tag_of(text, "date");
    snprintf(found->date, sizeof found->date, "%.*s", date ? (int)strcspn(date, "<") : 0,
             date ? date : "");
  }
  for (int i = 0; i < 3; i++)
    if (strstr(text, own[i])) {
      found->own = true;
      return MD_OK;
    }
  if (is_one_of(type, anew)) return MD_OK;
  return md_file_texts_add(s->context, &s->notes->texts, type, text, bytes);
}

/* Takes what a record says. */
static md_status read_record(const md_header_input *s, const md_record *record, content *found) {
  static const char *const binaries[] = {"ildg-binary-data", "scidac-binary-data", NULL};
  if (is_one_of(record->type, binaries)) {
    if (found->data.bytes > 0)
      md_notes_departure(s->notes, "a second binary record, %s, is not read", record->type);
    else
      found->data = *record;
    return MD_OK;
  }
  if (record->bytes > TEXT_MOST) {
    s->notes->texts.lost++;
    return MD_OK;
  }
  char *copy = calloc(1, (size_t)record->bytes + 1);
  if (!copy) return md_fail_memory(s->context, (size_t)record->bytes, "LIME record");
  md_status status = md_header_input_read(s, record->offset, copy, (size_t)record->bytes);
  if (status == MD_OK) read_text(s, record->type, copy, found);
  if (status == MD_OK) status = keep_text(s, record->type, copy, (size_t)record->bytes, found);
  free(copy);
  return status;
}

static md_status settle(const md_header_input *s, const content *found) {
  const shape *ildg = &found->ildg, *scidac = &found->scidac;
  if (found->data.bytes == 0)
    return md_fail(s->context, MD_INPUT, "%s: no record ildg-binary-data or scidac-binary-data",
                   s->path);
  if (!ildg->given && !scidac->given)
    return md_fail(s->context, MD_INPUT,
                   "%s: neither ildg-format nor scidac-private-file-xml gives the extents",
                   s->path);
  for (int d = 0; d < MD_DIMS && ildg->given && scidac->given; d++)
    if (ildg->dims[d] != scidac->dims[d])
      return md_fail(s->context, MD_INPUT,
                     "%s: extents differ in direction %c: ildg-format says %lld, "
                     "scidac-private-file-xml %lld",
                     s->path, "xyzt"[d], ildg -> dims[d], scidac -> dims[d]);
  MD_TRY(md_header_input_check_dims(s, ildg->given ? ildg->dims : scidac->dims));
  const int bits = ildg->bits ? ildg->bits : scidac->bits;
  if ((bits != 32 && bits != 64) || (ildg->bits && scidac->bits && ildg->bits != scidac->bits))
    return md_fail(s->context, MD_INPUT,
                   "%s: precision must be 32 or 64 bits, ildg-format says %d, "
                   "scidac-private-record-xml %d (0: nothing)",
                   s->path, ildg->bits, scidac->bits);
  s->header->precision = bits == 64 ? MD_DOUBLE : MD_SINGLE;
  s->header->site = (md_site_format){.rows = 3, .real_bytes = bits / 8, .big_endian = true};
  s->header->offset = found->data.offset;
  s->header->scidac = strcmp(found->data.type, "scidac-binary-data") == 0;
  if (found->data.bytes != md_lattice_link_bytes(s->header))
    return md_fail(s->context, MD_INPUT,
                   "%s: record %s has %lld bytes, a %dx%dx%dx%d lattice in %d bits needs %lld",
                   s->path, found->data.type, (long long)found->data.bytes, s->header->dims[0],
                   s->header->dims[1], s->header->dims[2], s->header->dims[3], bits,
                   (long long)md_lattice_link_bytes(s->header));
  return MD_OK;
}

static md_status describe(const md_header_input *s) {
  content found = {0};
  md_record record, last = {0};
  int64_t at = 0, rest = 0;
  int count = 0;
  while (s->bytes - at >= LIME_HEAD) {
    if (++count > RECORDS_MOST)
      return md_fail(s->context, MD_INPUT, "%s: a lattice file has at most %d LIME records",
                     s->path, RECORDS_MOST);
    MD_TRY(next_record(s, count > 1 ? &last : NULL, &at, &record));
    md_notes_record(s->notes, &record);
    MD_TRY(read_record(s, &record, &found));
    last = record;
  }
  unsigned char start[4] = {0};
  rest = s->bytes - at;
  MD_TRY(md_header_input_read(s, at, start, rest < 4 ? (size_t)rest : 4));
  if (recognises(start, sizeof start))
    return md_fail(s->context, MD_INPUT,
                   "%s is truncated: a LIME record starts at byte %lld, the "
                   "file ends at %lld",
                   s->path, (long long)at, (long long)s->bytes);
  if (rest > 0)
    md_notes_departure(s->notes, "the last record ends %lld byte%s before the file",
                       (long long)rest, md_plural(rest));
  MD_TRY(settle(s, &found));
  if (!found.own)
    MD_TRY(md_file_texts_add(s->context, &s->notes->texts, "scidac date", found.date,
                             strlen(found.date)));
  const bool ildg = !s->header->scidac;
  if (!last.message_end)
    md_notes_departure(s->notes, "the last record, %s, has no flag ME", last.type);
  if (ildg && !found.has_format) md_notes_departure(s->notes, "ildg-format is missing");
  if (ildg && !found.has_lfn) md_notes_departure(s->notes, "ildg-data-lfn is missing");
  return MD_OK;
}

/* Appends the header of a record. */
static void put_head(FILE *out, const char *type, uint64_t bytes, bool begin, bool end) {
  unsigned char head[LIME_HEAD] = {0};
  memcpy(head, magic, sizeof magic);
  head[5] = LIME_VERSION;
  head[6] = (unsigned char)((begin ? LIME_BEGIN : 0) >> 8 | (end ? LIME_END : 0) >> 8);
  for (int i = 0; i < 8; i++) head[8 + i] = (unsigned char)(bytes >> (56 - 8 * i));
  snprintf((char *)head + 16, 128, "%s", type);
  fwrite(head, 1, sizeof head, out);
}

/* Appends a record with a text and its closing zero byte. */
static void put_text(FILE *out, const char *type, bool begin, bool end, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
static void put_text(FILE *out, const char *type, bool begin, bool end, const char *format, ...) {
  static const char zeros[8] = {0};
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  const size_t bytes = (size_t)vsnprintf(NULL, 0, format, again) + 1;
  put_head(out, type, bytes, begin, end);
  vfprintf(out, format, arguments);
  fwrite(zeros, 1, 1 + (8 - bytes % 8) % 8, out);
  va_end(again);
  va_end(arguments);
}

/* Writes ILDG and SciDAC lattices: thin links with the records of both, fat and long ones as SciDAC
 * alone, for ILDG knows no such field. */

/* Nothing for thin links. */
static void print_label(const md_link_label *label, char *text, size_t bytes) {
  *text = 0;
  if (label->kind == MD_LINKS_THIN) return;
  snprintf(text, bytes, "%s links%s%s; %s%s", label->kind == MD_LINKS_FAT ? "Fat" : "Long",
           *label->made ? ", " : "", label->made, label->bare ? bare_words : "",
           label->bare ? "; " : "");
}

#define XML "<?xml version=\"1.0\" encoding=\"UTF-8\"?>"

static void put_texts(FILE *out, const md_lattice_header *header) {
  const int *d = header->dims, bits = header->site.real_bytes * 8;
  const char letter = bits == 64 ? 'D' : 'F';
  const time_t now = time(NULL);
  struct tm calendar;
  char date[40], label[256];
  strftime(date, sizeof date, "%a %b %d %H:%M:%S %Y UTC", gmtime_r(&now, &calendar));
  put_text(out, "scidac-private-file-xml", true, false,
           XML "<scidacFile><version>1.1</version><spacetime>4</spacetime><dims>%d %d %d %d </dims>"
               "<volfmt>0</volfmt></scidacFile>",
           d[0], d[1], d[2], d[3]);
  const char *title = md_file_texts_find(header->texts, "scidac-file-xml");
  put_text(out, "scidac-file-xml", false, true, "%s",
           title ? title : XML "<title>miniDirac gauge configuration</title>");
  put_text(out, "scidac-private-record-xml", true, false,
           XML "<scidacRecord><version>1.1</version><date>%s</date><recordtype>0</recordtype>"
               "<datatype>QDP_%c3_ColorMatrix</datatype><precision>%c</precision><colors>3</colors>"
               "<typesize>%d</typesize><datacount>4</datacount></scidacRecord>",
           date, letter, letter, MD_LINK_REALS * bits / 8);
  print_label(&header->label, label, sizeof label);
  put_text(out, "scidac-record-xml", false, false,
           XML "<usqcdInfo><version>1.0</version><plaq>%.15g</plaq><linktr>%.15g</linktr>"
               "<info>%swritten by miniDirac</info></usqcdInfo>",
           header->plaquette, header->link_trace, label);
  if (header->label.kind != MD_LINKS_THIN) return; /* no su3gauge: a SciDAC file */
  put_text(out, "ildg-format", false, false,
           XML "<ildgFormat xmlns=\"http://www.lqcd.org/ildg\" "
               "xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" "
               "xsi:schemaLocation=\"http://www.lqcd.org/ildg/filefmt.xsd\"><version>1.0</version>"
               "<field>su3gauge</field><precision>%d</precision><lx>%d</lx><ly>%d</ly><lz>%d</lz>"
               "<lt>%d</lt></ildgFormat>",
           bits, d[0], d[1], d[2], d[3]);
  const char *lfn = md_file_texts_find(header->texts, "ildg-data-lfn");
  put_text(out, "ildg-data-lfn", false, false, "%s", lfn ? lfn : "lfn://unregistered/miniDirac");
}

/* Texts that stand in put_texts, or in no record of their own name. */
static bool is_placed(const md_lattice_header *header, const char *name) {
  return strcmp(name, "scidac-file-xml") == 0 ||
         (strcmp(name, "ildg-data-lfn") == 0 && header->label.kind == MD_LINKS_THIN);
}

/* Whether we write a record of that name ourselves. */
static bool is_known(const char *name) {
  return strcmp(name, "scidac-record-xml") == 0 || strcmp(name, "ildg-data-lfn") == 0;
}

/* The other texts, as a message of records behind the checksum. */
static void put_kept_texts(FILE *out, const md_lattice_header *header) {
  const char *name, *text;
  char type[MD_FILE_TEXT_NAME + 8];
  int left = 0, put = 0;
  for (size_t at = 0; md_file_texts_next(header->texts, &at, &name, &text);)
    left += !is_placed(header, name);
  for (size_t at = 0; md_file_texts_next(header->texts, &at, &name, &text);) {
    if (is_placed(header, name)) continue;
    snprintf(type, sizeof type, "%s%s", is_known(name) ? "source " : "", name);
    put_text(out, type, put == 0, put + 1 == left, "%s", text);
    put++;
  }
}

static md_status compose(md_context *context, const md_lattice_header *header, md_frame *frame) {
  FILE *head = open_memstream(&frame->head, &frame->head_bytes);
  FILE *tail = open_memstream(&frame->tail, &frame->tail_bytes);
  if (head && tail) {
    put_texts(head, header);
    const bool thin = header->label.kind == MD_LINKS_THIN;
    put_head(head, thin ? "ildg-binary-data" : "scidac-binary-data",
             (uint64_t)md_lattice_link_bytes(header), false, false);
    put_text(tail, "scidac-checksum", false, true,
             XML "<scidacChecksum><version>1.0</version><suma>%08x</suma><sumb>%08x</sumb>"
                 "</scidacChecksum>",
             header->checksum.a, header->checksum.b);
    put_kept_texts(tail, header);
  }
  const bool closed_head = head && fclose(head) == 0;
  const bool closed_tail = tail && fclose(tail) == 0;
  return closed_head && closed_tail ? MD_OK : md_fail_memory(context, 4096, "lattice header");
}

const md_lattice_format md_format_ildg = {.name = "ildg",
                                          .suffixes = ".lime .ildg",
                                          .checksum = MD_CHECKSUM_SCIDAC,
                                          .recognises = recognises,
                                          .describe = describe,
                                          .compose = compose};
