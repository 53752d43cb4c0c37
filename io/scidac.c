#include "io/lime.h"
#include "io/vectors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Colour vectors as QIO writes them in LIME, in MILC's convention (io/vectors.h): what their
 * records say and how they are framed. Names and tags: qioxml_usqcd_ksprop.h of QIO,
 * io_scidac_ks_eigen.c of MILC, qio_field.cpp of QUDA. */
enum { TYPE_MOST = 64 };

bool md_scidac_vectors(const char *text, md_vector_run *run) {
  const char *at = md_xml_tag(text, "datatype");
  char type[TYPE_MOST];
  long long typesize = 0, count = 0, kind = 0;
  if (!at) return false;
  snprintf(type, sizeof type, "%.*s", (int)strcspn(at, "<"), at);
  if (!strstr(type, "ColorVector") && !strstr(type, "Ns1Nc3_ColorSpinorField")) return false;
  (void)md_xml_integers(text, "typesize", &typesize, 1);
  (void)md_xml_integers(text, "datacount", &count, 1);
  (void)md_xml_integers(text, "recordtype", &kind, 1);
  const bool sized = typesize == 6 * sizeof(float) || typesize == 6 * sizeof(double);
  *run = (md_vector_run){.vectors = count > 0 && count <= MD_MODES_MOST ? (int)count : 0,
                         .real_bytes = sized ? (int)typesize / 6 : 0,
                         .part = kind != 0,
                         .colour = -1,
                         .value = NAN,
                         .residual = NAN};
  return true;
}

/* A line NAME = VALUE, up to `end`. */
static md_status take_line(md_context *context, const char *line, const char *end,
                           md_file_texts *texts) {
  char name[TYPE_MOST];
  const char *sign = memchr(line, '=', (size_t)(end - line));
  if (!sign || sign - line < 2 || sign[-1] != ' ' || end - sign < 2 || sign - line > 40)
    return MD_OK;
  snprintf(name, sizeof name, "%.*s", (int)(sign - 1 - line), line);
  return md_file_texts_add(context, texts, name, sign + 2, (size_t)(end - sign - 2));
}

md_status md_scidac_said(md_context *context, const char *text, md_file_texts *texts,
                         md_vector_run *run) {
  const char *info = md_xml_tag(text, "info"), *value = md_xml_tag(text, "eigVal");
  const char *residual = md_xml_tag(text, "resid");
  long long colour;
  if (run && value) {
    run->mode = true;
    run->value = strtod(value, NULL);
    run->residual = residual ? strtod(residual, NULL) : 0.0;
    return MD_OK;
  }
  if (run) run->source = strstr(text, "<usqcdSourceInfo>") != NULL;
  if (run && run->source) return MD_OK;
  if (run && md_xml_integers(text, "color", &colour, 1) && colour >= 0 && colour < 3)
    run->colour = (int)colour;
  const char *last = info ? info + strcspn(info, "<") : NULL;
  for (const char *line = info, *end; line && line < last; line = end + 1) {
    end = line + strcspn(line, "\n");
    if (end > last) end = last;
    if (run && strncmp(line, "residual = ", 11) == 0)
      run->residual = strtod(line + 11, NULL);
    else
      MD_TRY(take_line(context, line, end, texts));
  }
  return MD_OK;
}

/* A text without what XML or a line would end at. */
static void put_plain(FILE *out, const char *text) {
  for (int i = 0; text[i]; i++) fputc(strchr("<>&\n\r", text[i]) ? ' ' : text[i], out);
}

/* Lines of <info>; `rhs` below 0: without what each right-hand side has of its own. */
static void put_lines(FILE *out, const md_vectors_output *said, int rhs) {
  for (int i = 0; i < said->count; i++) {
    const md_attribute *a = &said->attributes[i];
    const bool own = strcmp(a->name, "residuals") == 0;
    if (own ? rhs < 0 : a->type != MD_ATTRIBUTE_TEXT && a->count != 1) continue;
    if (strcmp(a->name, "command_line") == 0) continue; /* readers have short buffers */
    fprintf(out, "%s = ", own ? "residual" : a->name);
    if (a->type == MD_ATTRIBUTE_TEXT)
      put_plain(out, a->data);
    else if (a->type == MD_ATTRIBUTE_INTEGER)
      fprintf(out, "%lld", (long long)*(const int64_t *)a->data);
    else
      fprintf(out, "%.17g", ((const double *)a->data)[own ? rhs : 0]);
    fputc('\n', out);
    if (strcmp(a->name, "mass") == 0)
      fprintf(out, "milc_mass = %.17g\n", 2.0 * *(const double *)a->data); /* as in 2 m + D' */
  }
}

#define MILC_WORDS                                                                                 \
  "convention = MILC: (2 mass + D') x = b with phases in the order t x y z; miniDirac has 2 x "    \
  "and b, each times (-1)^(t (x + y + z))\n"
#define MILC_MODES_WORDS                                                                           \
  "convention = " MD_MILC_MODES " on even sites with phases in the order t x y z, 4 times the "    \
  "eigenvalues of miniDirac, whose vectors are these times (-1)^(t (x + y + z)); odd sites are "   \
  "zero\n"

