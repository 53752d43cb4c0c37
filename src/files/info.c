#include "base/file.h"
#include "base/options.h"
#include "base/report.h"
#include "base/text.h"
#include "commands.h"
#include "io/lattice_file.h"
#include "io/site_data.h"
#include "io/vectors.h"
#include "lattice/gauge/gauge.h"
#include "lattice/gauge/smear.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void report_notes(md_report *report, const md_notes *notes) {
  cJSON *records = cJSON_AddArrayToObject(report->root, "records");
  for (int i = 0; i < notes->record_count; i++) {
    const md_record *r = &notes->records[i];
    cJSON *row =
        md_rows_add(NULL, records, "type=%s offset=%g bytes=%g message_begin=%hhd message_end=%hhd",
                    r->type, (double)r->offset, (double)r->bytes, r->message_begin, r->message_end);
    if (*r->detail) cJSON_AddStringToObject(row, "detail", r->detail);
  }
  cJSON *departures = cJSON_AddArrayToObject(report->root, "departures");
  for (int i = 0; i < notes->departure_count; i++)
    cJSON_AddItemToArray(departures, cJSON_CreateString(notes->departures[i]));
}

/* What the file says in words. */
static void describe_texts(md_context *context, md_report *report, const md_file_texts *texts) {
  enum { SHOWN = 300 };
  const char *name, *text;
  cJSON *object = cJSON_AddObjectToObject(report->root, "texts");
  if (texts->count > 0) md_say(context, "texts\n");
  for (size_t at = 0; md_file_texts_next(texts, &at, &name, &text);) {
    cJSON_AddStringToObject(object, name, text);
    md_say(context, "  %s: %.*s%s\n", name, SHOWN, text, strlen(text) > SHOWN ? " ..." : "");
  }
  if (texts->lost > 0)
    md_say(context, "  and %d record%s of no text, or too long\n", texts->lost,
           md_plural(texts->lost));
}

/* What the links are; where they are not bare SU(3), the phases and boundary sign in them. */
static void describe_links(md_context *context, md_report *report, const md_gauge *gauge,
                           const md_lattice_info *info) {
  const md_link_label *label = &info->header.label;
  cJSON_AddStringToObject(report->root, "links", md_link_kind_name(label->kind));
  md_say(context, "links                %s%s%s\n", md_link_kind_name(label->kind),
         *label->made ? ", " : "", label->made);
  if (*label->made) cJSON_AddStringToObject(report->root, "made", label->made);
  if (!gauge || info->observables.unitarity_deviation <= MD_THIN_TOLERANCE) return;
  md_phases phases;
  if (md_phases_score(context, gauge, label->kind, &phases) != MD_OK) return;
  const bool clear = phases.clear;
  const char *name = clear ? md_phase_name(phases.convention) : "unclear";
  const char *boundary = !clear ? "unclear" : phases.antiperiodic ? "antiperiodic" : "periodic";
  md_report_add(report->root, "phases=%s boundary_sign=%s phase_score=%g boundary_score=%g", name,
                boundary, phases.score, phases.boundary_score);
  md_say(context, "phases in the links  %s (score %.2f), boundary sign %s (score %.2f)\n", name,
         phases.score, boundary, phases.boundary_score);
}

