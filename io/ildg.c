#include "base/options.h"
#include "base/text.h"
#include "io/lime.h"
#include "io/vectors.h"

#include <stdlib.h>
#include <string.h>

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
  md_vector_run vector;          /* what the message at hand says of its binary record */
  bool of_vectors;               /* which is then one of colour vectors */
} content;

static void read_ildg_format(const char *text, content *found, md_notes *notes) {
  static const char *const names[MD_DIMS] = {"lx", "ly", "lz", "lt"};
  const char *field = md_xml_tag(text, "field");
  long long bits = 0;
  found->has_format = true;
  found->ildg.given = true;
  for (int d = 0; d < MD_DIMS; d++)
    if (!md_xml_integers(text, names[d], &found->ildg.dims[d], 1)) found->ildg.given = false;
  if (!found->ildg.given) md_notes_departure(notes, "ildg-format lacks one of lx, ly, lz, lt");
  if (!md_xml_integers(text, "precision", &bits, 1)) bits = 0;
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
  found->of_vectors = md_scidac_vectors(text, &found->vector);
  if (found->of_vectors || found->data.bytes > 0) return;
  const char *precision = md_xml_tag(text, "precision"), *type = md_xml_tag(text, "datatype");
  long long typesize = 0, count = 0;
  if (precision && *precision == 'F') found->scidac.bits = 32;
  if (precision && *precision == 'D') found->scidac.bits = 64;
  if (!type || strncmp(type, "QDP_", 4) || !strstr(type, "ColorMatrix"))
    md_notes_departure(notes, "scidac-private-record-xml: datatype is not a QDP ColorMatrix");
  if (!md_xml_integers(text, "datacount", &count, 1) || count != MD_DIMS)
    md_notes_departure(notes, "scidac-private-record-xml: datacount must be 4, got %lld", count);
  if (!md_xml_integers(text, "typesize", &typesize, 1) ||
      typesize != (long long)MD_LINK_REALS * found->scidac.bits / 8)
    md_notes_departure(notes, "scidac-private-record-xml: typesize %lld does not fit %d bits",
                       typesize, found->scidac.bits);
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

/* The texts of files of vectors. */
static md_status read_vector_text(const md_header_input *s, const char *type, const char *text,
                                  content *found) {
  md_notes *notes = s->notes;
  md_vector_run *last = notes->run_count > 0 ? &notes->runs[notes->run_count - 1] : NULL;
  if (strcmp(type, "scidac-file-xml") == 0 ||
      (found->of_vectors && strcmp(type, "scidac-record-xml") == 0))
    return md_scidac_said(s->context, text, &notes->texts,
                          found->of_vectors ? &found->vector : NULL);
  if (strcmp(type, "scidac-checksum") == 0 && last && last->checksum.kind == MD_CHECKSUM_NONE)
    (void)md_lime_checksum(text, &last->checksum, notes);
  return MD_OK;
}

static void read_text(const md_header_input *s, const char *type, const char *text,
                      content *found) {
  /* What stands behind the links may be of a further message. */
  const bool known = found->data.bytes > 0 && (found->ildg.given || found->scidac.given);
  if (strcmp(type, "ildg-format") == 0) {
    if (!known) read_ildg_format(text, found, s->notes);
  } else if (strcmp(type, "scidac-private-file-xml") == 0) {
    if (known) return;
    found->scidac.given = md_xml_integers(text, "dims", found->scidac.dims, MD_DIMS);
    if (!found->scidac.given)
      md_notes_departure(s->notes, "scidac-private-file-xml has no four dims");
  } else if (strcmp(type, "scidac-private-record-xml") == 0) {
    read_scidac_record(text, found, s->notes);
  } else if (strcmp(type, "ildg-data-lfn") == 0) {
    found->has_lfn = true;
    if (strncmp(text, "lfn://", 6) && strncmp(text, "mc://", 5))
      md_notes_departure(s->notes, "ildg-data-lfn does not start with lfn:// or mc://");
  } else if (strcmp(type, "scidac-checksum") == 0 && found->data.bytes > 0 &&
             s->header->checksum.kind == MD_CHECKSUM_NONE) {
    (void)md_lime_checksum(text, &s->header->checksum, s->notes);
  } else if (strcmp(type, "scidac-record-xml") == 0 && found->data.bytes == 0) {
    const char *plaquette = md_xml_tag(text, "plaq"), *trace = md_xml_tag(text, "linktr");
    if (plaquette) s->header->has_plaquette = sscanf(plaquette, "%lf", &s->header->plaquette) == 1;
    if (trace) s->header->has_link_trace = sscanf(trace, "%lf", &s->header->link_trace) == 1;
    read_label(text, &s->header->label);
  }
}

/* Keeps what we do not say anew when we write such a file. */
static md_status keep_text(const md_header_input *s, const char *type, const char *text,
                           size_t bytes, content *found) {
  static const char anew[] =
      "ildg-format|scidac-private-file-xml|scidac-private-record-xml|scidac-checksum";
  static const char *const own[] = {"<title>miniDirac gauge configuration</title>",
                                    "written by miniDirac</info>", "lfn://unregistered/miniDirac"};
  if (strcmp(type, "scidac-private-record-xml") == 0 && !*found->date) {
    const char *date = md_xml_tag(text, "date");
    snprintf(found->date, sizeof found->date, "%.*s", date ? (int)strcspn(date, "<") : 0,
             date ? date : "");
  }
  for (int i = 0; i < 3; i++)
    if (strstr(text, own[i])) {
      found->own = true;
      return MD_OK;
    }
  if (md_choice_of(anew, type) >= 0) return MD_OK;
  return md_file_texts_add(s->context, &s->notes->texts, type, text, bytes);
}

/* Takes what a record says. */
static md_status read_record(const md_header_input *s, const md_record *record, content *found) {
  if (md_choice_of("ildg-binary-data|scidac-binary-data", record->type) >= 0) {
    if (found->of_vectors) {
      found->of_vectors = false;
      found->vector.offset = record->offset;
      found->vector.bytes = record->bytes;
      return md_notes_run(s->context, s->notes, &found->vector);
    }
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
  if (status == MD_OK) status = read_vector_text(s, record->type, copy, found);
  if (status == MD_OK) status = keep_text(s, record->type, copy, (size_t)record->bytes, found);
  free(copy);
  return status;
}

static md_status settle(const md_header_input *s, const content *found) {
  const shape *ildg = &found->ildg, *scidac = &found->scidac;
  if (found->data.bytes == 0 && s->notes->run_count > 0 && scidac->given) {
    s->header->scidac = true;
    return md_vectors_settle(s, scidac->dims, true);
  }
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
  while (s->bytes - at >= MD_LIME_HEAD) {
    if (++count > RECORDS_MOST)
      return md_fail(s->context, MD_INPUT, "%s: a lattice file has at most %d LIME records",
                     s->path, RECORDS_MOST);
    MD_TRY(md_lime_next(s, count > 1 ? &last : NULL, &at, &record));
    md_notes_record(s->notes, &record);
    MD_TRY(read_record(s, &record, &found));
    last = record;
  }
  unsigned char start[4] = {0};
  rest = s->bytes - at;
  MD_TRY(md_header_input_read(s, at, start, rest < 4 ? (size_t)rest : 4));
  if (md_lime_recognises(start, sizeof start))
    return md_fail(s->context, MD_INPUT,
                   "%s is truncated: a LIME record starts at byte %lld, the file ends at %lld",
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

static void put_texts(FILE *out, const md_lattice_header *header) {
  const int *d = header->dims, bits = header->site.real_bytes * 8;
  const char letter = bits == 64 ? 'D' : 'F';
  char date[MD_LIME_DATE], label[256];
  md_lime_date(date);
  md_lime_put_dims(out, d);
  const char *title = md_file_texts_find(header->texts, "scidac-file-xml");
  md_lime_put_text(out, "scidac-file-xml", false, true, "%s",
                   title ? title : MD_XML "<title>miniDirac gauge configuration</title>");
  md_lime_put_text(
      out, "scidac-private-record-xml", true, false,
      MD_XML "<scidacRecord><version>1.1</version><date>%s</date><recordtype>0</recordtype>"
             "<datatype>QDP_%c3_ColorMatrix</datatype><precision>%c</precision><colors>3</colors>"
             "<typesize>%d</typesize><datacount>4</datacount></scidacRecord>",
      date, letter, letter, MD_LINK_REALS * bits / 8);
  print_label(&header->label, label, sizeof label);
  md_lime_put_text(out, "scidac-record-xml", false, false,
                   MD_XML
                   "<usqcdInfo><version>1.0</version><plaq>%.15g</plaq><linktr>%.15g</linktr>"
                   "<info>%swritten by miniDirac</info></usqcdInfo>",
                   header->plaquette, header->link_trace, label);
  if (header->label.kind != MD_LINKS_THIN) return; /* no su3gauge: a SciDAC file */
  md_lime_put_text(
      out, "ildg-format", false, false,
      MD_XML "<ildgFormat xmlns=\"http://www.lqcd.org/ildg\" "
             "xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" "
             "xsi:schemaLocation=\"http://www.lqcd.org/ildg/filefmt.xsd\"><version>1.0</version>"
             "<field>su3gauge</field><precision>%d</precision><lx>%d</lx><ly>%d</ly><lz>%d</lz>"
             "<lt>%d</lt></ildgFormat>",
      bits, d[0], d[1], d[2], d[3]);
  const char *lfn = md_file_texts_find(header->texts, "ildg-data-lfn");
  md_lime_put_text(out, "ildg-data-lfn", false, false, "%s",
                   lfn ? lfn : "lfn://unregistered/miniDirac");
}

/* Texts that stand in put_texts, or in no record of their own name. */
static bool is_placed(const md_lattice_header *header, const char *name) {
  return strcmp(name, "scidac-file-xml") == 0 ||
         (strcmp(name, "ildg-data-lfn") == 0 && header->label.kind == MD_LINKS_THIN);
}

/* Whether we write a record of that name ourselves. */
static bool is_known(const char *name) {
  static const char ours[] =
      "scidac-record-xml|scidac-checksum|ildg-format|ildg-binary-data|ildg-data-lfn";
  return md_choice_of(ours, name) >= 0;
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
    md_lime_put_text(out, type, put == 0, put + 1 == left, "%s", text);
    put++;
  }
}

static md_status compose(md_context *context, const md_lattice_header *header, md_frame *frame) {
  FILE *head = open_memstream(&frame->head, &frame->head_bytes);
  FILE *tail = open_memstream(&frame->tail, &frame->tail_bytes);
  if (head && tail) {
    put_texts(head, header);
    const bool thin = header->label.kind == MD_LINKS_THIN;
    md_lime_put_head(head, thin ? "ildg-binary-data" : "scidac-binary-data",
                     (uint64_t)md_lattice_link_bytes(header), false, false);
    md_lime_put_checksum(tail, &header->checksum);
    put_kept_texts(tail, header);
  }
  const bool closed_head = head && fclose(head) == 0;
  const bool closed_tail = tail && fclose(tail) == 0;
  return closed_head && closed_tail ? MD_OK : md_fail_memory(context, 4096, "lattice header");
}

const md_lattice_format md_format_ildg = {.name = "ildg",
                                          .suffixes = ".lime .ildg",
                                          .holds = MD_HOLDS_LINKS,
                                          .checksum = MD_CHECKSUM_SCIDAC,
                                          .recognises = md_lime_recognises,
                                          .describe = describe,
                                          .compose = compose};