/* The records in front of all others. */
static void put_file(FILE *out, const md_lattice_header *header) {
  const md_vectors_output *said = header->vectors;
  char *lines = NULL;
  size_t bytes = 0;
  FILE *text = open_memstream(&lines, &bytes);
  if (!text) return; /* `out` will be short of memory too */
  md_lime_put_dims(out, header->dims);
  if (said->modes) {
    fputs(MD_XML "<info>" MILC_MODES_WORDS, text);
    put_lines(text, said, -1);
    fprintf(text, "<title>KS eigenvalues and vectors</title><Nvecs>%d</Nvecs></info>",
            said->modes->count);
  } else if (said->source) {
    fprintf(text,
            MD_XML "<usqcdKSPropFile><version>1.0</version>"
                   "<type>USQCD_ColorVector_Source_Sink_Pairs</type><info>%swritten by miniDirac"
                   "</info></usqcdKSPropFile>",
            MILC_WORDS);
  } else { /* USQCD knows no such file: one of plain vectors */
    fprintf(text, MD_XML "<info>%s<title>KS solutions without their sources</title></info>",
            MILC_WORDS);
  }
  if (fclose(text) == 0) md_lime_put_text(out, "scidac-file-xml", false, true, "%s", lines);
  free(lines);
}

static void put_record_words(FILE *text, const md_vectors_output *said, int run) {
  const int each = said->source ? 2 : 1, rhs = run / each;
  if (said->modes) {
    fprintf(text, MD_XML "<info><eigVal>%.18e</eigVal><resid>%e</resid></info>",
            4.0 * said->modes->values[rhs], 4.0 * said->modes->residuals[rhs]);
  } else if (said->source && run % 2 == 0) {
    fprintf(text, MD_XML "<usqcdSourceInfo><version>1.0</version><info>%d of ", rhs);
    for (int i = 0; i < said->count; i++)
      if (strcmp(said->attributes[i].name, "source") == 0)
        put_plain(text, said->attributes[i].data);
    fputs("</info></usqcdSourceInfo>", text);
  } else {
    fprintf(text, MD_XML "<usqcdKSPropInfo><version>1.0</version><color>%d</color><info>", rhs % 3);
    put_lines(text, said, rhs);
    fputs("</info></usqcdKSPropInfo>", text);
  }
}

static void put_record(FILE *out, const md_lattice_header *header, const char *type, int spins) {
  const md_site_format *site = &header->site;
  char *words = NULL, date[MD_LIME_DATE];
  size_t bytes = 0;
  FILE *text = open_memstream(&words, &bytes);
  if (!text) return;
  const char letter = site->real_bytes == 8 ? 'D' : 'F';
  md_lime_date(date);
  md_lime_put_text(out, "scidac-private-record-xml", true, false,
                   MD_XML "<scidacRecord><version>1.1</version><date>%s</date>"
                          "<recordtype>0</recordtype><datatype>%s%c%s</datatype>"
                          "<precision>%c</precision><colors>3</colors><spins>%d</spins>"
                          "<typesize>%d</typesize><datacount>%d</datacount></scidacRecord>",
                   date, spins ? "QUDA_" : "QDP_", letter, type, letter, spins,
                   6 * site->real_bytes, site->vectors);
  if (spins)
    fputs(MD_XML "<qudaStaggeredColorSpinorField><version>BETA</version><info>"
                 "<subset>full</subset><parity>even</parity><nColor>3</nColor><nSpin>1</nSpin>"
                 "</info></qudaStaggeredColorSpinorField>",
          text);
  else
    put_record_words(text, header->vectors, header->run);
  if (fclose(text) == 0) md_lime_put_text(out, "scidac-record-xml", false, false, "%s", words);
  free(words);
  md_lime_put_head(out, "scidac-binary-data", (uint64_t)md_lattice_link_bytes(header), false,
                   false);
}

static md_status frame_of(md_context *context, const md_lattice_header *header, const char *type,
                          int spins, md_frame *frame) {
  FILE *head = open_memstream(&frame->head, &frame->head_bytes);
  FILE *tail = open_memstream(&frame->tail, &frame->tail_bytes);
  if (head && tail) {
    if (header->run == 0) put_file(head, header);
    put_record(head, header, type, spins);
    md_lime_put_checksum(tail, &header->checksum);
  }
  const bool closed_head = head && fclose(head) == 0;
  const bool closed_tail = tail && fclose(tail) == 0;
  return closed_head && closed_tail ? MD_OK : md_fail_memory(context, 4096, "header of vectors");
}

/* Numbers of each mode have no record of their own there. */
static bool quda_keeps(const char *name, const char *text, size_t *used) {
  (void)text;
  (void)used;
  return strcmp(name, "eigenvalues") != 0 && strcmp(name, "residuals") != 0;
}

static md_status compose(md_context *context, const md_lattice_header *header, md_frame *frame) {
  return frame_of(context, header, "3_ColorVector", 0, frame);
}

static md_status compose_quda(md_context *context, const md_lattice_header *header,
                              md_frame *frame) {
  return frame_of(context, header, "Ns1Nc3_ColorSpinorField", 1, frame);
}

const md_lattice_format md_format_scidac = {.name = "scidac",
                                            .suffixes = ".lime .scidac",
                                            .holds = MD_HOLDS_VECTORS,
                                            .checksum = MD_CHECKSUM_SCIDAC,
                                            .compose = compose};
const md_lattice_format md_format_quda = {.name = "quda",
                                          .suffixes = ".quda",
                                          .holds = MD_HOLDS_VECTORS,
                                          .together = true,
                                          .checksum = MD_CHECKSUM_SCIDAC,
                                          .keeps = quda_keeps,
                                          .compose = compose_quda};
