#include "io/payload.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* NERSC archive: lines KEY = VALUE between BEGIN_HEADER and END_HEADER, then the links of
 * 4D_SU3_GAUGE (two rows) or 4D_SU3_GAUGE_3x3. Keys that a writer left out are noted; where
 * FLOATING_POINT is missing (MILC does not write it) IEEE32BIG is meant. */
enum { NERSC_HEAD_MOST = 65536, NERSC_VALUE = 128 };

static bool recognises(const unsigned char *head, size_t bytes) {
  return bytes >= 12 && memcmp(head, "BEGIN_HEADER", 12) == 0;
}

/* Copies the value of `key` without surrounding blanks; false when there is none. */
static bool value_of(const char *head, const char *key, char value[NERSC_VALUE]) {
  const size_t length = strlen(key);
  for (const char *line = head; line; line = strchr(line, '\n'), line += line != NULL) {
    while (*line == ' ' || *line == '\t') line++;
    if (strncmp(line, key, length) != 0) continue;
    const char *at = line + length + strspn(line + length, " \t");
    if (*at != '=') continue;
    at += 1 + strspn(at + 1, " \t");
    size_t bytes = strcspn(at, "\r\n");
    while (bytes > 0 && isspace((unsigned char)at[bytes - 1])) bytes--;
    snprintf(value, NERSC_VALUE, "%.*s", (int)(bytes < NERSC_VALUE ? bytes : NERSC_VALUE - 1), at);
    return bytes > 0;
  }
  return false;
}

static bool real_of(const char *head, const char *key, double *value) {
  char text[NERSC_VALUE], *end = text;
  if (!value_of(head, key, text)) return false;
  *value = strtod(text, &end);
  return end != text && *end == 0;
}

static const struct {
  const char *name;
  int real_bytes;
  bool big_endian;
} floating_points[] = {{"IEEE32BIG", 4, true},     {"IEEE64BIG", 8, true},
                       {"IEEE32LITTLE", 4, false}, {"IEEE64LITTLE", 8, false},
                       {"IEEE32", 4, false},       {"IEEE64", 8, false}};
enum { FLOATING_POINTS = sizeof floating_points / sizeof *floating_points };

static md_status read_types(md_context *context, const md_source *source, const char *head,
                            md_lattice_header *header, md_notes *notes) {
  char text[NERSC_VALUE] = "";
  int i = 0;
  if (!value_of(head, "DATATYPE", text) ||
      (strcmp(text, "4D_SU3_GAUGE") && strcmp(text, "4D_SU3_GAUGE_3x3")))
    return md_fail(context, MD_INPUT,
                   "%s: DATATYPE must be 4D_SU3_GAUGE or 4D_SU3_GAUGE_3x3, got '%s'", source->path,
                   text);
  header->site.rows = strcmp(text, "4D_SU3_GAUGE") == 0 ? 2 : 3;
  if (!value_of(head, "FLOATING_POINT", text)) {
    md_notes_departure(notes, "FLOATING_POINT is missing; taken as IEEE32BIG");
    strcpy(text, "IEEE32BIG");
  }
  while (i < FLOATING_POINTS && strcasecmp(text, floating_points[i].name)) i++;
  if (i == FLOATING_POINTS)
    return md_fail(context, MD_INPUT,
                   "%s: FLOATING_POINT must be IEEE32BIG, IEEE64BIG, IEEE32LITTLE or IEEE64LITTLE, "
                   "got '%s'",
                   source->path, text);
  header->site.real_bytes = floating_points[i].real_bytes;
  header->site.big_endian = floating_points[i].big_endian;
  header->precision = header->site.real_bytes == 8 ? MD_DOUBLE : MD_SINGLE;
  return MD_OK;
}

static void read_values(const char *head, md_lattice_header *header, md_notes *notes) {
  static const char *const wanted[] = {"HDR_VERSION", "STORAGE_FORMAT", "SEQUENCE_NUMBER",
                                       "ENSEMBLE_ID"};
  char text[NERSC_VALUE], *end = text;
  header->has_plaquette = real_of(head, "PLAQUETTE", &header->plaquette);
  header->has_link_trace = real_of(head, "LINK_TRACE", &header->link_trace);
  header->binding = true;
  if (!header->has_plaquette) md_notes_departure(notes, "PLAQUETTE is missing");
  if (!header->has_link_trace) md_notes_departure(notes, "LINK_TRACE is missing");
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
    if (!value_of(head, wanted[i], text)) md_notes_departure(notes, "%s is missing", wanted[i]);
  if (!value_of(head, "CHECKSUM", text)) {
    md_notes_departure(notes, "CHECKSUM is missing");
    return;
  }
  const unsigned long sum = strtoul(text, &end, 16);
  if (end == text || *end || sum > UINT32_MAX)
    md_notes_departure(notes, "CHECKSUM is not a 32-bit hexadecimal number: %.60s", text);
  else
    header->checksum = (md_checksum){.kind = MD_CHECKSUM_NERSC, .a = (uint32_t)sum};
}

