#include "base/options.h"
#include "io/lattice_format.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* NERSC archive: lines KEY = VALUE between BEGIN_HEADER and END_HEADER, then the links of
 * 4D_SU3_GAUGE (two rows) or 4D_SU3_GAUGE_3x3. Keys that a writer left out are noted; where
 * FLOATING_POINT is missing (MILC does not write it) IEEE32BIG is meant. */
enum { NERSC_HEAD_MOST = 65536, NERSC_VALUE = 128, NERSC_TEXT_MOST = 4096 };
/* Of a line that every header has, and of all others together: both fit into a header. */
enum { EXPECTED_TEXT_MOST = 1024, OTHER_LINES_MOST = 56000 };
static const char own_key[] = "MINIDIRAC_";

static bool recognises(const unsigned char *head, size_t bytes) {
  return bytes >= 12 && memcmp(head, "BEGIN_HEADER", 12) == 0;
}

/* Copies the value of `key` without surrounding blanks; false when there is none. */
static bool value_of(const char *head, const char *key, char value[NERSC_VALUE]) {
  const size_t length = strlen(key);
  for (const char *line = head, *end = NULL; line; line = end ? end + 1 : NULL) {
    end = strchr(line, '\n');
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

static md_status read_types(const md_header_input *s, const char *head) {
  char text[NERSC_VALUE] = "";
  int i = 0;
  if (!value_of(head, "DATATYPE", text) ||
      (strcmp(text, "4D_SU3_GAUGE") && strcmp(text, "4D_SU3_GAUGE_3x3")))
    return md_fail(s->context, MD_INPUT,
                   "%s: DATATYPE must be 4D_SU3_GAUGE or 4D_SU3_GAUGE_3x3, got '%s'", s->path,
                   text);
  s->header->site.rows = strcmp(text, "4D_SU3_GAUGE") == 0 ? 2 : 3;
  if (!value_of(head, "FLOATING_POINT", text)) {
    md_notes_departure(s->notes, "FLOATING_POINT is missing; taken as IEEE32BIG");
    strcpy(text, "IEEE32BIG");
  }
  while (i < FLOATING_POINTS && strcasecmp(text, floating_points[i].name)) i++;
  if (i == FLOATING_POINTS)
    return md_fail(s->context, MD_INPUT,
                   "%s: FLOATING_POINT must be IEEE32BIG, IEEE64BIG, IEEE32LITTLE or IEEE64LITTLE, "
                   "got '%s'",
                   s->path, text);
  s->header->site.real_bytes = floating_points[i].real_bytes;
  s->header->site.big_endian = floating_points[i].big_endian;
  s->header->precision = s->header->site.real_bytes == 8 ? MD_DOUBLE : MD_SINGLE;
  return MD_OK;
}

static void read_values(const md_header_input *s, const char *head) {
  static const char *const wanted[] = {"HDR_VERSION", "STORAGE_FORMAT", "SEQUENCE_NUMBER",
                                       "ENSEMBLE_ID"};
  char text[NERSC_VALUE], *end = text;
  s->header->has_plaquette = real_of(head, "PLAQUETTE", &s->header->plaquette);
  s->header->has_link_trace = real_of(head, "LINK_TRACE", &s->header->link_trace);
  s->header->binding = true;
  if (!s->header->has_plaquette) md_notes_departure(s->notes, "PLAQUETTE is missing");
  if (!s->header->has_link_trace) md_notes_departure(s->notes, "LINK_TRACE is missing");
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
    if (!value_of(head, wanted[i], text)) md_notes_departure(s->notes, "%s is missing", wanted[i]);
  if (!value_of(head, "CHECKSUM", text)) {
    md_notes_departure(s->notes, "CHECKSUM is missing");
    return;
  }
  const unsigned long sum = strtoul(text, &end, 16);
  if (end == text || *end || sum > UINT32_MAX)
    md_notes_departure(s->notes, "CHECKSUM is not a 32-bit hexadecimal number: %.60s", text);
  else
    s->header->checksum = (md_checksum){.kind = MD_CHECKSUM_NERSC, .a = (uint32_t)sum};
}

/* The header text, closed by a zero byte behind its END_HEADER line; released with free(). */
static md_status read_head(const md_header_input *s, char **head) {
  const size_t most = s->bytes < NERSC_HEAD_MOST ? (size_t)s->bytes : NERSC_HEAD_MOST;
  char *text = calloc(1, NERSC_HEAD_MOST + 1);
  *head = text;
  if (!text) return md_fail_memory(s->context, NERSC_HEAD_MOST, "lattice header");
  MD_TRY(md_header_input_read(s, 0, text, most));
  char *end = strstr(text, "\nEND_HEADER"); /* stops at the first zero byte, as a text should */
  char *newline = end ? strchr(end + 1, '\n') : NULL;
  if (!newline)
    return md_fail(s->context, MD_INPUT, "%s: no END_HEADER line in the first %zu bytes", s->path,
                   most);
  newline[1] = 0;
  return MD_OK;
}

static md_status parse_head(const md_header_input *s, const char *head) {
  long long dims[MD_DIMS];
  char key[16], text[NERSC_VALUE] = "", *end = text;
  for (int d = 0; d < MD_DIMS; d++) {
    snprintf(key, sizeof key, "DIMENSION_%d", d + 1);
    const bool found = value_of(head, key, text);
    dims[d] = found ? strtoll(text, &end, 10) : 0;
    if (!found || end == text || *end)
      return md_fail(s->context, MD_INPUT, "%s: %s must be a whole number, got '%s'", s->path, key,
                     found ? text : "");
  }
  MD_TRY(md_header_input_check_dims(s, dims));
  MD_TRY(read_types(s, head));
  read_values(s, head);
  s->header->offset = (int64_t)strlen(head);
  return md_header_input_take_sites(s, "links");
}

/* Lines that a writer of ours says anew. */
static bool is_said_anew(const char *key) {
  return strncmp(key, "DIMENSION_", 10) == 0 ||
         md_choice_of(
             "HDR_VERSION|STORAGE_FORMAT|DATATYPE|CHECKSUM|LINK_TRACE|PLAQUETTE|FLOATING_POINT",
             key) >= 0;
}

/* What a reader expects to find, and what is said where nothing is known. */
static const char *const expected[][2] = {{"BOUNDARY_1", "PERIODIC"}, {"BOUNDARY_2", "PERIODIC"},
                                          {"BOUNDARY_3", "PERIODIC"}, {"BOUNDARY_4", "PERIODIC"},
                                          {"ENSEMBLE_ID", "none"},    {"ENSEMBLE_LABEL", "none"},
                                          {"SEQUENCE_NUMBER", "0"},   {"CREATOR", "miniDirac"}};
enum { EXPECTED = sizeof expected / sizeof *expected, BOUNDARIES = MD_DIMS };

/* Its number among these; EXPECTED: none of them. */
static int expected_at(const char *key) {
  int i = 0;
  while (i < EXPECTED && strcmp(key, expected[i][0]) != 0) i++;
  return i;
}

static bool says_nothing(const char *key, const char *value, size_t length) {
  const int at = expected_at(key);
  return at < EXPECTED && strlen(expected[at][1]) == length &&
         strncmp(expected[at][1], value, length) == 0;
}

static md_status keep_line(const md_header_input *s, const char *line, size_t length) {
  const char *equals = memchr(line, '=', length);
  char key[MD_FILE_TEXT_NAME + 1], name[MD_FILE_TEXT_NAME + 16]; /* a longer one counts as lost */
  if (!equals) return MD_OK;
  snprintf(key, sizeof key, "%.*s", (int)strcspn(line, " \t="), line);
  const char *value = equals + 1;
  size_t bytes = length - (size_t)(value - line);
  while (bytes > 0 && strchr(" \t\r", *value)) value++, bytes--;
  while (bytes > 0 && strchr(" \t\r", value[bytes - 1])) bytes--;
  if (is_said_anew(key) || says_nothing(key, value, bytes)) return MD_OK;
  const bool own = strncmp(key, own_key, strlen(own_key)) == 0;
  snprintf(name, sizeof name, "%s%s", own ? "minidirac " : "nersc ",
           own ? key + strlen(own_key) : key);
  for (char *c = name + strlen("minidirac "); own && *c; c++) *c = (char)tolower((unsigned char)*c);
  return md_file_texts_add(s->context, &s->notes->texts, name, value, bytes);
}

static md_status keep_lines(const md_header_input *s, const char *head) {
  for (const char *line = head; *line; line += strspn(line, "\n")) {
    const size_t length = strcspn(line, "\n");
    const char *first = line + strspn(line, " \t");
    if (first < line + length) MD_TRY(keep_line(s, first, length - (size_t)(first - line)));
    line += length;
  }
  return MD_OK;
}

/* One line, under a key that a header may have and that is not said anew. */
static bool keeps(const char *name, const char *text, size_t *used) {
  const char *key = strchr(name, ' ');
  if (strncmp(name, "nersc ", 6) != 0 && strncmp(name, "minidirac ", 10) != 0) return false;
  for (const char *c = ++key; *c; c++)
    if (!isalnum((unsigned char)*c) && *c != '_') return false;
  const bool other = expected_at(key) == EXPECTED;
  const size_t line = strlen(name) + strlen(" = ") + strlen(text) + 1;
  if (!*key || is_said_anew(key) || strstr(key, "_HEADER") || strpbrk(text, "\r\n") ||
      strlen(text) >= (other ? NERSC_TEXT_MOST : EXPECTED_TEXT_MOST) ||
      (other && *used + line > OTHER_LINES_MOST))
    return false;
  if (other) *used += line;
  return true;
}

static md_status describe(const md_header_input *s) {
  char *head = NULL;
  md_status status = read_head(s, &head);
  if (status == MD_OK) status = parse_head(s, head);
  if (status == MD_OK) status = keep_lines(s, head);
  free(head);
  return status;
}

/* Those of `first` to `last`, from the texts where they have it. */
static void put_expected_lines(FILE *out, const md_lattice_header *header, int first, int last) {
  char name[80];
  size_t used = 0;
  for (int i = first; i <= last; i++) {
    snprintf(name, sizeof name, "nersc %s", expected[i][0]);
    const char *text = md_file_texts_find(header->texts, name);
    fprintf(out, "%s = %s\n", expected[i][0],
            text && keeps(name, text, &used) ? text : expected[i][1]);
  }
}

static void put_other_lines(FILE *out, const md_lattice_header *header) {
  const char *name, *text;
  size_t used = 0;
  for (size_t at = 0; md_file_texts_next(header->texts, &at, &name, &text);) {
    const char *key = strchr(name, ' ');
    if (!keeps(name, text, &used) || expected_at(++key) < EXPECTED) continue;
    if (*name == 'm') fputs(own_key, out);
    for (; *key; key++) fputc(*name == 'm' ? toupper((unsigned char)*key) : *key, out);
    fprintf(out, " = %s\n", text);
  }
}

static md_status compose(md_context *context, const md_lattice_header *header, md_frame *frame) {
  const int *d = header->dims;
  FILE *out = open_memstream(&frame->head, &frame->head_bytes);
  if (!out) return md_fail_memory(context, NERSC_HEAD_MOST, "lattice header");
  fprintf(out,
          "BEGIN_HEADER\nHDR_VERSION = 1.0\nSTORAGE_FORMAT = 1.0\nDATATYPE = 4D_SU3_GAUGE_3x3\n"
          "DIMENSION_1 = %d\nDIMENSION_2 = %d\nDIMENSION_3 = %d\nDIMENSION_4 = %d\n",
          d[0], d[1], d[2], d[3]);
  put_expected_lines(out, header, 0, BOUNDARIES - 1);
  fprintf(out, "CHECKSUM = %08x\nLINK_TRACE = %.15g\nPLAQUETTE = %.15g\nFLOATING_POINT = %s\n",
          header->checksum.a, header->link_trace, header->plaquette,
          header->site.real_bytes == 8 ? "IEEE64BIG" : "IEEE32BIG");
  put_expected_lines(out, header, BOUNDARIES, EXPECTED - 1);
  put_other_lines(out, header);
  fputs("END_HEADER\n", out);
  return fclose(out) == 0 ? MD_OK : md_fail_memory(context, NERSC_HEAD_MOST, "lattice header");
}

const md_lattice_format md_format_nersc = {.name = "nersc",
                                           .suffixes = ".nersc",
                                           .holds = MD_HOLDS_LINKS,
                                           .thin_only = true,
                                           .checksum = MD_CHECKSUM_NERSC,
                                           .keeps = keeps,
                                           .recognises = recognises,
                                           .describe = describe,
                                           .compose = compose};