/* What the header says, and what was found; records and departures are printed last. */
static void describe(const md_context *context, md_report *report, const char *path,
                     const md_lattice_info *info) {
  const md_lattice_header *header = &info->header;
  const md_gauge_observables *o = &info->observables;
  const int *d = header->dims;
  cJSON *root = report->root;
  char expected[32], computed[32];
  md_report_add(root, "lattice=%s file_bytes=%g", path, (double)info->file_bytes);
  md_say(context, "lattice              %s\n", path);
  report_notes(report, &info->notes);
  if (!info->described) return;
  const char *format = md_lattice_header_format(header);
  const char *precision = md_precision_name(header->precision);
  const char *order = header->site.big_endian ? "big" : "little";
  const char *checksum = md_checksum_state_name(info->checksum);
  md_checksum_print(&header->checksum, expected, sizeof expected);
  md_checksum_print(&info->computed, computed, sizeof computed);
  md_report_integers(root, "dims", d, MD_DIMS);
  md_report_add(root,
                "format=%s content=%s precision=%s byte_order=%s checksum=%s checksum_expected=%s "
                "checksum_computed=%s",
                format, header->content, precision, order, checksum, expected, computed);
  md_say(context,
         "format               %s\n"
         "content              links\n"
         "dims x y z t         %d %d %d %d\n"
         "precision            %s, %s-endian\n"
         "checksum             %s (file %s, computed %s)\n",
         format, d[0], d[1], d[2], d[3], precision, order, checksum, expected, computed);
  if (header->has_plaquette) md_report_real(root, "header_plaquette", header->plaquette);
  if (header->has_link_trace) md_report_real(root, "header_link_trace", header->link_trace);
  if (!info->observed) return;
  md_report_add(root,
                "plaquette=%g plaquette_ss=%g plaquette_st=%g link_trace=%g "
                "unitarity_deviation=%g bad_links=%g read_seconds=%g",
                o->plaquette, o->plaquette_ss, o->plaquette_st, o->link_trace,
                o->unitarity_deviation, (double)o->bad_links, info->read_s);
  md_say(context,
         "plaquette            %.15f\n"
         "plaquette_ss         %.15f\n"
         "plaquette_st         %.15f\n"
         "link_trace           %.15f\n"
         "unitarity_deviation  %.3e\n"
         "read                 %.3f s, %.2f GB/s\n",
         o->plaquette, o->plaquette_ss, o->plaquette_st, o->link_trace, o->unitarity_deviation,
         info->read_s, (double)info->file_bytes * 1e-9 / info->read_s);
}

static void print_records(const md_context *context, const md_notes *notes, bool described) {
  if (notes->record_count > 0) md_say(context, "records\n");
  for (int i = 0; i < notes->record_count; i++) {
    const md_record *r = &notes->records[i];
    md_say(context, "  %-2s %-2s %-28s %12lld bytes at %lld %s\n", r->message_begin ? "MB" : "",
           r->message_end ? "ME" : "", r->type, (long long)r->bytes, (long long)r->offset,
           r->detail);
  }
  if (described || notes->departure_count > 0)
    md_say(context, "departures from the format's rules: %s\n",
           notes->departure_count > 0 ? "" : "none");
  for (int i = 0; i < notes->departure_count; i++) md_say(context, "  %s\n", notes->departures[i]);
}

/* Of thin links: others have a loop, but none that means something. */
static md_status describe_loop(md_context *context, md_report *report, const md_gauge *gauge,
                               const md_lattice_info *info) {
  double loop[2];
  if (info->header.label.kind != MD_LINKS_THIN) return MD_OK;
  MD_TRY(md_polyakov_loop(context, gauge, MD_DOUBLE, loop));
  md_report_reals(report->root, "polyakov_loop", loop, 2);
  md_say(context, "polyakov_loop        %.15f %.15f\n", loop[0], loop[1]);
  return MD_OK;
}