/* The header text, closed by a zero byte behind its END_HEADER line; released with free(). */
static md_status read_head(md_context *context, const md_source *source, char **head) {
  const size_t most = source->bytes < NERSC_HEAD_MOST ? (size_t)source->bytes : NERSC_HEAD_MOST;
  char *text = calloc(1, NERSC_HEAD_MOST + 1);
  *head = text;
  if (!text) return md_fail_memory(context, NERSC_HEAD_MOST, "lattice header");
  MD_TRY(md_source_read(context, source, 0, text, most));
  char *end = strstr(text, "\nEND_HEADER"); /* stops at the first zero byte, as a text should */
  char *newline = end ? strchr(end + 1, '\n') : NULL;
  if (!newline)
    return md_fail(context, MD_INPUT, "%s: no END_HEADER line in the first %zu bytes", source->path,
                   most);
  newline[1] = 0;
  return MD_OK;
}

static md_status parse_head(md_context *context, const md_source *source, const char *head,
                            md_lattice_header *header, md_notes *notes) {
  long long dims[MD_DIMS];
  char key[16], text[NERSC_VALUE] = "", *end = text;
  int64_t rest = 0;
  for (int d = 0; d < MD_DIMS; d++) {
    snprintf(key, sizeof key, "DIMENSION_%d", d + 1);
    const bool found = value_of(head, key, text);
    dims[d] = found ? strtoll(text, &end, 10) : 0;
    if (!found || end == text || *end)
      return md_fail(context, MD_INPUT, "%s: %s must be a whole number, got '%s'", source->path,
                     key, found ? text : "");
  }
  MD_TRY(md_source_check_dims(context, source, dims, header));
  MD_TRY(read_types(context, source, head, header, notes));
  read_values(head, header, notes);
  header->offset = (int64_t)strlen(head);
  MD_TRY(md_source_check_links(context, source, header, &rest));
  if (rest > 0) md_notes_departure(notes, "%lld bytes follow the links", (long long)rest);
  md_notes_record(notes, &(md_record){.type = "header", .bytes = header->offset});
  md_notes_record(notes, &(md_record){.type = "links",
                                      .offset = header->offset,
                                      .bytes = md_lattice_link_bytes(header)});
  return MD_OK;
}

static md_status describe(md_context *context, const md_source *source, md_lattice_header *header,
                          md_notes *notes) {
  char *head = NULL;
  md_status status = read_head(context, source, &head);
  if (status == MD_OK) status = parse_head(context, source, head, header, notes);
  free(head);
  return status;
}

static md_status compose(md_context *context, const md_lattice_header *header,
                         md_payload_frame *frame) {
  const int *d = header->dims;
  const int length = asprintf(
      &frame->head,
      "BEGIN_HEADER\nHDR_VERSION = 1.0\nSTORAGE_FORMAT = 1.0\nDATATYPE = 4D_SU3_GAUGE_3x3\n"
      "DIMENSION_1 = %d\nDIMENSION_2 = %d\nDIMENSION_3 = %d\nDIMENSION_4 = %d\n"
      "BOUNDARY_1 = PERIODIC\nBOUNDARY_2 = PERIODIC\nBOUNDARY_3 = PERIODIC\n"
      "BOUNDARY_4 = PERIODIC\nCHECKSUM = %08x\nLINK_TRACE = %.15g\nPLAQUETTE = %.15g\n"
      "FLOATING_POINT = %s\nENSEMBLE_ID = none\nENSEMBLE_LABEL = none\nSEQUENCE_NUMBER = 0\n"
      "CREATOR = miniDirac\nEND_HEADER\n",
      d[0], d[1], d[2], d[3], header->checksum.a, header->link_trace, header->plaquette,
      header->site.real_bytes == 8 ? "IEEE64BIG" : "IEEE32BIG");
  if (length < 0) {
    frame->head = NULL;
    return md_fail_memory(context, NERSC_HEAD_MOST, "lattice header");
  }
  frame->head_bytes = (size_t)length;
  return MD_OK;
}

static md_status write_file(md_context *context, const char *path, md_lattice_header *header,
                            const md_gauge *gauge) {
  header->site = (md_site_format){
      .rows = 3, .real_bytes = header->precision == MD_DOUBLE ? 8 : 4, .big_endian = true};
  header->checksum.kind = MD_CHECKSUM_NERSC;
  return md_payload_write(context, path, header, gauge, compose);
}

const md_lattice_format md_format_nersc = {.name = "nersc",
                                           .suffixes = ".nersc",
                                           .thin_only = true,
                                           .recognises = recognises,
                                           .describe = describe,
                                           .read = md_payload_read,
                                           .write = write_file};
