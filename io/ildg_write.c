#include "io/ildg.h"
#include "io/lime.h"
#include "io/payload.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Writes ILDG and SciDAC lattices: thin links with the records of both, fat and long ones as SciDAC
 * alone, for ILDG knows no such field. */

/* Nothing for thin links. */
static void print_label(const md_link_label *label, char *text, size_t bytes) {
  *text = 0;
  if (label->kind == MD_LINKS_THIN) return;
  snprintf(text, bytes, "%s links%s%s; %s%s", label->kind == MD_LINKS_FAT ? "Fat" : "Long",
           *label->made ? ", " : "", label->made, label->bare ? MD_ILDG_BARE : "",
           label->bare ? "; " : "");
}

static void put_texts(FILE *out, const md_lattice_header *header) {
  const int *d = header->dims, bits = header->site.real_bytes * 8;
  const char letter = bits == 64 ? 'D' : 'F';
  const char *xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>";
  const time_t now = time(NULL);
  struct tm calendar;
  char date[40], text[1024], label[256];
  strftime(date, sizeof date, "%a %b %d %H:%M:%S %Y UTC", gmtime_r(&now, &calendar));
  snprintf(text, sizeof text,
           "%s<scidacFile><version>1.1</version><spacetime>4</spacetime><dims>%d %d %d %d </dims>"
           "<volfmt>0</volfmt></scidacFile>",
           xml, d[0], d[1], d[2], d[3]);
  md_lime_put_text(out, "scidac-private-file-xml", text, true, false);
  snprintf(text, sizeof text, "%s<title>miniDirac gauge configuration</title>", xml);
  const char *title = md_file_texts_find(header->texts, "scidac-file-xml");
  md_lime_put_text(out, "scidac-file-xml", title ? title : text, false, true);
  snprintf(text, sizeof text,
           "%s<scidacRecord><version>1.1</version><date>%s</date><recordtype>0</recordtype>"
           "<datatype>QDP_%c3_ColorMatrix</datatype><precision>%c</precision><colors>3</colors>"
           "<typesize>%d</typesize><datacount>4</datacount></scidacRecord>",
           xml, date, letter, letter, MD_LINK_REALS * bits / 8);
  md_lime_put_text(out, "scidac-private-record-xml", text, true, false);
  print_label(&header->label, label, sizeof label);
  snprintf(text, sizeof text,
           "%s<usqcdInfo><version>1.0</version><plaq>%.15g</plaq><linktr>%.15g</linktr>"
           "<info>%swritten by miniDirac</info></usqcdInfo>",
           xml, header->plaquette, header->link_trace, label);
  md_lime_put_text(out, "scidac-record-xml", text, false, false);
  if (header->label.kind != MD_LINKS_THIN) return; /* no su3gauge: a SciDAC file */
  snprintf(text, sizeof text,
           "%s<ildgFormat xmlns=\"http://www.lqcd.org/ildg\" "
           "xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" "
           "xsi:schemaLocation=\"http://www.lqcd.org/ildg/filefmt.xsd\"><version>1.0</version>"
           "<field>su3gauge</field><precision>%d</precision><lx>%d</lx><ly>%d</ly><lz>%d</lz>"
           "<lt>%d</lt></ildgFormat>",
           xml, bits, d[0], d[1], d[2], d[3]);
  md_lime_put_text(out, "ildg-format", text, false, false);
  const char *lfn = md_file_texts_find(header->texts, "ildg-data-lfn");
  md_lime_put_text(out, "ildg-data-lfn", lfn ? lfn : "lfn://unregistered/miniDirac", false, false);
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
    md_lime_put_text(out, type, text, put == 0, put + 1 == left);
    put++;
  }
}

static md_status compose(md_context *context, const md_lattice_header *header,
                         md_payload_frame *frame) {
  char text[256];
  FILE *head = open_memstream(&frame->head, &frame->head_bytes);
  FILE *tail = open_memstream(&frame->tail, &frame->tail_bytes);
  if (head && tail) {
    put_texts(head, header);
    const bool thin = header->label.kind == MD_LINKS_THIN;
    md_lime_put_head(head, thin ? "ildg-binary-data" : "scidac-binary-data",
                     (uint64_t)md_lattice_link_bytes(header), false, false);
    snprintf(text, sizeof text,
             "<?xml version=\"1.0\" encoding=\"UTF-8\"?><scidacChecksum><version>1.0</version>"
             "<suma>%08x</suma><sumb>%08x</sumb></scidacChecksum>",
             header->checksum.a, header->checksum.b);
    md_lime_put_text(tail, "scidac-checksum", text, false, true);
    put_kept_texts(tail, header);
  }
  const bool closed_head = head && fclose(head) == 0;
  const bool closed_tail = tail && fclose(tail) == 0;
  return closed_head && closed_tail ? MD_OK : md_fail_memory(context, 4096, "lattice header");
}

md_status md_ildg_write(md_context *context, const char *path, md_lattice_header *header,
                        const md_gauge *gauge) {
  header->site = (md_site_format){
      .rows = 3, .real_bytes = header->precision == MD_DOUBLE ? 8 : 4, .big_endian = true};
  header->checksum.kind = MD_CHECKSUM_SCIDAC;
  return md_payload_write(context, path, header, gauge, compose);
}