/* What a file holds that are no links, and whether it is whole. */
static md_status describe_other(md_context *context, md_report *report, const char *path,
                                const int grid[MD_DIMS], md_lattice_info *info) {
  const md_lattice_header *header = &info->header;
  const int *d = header->dims;
  const bool vectors = info->notes.run_count > 0;
  const int count = vectors ? md_vectors_count(info, false) : header->count;
  md_datasets_found found = {0};
  md_geometry *geometry = NULL;
  if (vectors && md_vectors_count(info, true) == 0) {
    info->checksum = MD_CHECKSUM_UNREAD; /* nothing says how large its lattice is */
  } else if (vectors) {
    const md_layout_request request = md_layout_of(d, grid, 0, NULL);
    MD_TRY(md_geometry_create(context, &request, &geometry));
    const md_status status =
        md_vectors_verify(context, path, geometry, info, NULL, &info->checksum);
    md_geometry_destroy(geometry);
    if (status != MD_OK) return status;
  } else {
    MD_TRY(md_datasets_verify(context, path, &found));
    info->checksum = found.damaged                     ? MD_CHECKSUM_MISMATCH
                     : found.unseen || !found.datasets ? MD_CHECKSUM_UNREAD
                     : found.unguarded                 ? MD_CHECKSUM_ABSENT
                                                       : MD_CHECKSUM_OK;
  }
  const char *content = vectors && info->notes.runs[0].mode ? "modes" : header->content;
  const char *checksum = md_checksum_state_name(info->checksum);
  if (d[0]) md_report_integers(report->root, "dims", d, MD_DIMS);
  md_report_add(report->root, "format=%s content=%s vectors=%d checksum=%s",
                md_lattice_header_format(header), content, count, checksum);
  md_say(context, "format               %s\ncontent              %s",
         md_lattice_header_format(header), content);
  if (count) md_say(context, ", %d vector%s", count, md_plural(count));
  if (vectors) md_say(context, ", %s precision", md_precision_name(header->precision));
  if (d[0]) md_say(context, "\ndims x y z t         %d %d %d %d", d[0], d[1], d[2], d[3]);
  md_say(context, "\nchecksums            %s\n", checksum);
  if (info->checksum != MD_CHECKSUM_MISMATCH) return MD_OK;
  return md_fail(context, MD_INPUT, "%s is damaged: a checksum does not fit its data", path);
}

/* The whole file if it is a text that begins like a report or a table; NULL: it is not. Rank 0. */
static char *read_text(const char *path) {
  enum { TEXT_MOST = 64 << 20 };
  char head[MD_REPORT_HEAD + 1] = "", *text = NULL;
  struct stat there;
  FILE *file = stat(path, &there) == 0 && S_ISREG(there.st_mode) ? fopen(path, "rb") : NULL;
  if (file && fread(head, 1, MD_REPORT_HEAD, file) > 0 && md_begins_as_report(head) &&
      there.st_size < TEXT_MOST)
    text = calloc(1, (size_t)there.st_size + 1);
  if (text) {
    rewind(file);
    const size_t bytes = fread(text, 1, (size_t)there.st_size, file);
    if (strlen(text) != bytes) text[0] = 0; /* no text after all */
  }
  if (file) fclose(file);
  if (text && text[0]) return text;
  free(text);
  return NULL;
}

static void say_value(const md_context *context, cJSON *object, const cJSON *item) {
  enum { SHOWN = 200 };
  char *value = cJSON_PrintUnformatted(item), shown[SHOWN];
  if (!value) return;
  md_printable(value, false, shown, sizeof shown);
  md_say(context, "  %s: %s\n", item->string, shown);
  cJSON_AddItemToObject(object, item->string, cJSON_Duplicate(item, true));
  free(value);
}

/* A report, or the choices of --tune, which have a list of that name. */
static md_status describe_json(md_context *context, const char *path, const char *text,
                               md_report *report) {
  cJSON *found = cJSON_Parse(text);
  const char *command = cJSON_GetStringValue(cJSON_GetObjectItem(found, "command"));
  const cJSON *choices = cJSON_GetObjectItem(found, "choices");
  char name[32];
  if (!found || (!command && !cJSON_IsArray(choices))) {
    cJSON_Delete(found);
    return md_fail(context, MD_INPUT, "%s begins like a report of miniDirac and is none: %s", path,
                   found ? "it names no command" : "its JSON is cut short or damaged");
  }
  if (command) {
    md_printable(command, false, name, sizeof name);
    md_report_add(report->root, "format=%s content=%s of=%s", "json", "report", name);
    md_say(context, "format               json\ncontent              report of %s\n", name);
  } else {
    md_report_add(report->root, "format=%s content=%s", "json", "choices");
    md_say(context, "format               json\ncontent              choices of --tune, %d\n",
           cJSON_GetArraySize(choices));
  }
  cJSON *object = cJSON_AddObjectToObject(report->root, "texts");
  for (const cJSON *item = found->child; item; item = item->next)
    if (!cJSON_IsArray(item) && !cJSON_IsObject(item)) say_value(context, object, item);
  cJSON_Delete(found);
  return MD_OK;
}

static void describe_table(const md_context *context, const char *text, md_report *report) {
  long long rows = -1;
  char columns[2048];
  for (const char *at = text; (at = strchr(at, '\n')); at++) rows++;
  rows += text[strlen(text) - 1] != '\n';
  snprintf(columns, sizeof columns, "%.*s", (int)strcspn(text, "\n"), text);
  md_report_add(report->root, "format=%s content=%s rows=%g columns=%s", "csv", "table",
                (double)rows, columns);
  md_say(
      context,
      "format               csv\ncontent              table, %lld row%s\ncolumns              %s\n",
      rows, md_plural(rows), columns);
}

/* Reports (JSON) and tables (CSV) of any command: prints and reports what they are. *known is false
 * for every other file, of which nothing is said. MD_INPUT: a report that is cut short. */
static md_status describe_text_file(md_context *context, const char *path, md_report *report,
                                    bool *known) {
  char *text = context->rank == 0 ? read_text(path) : NULL;
  md_status status = MD_OK;
  *known = text != NULL;
  md_broadcast(context, known, sizeof *known);
  if (!*known) return MD_OK;
  if (text) md_say(context, "file                 %s\n", path);
  if (text && *text == '{')
    status = describe_json(context, path, text, report);
  else if (text)
    describe_table(context, text, report);
  free(text);
  return md_agree(context, status);
}

md_status md_command_info(md_context *context, int argc, char **argv) {
  md_common_options common = {0};
  const char *path = NULL;
  md_option options[] = {MD_OPTION(TEXT, "lattice", &path, "LATTICE",
                                   "any file that the program writes", .file = MD_FILE_INPUT,
                                   .positional = true, .required = true, .group = MD_GROUP_INPUT),
                         MD_COMMON_OPTIONS(common)};
  enum { COUNT = sizeof options / sizeof *options };
  const md_command_text text = {
      "info", "list what is in a file and check it",
      "Links: HDF5, ILDG and SciDAC (LIME), MILC v5, NERSC. Solutions, sources and modes:\nHDF5, "
      "SciDAC, MILC, Fermilab. Studies, checkpoints, reports, tables.",
      "minidirac info inputs/beta5.7_4x4x4x8.lime"};
  md_geometry *geometry = NULL;
  md_gauge gauge;
  md_lattice_info info = {0};
  md_report report;
  MD_TRY(md_options_read(context, &text, options, COUNT, &common, argc, argv));
  if (common.help) return MD_OK;
  MD_TRY(md_report_open(context, "info", &report));
  bool known = false;
  md_status status = describe_text_file(context, path, &report, &known);
  if (known || status != MD_OK) return md_report_close_after(context, &report, common.json, status);
  status = md_lattice_load_links(context, path, NULL, common.grid, false, &geometry, &gauge, &info);
  if (geometry)
    md_report_grid(&report, geometry->grid, geometry->grid_asked, geometry->grid_reason);
  const bool links = !info.described || strcmp(info.header.content, "links") == 0;
  if (links)
    describe(context, &report, path, &info);
  else {
    md_report_add(report.root, "lattice=%s file_bytes=%g", path, (double)info.file_bytes);
    md_say(context, "file                 %s\n", path);
    report_notes(&report, &info.notes);
    status = describe_other(context, &report, path, common.grid, &info);
  }
  print_records(context, &info.notes, info.described);
  if (info.described) describe_texts(context, &report, &info.notes.texts);
  if (info.described && links) describe_links(context, &report, geometry ? &gauge : NULL, &info);
  if (status == MD_OK && links) status = describe_loop(context, &report, &gauge, &info);
  if (geometry) {
    md_gauge_destroy(&gauge);
    md_geometry_destroy(geometry);
  }
  md_lattice_info_destroy(&info);
  return md_report_close_after(context, &report, common.json, status);
}
