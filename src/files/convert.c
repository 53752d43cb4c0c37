#include "base/memory_need.h"
#include "base/text.h"
#include "commands.h"
#include "io/lattice_file.h"
#include "io/modes_file.h"
#include "io/propagator.h"
#include "io/site_data.h"
#include "io/vectors.h"
#include "links/run.h"
#include "sources/sources.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct convert_options {
  md_common_options common;
  const char *in, *out, *format, *precision;
  bool ignore_checksum, force;
} convert_options;

/* Without --precision the file keeps that of the input, as far as the format can hold it. Formats
 * of solutions that hold single precision alone are known for it. */
static md_precision precision_to_write(md_context *context, const convert_options *o,
                                       const md_lattice_format *format,
                                       const md_lattice_header *header) {
  if (o->precision) return (md_precision)md_precision_of(o->precision);
  if (md_lattice_format_holds(format, header->precision)) return header->precision;
  if (strcmp(header->content, "links") == 0)
    md_warn(context, "%s is written in single precision, all that its format can hold", o->out);
  return MD_SINGLE;
}

static bool is_among(const char *name, const char *const *list, int count) {
  int i = 0;
  while (i < count && strcmp(name, list[i]) != 0) i++;
  return i < count;
}

/* What the input says in words, for the output: what it says of its own making becomes what its
 * source said, unless its source's source spoke already. */
static md_status texts_to_write(md_context *context, const md_file_texts *in, md_file_texts *out) {
  static const char *const making[] = {"lattice", "lattice_checksum", "action",      "version",
                                       "commit",  "date_utc",         "command_line"};
  const char *name, *text;
  char source[MD_FILE_TEXT_NAME];
  for (int own = 0; own < 2; own++) /* its own making last: what is there already stays */
    for (size_t at = 0; md_file_texts_next(in, &at, &name, &text);) {
      const bool is_own = is_among(name, making, sizeof making / sizeof *making);
      snprintf(source, sizeof source, "source %s", name);
      if (is_own == own)
        MD_TRY(md_file_texts_add(context, out, own ? source : name, text, strlen(text)));
    }
  return MD_OK;
}

/* What the output has no place for. */
typedef struct dropped {
  cJSON *list;
  char names[512];
  int unnamed; /* names that had no room */
} dropped;

static void drop(dropped *d, const char *name) {
  cJSON_AddItemToArray(d->list, cJSON_CreateString(name));
  if (strlen(d->names) + strlen(name) + 3 < sizeof d->names)
    md_append(d->names, sizeof d->names, "%s%s", *d->names ? ", " : "", name);
  else
    d->unnamed++;
}

static void say_dropped(md_context *context, const char *path, const md_lattice_format *format,
                        const dropped *d, int lost) {
  char more[32] = "";
  if (d->unnamed > 0) snprintf(more, sizeof more, " and %d more", d->unnamed);
  if (*d->names)
    md_warn(context, "%s: %s files have no place for these texts, which are dropped: %s%s", path,
            md_lattice_format_name(format), d->names, more);
  if (lost > 0)
    md_warn(context, "%s: %d record%s of no text, or too long, left out", path, lost,
            md_plural(lost));
}

static void drop_texts(md_context *context, const char *path, const md_lattice_output *output,
                       int lost, md_report *report) {
  dropped d = {.list = cJSON_AddArrayToObject(report->root, "dropped")};
  const char *name, *text, *of_label[2];
  const int count = md_lattice_format_drops(output->format, &output->label, of_label);
  size_t used = 0;
  for (int i = 0; i < count; i++) drop(&d, of_label[i]);
  for (size_t at = 0; md_file_texts_next(output->texts, &at, &name, &text);)
    if (!md_lattice_format_keeps(output->format, name, text, &used)) drop(&d, name);
  say_dropped(context, path, output->format, &d, lost);
}

/* Of solutions and modes `kept` alone goes along, as far as the format has a place for it. */
static void drop_words(md_context *context, const char *path, const md_lattice_format *format,
                       const md_lattice_info *info, const char *const *kept, int count,
                       md_report *report) {
  /* What every file says of its own form and making; and of modes how HDF5 stores them. */
  static const char *const anew[] = {"axes",         "dims",    "format_version",  "convention",
                                     "milc_mass",    "version", "commit",          "date_utc",
                                     "command_line", "scale",   "mass_independent"};
  dropped d = {.list = cJSON_AddArrayToObject(report->root, "dropped")};
  /* The words of our own records were taken line by line. */
  const bool ours = md_file_texts_find(&info->notes.texts, "convention") != NULL;
  const char *name, *text;
  size_t used = 0;
  for (int i = 0; i < count; i++)
    if (!md_lattice_format_keeps(format, kept[i], "", &used)) drop(&d, kept[i]);
  for (size_t at = 0; md_file_texts_next(&info->notes.texts, &at, &name, &text);)
    if (!(ours && strncmp(name, "scidac", 6) == 0) && !is_among(name, kept, count) &&
        !is_among(name, anew, sizeof anew / sizeof *anew))
      drop(&d, name);
  say_dropped(context, path, format, &d, info->notes.texts.lost);
}

static md_status save(md_context *context, const convert_options *o, const md_lattice_info *info,
                      const md_lattice_output *like, const md_gauge *gauge, md_report *report) {
  md_file_texts texts = {0};
  md_provenance provenance;
  md_lattice_output output = *like;
  char checksum[32];
  md_status status = md_agree(context, texts_to_write(context, &info->notes.texts, &texts));
  if (status == MD_OK) {
    md_provenance_of_run(context, &provenance);
    md_checksum_print(&info->computed, checksum, sizeof checksum);
    provenance.lattice = o->in;
    provenance.lattice_checksum = checksum;
    output.texts = &texts;
    output.provenance = &provenance;
    output.keep_old = !o->force;
    status = md_lattice_save_as(context, o->out, &output, gauge);
  }
  if (status == MD_OK) drop_texts(context, o->out, &output, info->notes.texts.lost, report);
  md_file_texts_free(&texts);
  return status;
}

/* Of links that are not in SU(3) ILDG knows nothing: their records make the file a SciDAC one. */
static const char *written_format(const md_lattice_format *format, md_link_kind kind) {
  const char *name = md_lattice_format_name(format);
  return strcmp(name, "ildg") == 0 && kind != MD_LINKS_THIN ? "scidac" : name;
}

static md_status convert_links(md_context *context, const convert_options *o, md_report *report) {
  const md_lattice_format *format = NULL;
  md_lattice_info info = {0};
  md_geometry *geometry = NULL;
  md_gauge gauge;
  MD_TRY(md_lattice_format_find(context, o->out, o->format, &format));
  md_status status = md_lattice_load_links(context, o->in, NULL, o->common.grid, o->ignore_checksum,
                                           &geometry, &gauge, &info);
  if (status == MD_OK) {
    const md_precision precision = precision_to_write(context, o, format, &info.header);
    const char *name = written_format(format, info.header.label.kind);
    md_gauge_observables written = info.observables;
    const md_lattice_output like = {
        .format = format, .precision = precision, .label = info.header.label, .written = &written};
    status = save(context, o, &info, &like, &gauge, report);
    md_report_geometry(report, geometry);
    md_report_add(report->root, "in=%s out=%s format=%s links=%s precision=%s plaquette=%g", o->in,
                  o->out, name, md_link_kind_name(info.header.label.kind),
                  md_precision_name(precision), written.plaquette);
    if (status == MD_OK)
      md_say(context, "%s: %s, %s precision, plaquette %.15g\n", o->out, name,
             md_precision_name(precision), written.plaquette);
    md_gauge_destroy(&gauge);
    md_geometry_destroy(geometry);
  }
  md_lattice_info_destroy(&info);
  return status;
}

/* What files say of solutions. */
enum { SOLUTION_WORDS = 11 };
typedef struct solution_words {
  double mass, tolerance, shift, plaquette, fat_plaquette, residuals[MD_MAX_RHS];
  char source[MD_FILE_TEXT_MOST], boundary[32], action[256], checksum[64], equation[64];
  md_attribute list[SOLUTION_WORDS];
  int count;
} solution_words;

static void take_words(const md_lattice_info *info, int n_rhs, solution_words *w) {
  const md_attribute known[] = {
      {"mass", MD_ATTRIBUTE_REAL, 1, &w->mass},
      {"tolerance", MD_ATTRIBUTE_REAL, 1, &w->tolerance},
      {"shift", MD_ATTRIBUTE_REAL, 1, &w->shift},
      {"equation", MD_ATTRIBUTE_TEXT, sizeof w->equation, w->equation},
      {"plaquette", MD_ATTRIBUTE_REAL, 1, &w->plaquette},
      {"fat_plaquette", MD_ATTRIBUTE_REAL, 1, &w->fat_plaquette},
      {"residuals", MD_ATTRIBUTE_REAL, n_rhs, w->residuals},
      {"source", MD_ATTRIBUTE_TEXT, sizeof w->source, w->source},
      {"boundary", MD_ATTRIBUTE_TEXT, sizeof w->boundary, w->boundary},
      {"action", MD_ATTRIBUTE_TEXT, sizeof w->action, w->action},
      {"lattice_checksum", MD_ATTRIBUTE_TEXT, sizeof w->checksum, w->checksum}};
  w->count = 0;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (md_vectors_attribute(info, &known[i])) w->list[w->count++] = known[i];
}

/* The action whose name begins the words; the one-link action where they name none. */
static md_action named_action(const solution_words *w) {
  char name[32];
  snprintf(name, sizeof name, "%.*s", (int)strcspn(w->action, ", "), w->action);
  const int action = md_action_of(name);
  return action < 0 ? MD_ACTION_NAIVE : (md_action)action;
}

/* The sources of the solutions, where they are in the file or their name tells them: of points, and
 * of others on even sites. What a multi-shift solve has of others is the solution of their even
 * part alone. *found: whether there are any. Collective. */
static md_status get_sources(md_context *context, const convert_options *o,
                             const md_lattice_info *info, const solution_words *words, int n_rhs,
                             md_field b[MD_PARITIES], bool *found) {
  const char *text = words->source;
  md_source source = {0};
  md_source_vector vectors[MD_MAX_RHS];
  const bool on_file = info->notes.run_count > 0 && info->notes.runs[0].source;
  *found = on_file && md_vectors_count(info, true) == n_rhs;
  if (*found) return md_vectors_read(context, o->in, info, true, b);
  const bool parsed = *text && md_source_parse(context, "source", text, &source) == MD_OK;
  source.spins = md_action_get(named_action(words))->spins;
  const int *dims = info->header.dims;
  const bool named = parsed && md_source_count(&source, n_rhs) == n_rhs &&
                     md_source_check(context, &source, dims) == MD_OK &&
                     (md_source_is_points(&source) || md_source_is_even(&source, dims));
  if (named) {
    md_source_expand(&source, info->header.dims, n_rhs, vectors);
    md_source_fill(b, vectors);
  }
  free((char *)source.text);
  *found = named;
  return MD_OK;
}

static void drop_of_solution(md_context *context, const convert_options *o,
                             const md_lattice_format *format, const md_lattice_info *info,
                             const solution_words *words, bool sources, md_report *report) {
  const char *kept[SOLUTION_WORDS + 1] = {"lattice"};
  int count = md_file_texts_find(&info->notes.texts, "lattice") ? 1 : 0;
  for (int i = 0; i < words->count; i++) kept[count++] = words->list[i].name;
  drop_words(context, o->out, format, info, kept, count, report);
  if (!sources && strcmp(md_lattice_format_name(format), "scidac") == 0)
    md_warn(context, "%s: the solutions are without their sources, which %s does not tell", o->out,
            o->in);
}

static md_status require_memory(md_context *context, const md_geometry *geometry,
                                const md_field_shape *shape, int fields) {
  enum { BUFFERS = 16 << 20 }; /* a slab of the reader or of the writer */
  const int64_t all = fields * md_field_bytes(geometry, shape);
  const int64_t buffers = all / 2 < BUFFERS ? all / 2 : BUFFERS;
  const md_memory_need need = {.host = md_geometry_bytes(geometry) + all + buffers};
  return md_memory_require(context, &need, "convert");
}

static void say_parts(md_context *context, const md_lattice_info *info, const char *path) {
  int parts = 0;
  for (int i = 0; i < info->notes.run_count; i++)
    parts += info->notes.runs[i].part && !info->notes.runs[i].source;
  if (parts > 0)
    md_warn(context, "%s: %d record%s on a part of the sites left out", path, parts,
            md_plural(parts));
}

static md_status copy_solution(md_context *context, const convert_options *o,
                               const md_lattice_format *format, const md_lattice_info *info,
                               const md_geometry *geometry, md_report *report) {
  const bool hdf5 = info->notes.run_count == 0;
  const int n_rhs = hdf5 ? info->header.count : md_vectors_count(info, false);
  const md_precision precision = precision_to_write(context, o, format, &info->header);
  md_field x[MD_PARITIES] = {0}, b[MD_PARITIES] = {0};
  md_attribute attributes[SOLUTION_WORDS + MD_PROVENANCE_ATTRIBUTES];
  md_provenance from;
  solution_words words = {0};
  bool sources = false;
  if (n_rhs < 1 || n_rhs > MD_MAX_RHS)
    return md_fail(context, MD_INPUT, "%s must hold 1 to %d solutions, got %d", o->in, MD_MAX_RHS,
                   n_rhs);
  say_parts(context, info, o->in);
  take_words(info, n_rhs, &words);
  memcpy(attributes, words.list, sizeof words.list);
  md_provenance_of_run(context, &from);
  from.lattice = md_file_texts_find(&info->notes.texts, "lattice");
  const md_backend_request kind = {.action = named_action(&words), .n_rhs = n_rhs};
  const int count = md_provenance_append(&from, attributes, words.count);
  const md_field_shape shape = {
      .precision = MD_DOUBLE, .components = md_action_reals(kind.action), .n_rhs = n_rhs};
  md_status status = require_memory(context, geometry, &shape, 2 * MD_PARITIES);
  if (status == MD_OK) status = md_host_fields(context, geometry, &kind, x);
  if (status == MD_OK) status = md_host_fields(context, geometry, &kind, b);
  if (status == MD_OK) status = md_propagator_read(context, o->in, x, NULL, 0);
  if (status == MD_OK) status = get_sources(context, o, info, &words, n_rhs, b, &sources);
  if (status == MD_OK)
    status = md_solution_write(context, o->out, format, precision, !o->force, x, sources ? b : NULL,
                               attributes, count);
  for (int p = 0; p < MD_PARITIES; p++) MD_FIELDS_DESTROY(&x[p], &b[p]);
  if (status == MD_OK) drop_of_solution(context, o, format, info, &words, sources, report);
  md_report_add(report->root, "content=%s rhs=%d", "solution", n_rhs);
  return status;
}

static md_status copy_modes(md_context *context, const convert_options *o,
                            const md_lattice_format *format, const md_lattice_info *found,
                            const md_geometry *geometry, md_report *report) {
  static const char *const kept[] = {"lattice_checksum", "action",    "boundary",   "converged",
                                     "tolerance",        "residuals", "eigenvalues"};
  md_modes_info info;
  md_modes modes;
  MD_TRY(md_modes_describe(context, o->in, &info));
  const md_field_shape shape = {
      .precision = info.store, .components = info.components, .n_rhs = 1, .scaled = true};
  MD_TRY(require_memory(context, geometry, &shape, info.count));
  MD_TRY(md_modes_read(context, o->in, geometry, &info.label, &info, info.count, MD_HOST, &modes));
  info.keep_old = !o->force;
  if (o->precision) info.store = (md_precision)md_precision_of(o->precision);
  const md_status status = md_modes_write(context, o->out, format, &modes, &info);
  if (status == MD_OK)
    drop_words(context, o->out, format, found, kept, sizeof kept / sizeof *kept, report);
  md_report_add(report->root, "content=%s modes=%d", "modes", info.count);
  md_modes_destroy(&modes);
  return status;
}

/* Solutions and modes. */
static md_status convert_vectors(md_context *context, const convert_options *o,
                                 const md_lattice_info *info, md_report *report) {
  const char *content = info->header.content;
  const bool modes =
      strcmp(content, "modes") == 0 || (info->notes.run_count > 0 && info->notes.runs[0].mode);
  const md_lattice_format *format = NULL;
  md_geometry *geometry = NULL;
  if (o->ignore_checksum)
    return md_fail(context, MD_INPUT, "--ignore-checksum is for links, %s holds %s; leave it out",
                   o->in, modes ? "modes" : content);
  if (!modes && md_vectors_are_modes(info))
    return md_fail(context, MD_INPUT,
                   "modes need their eigenvalues, quda files have none: %s; convert the hdf5 or "
                   "scidac file that it was made from",
                   o->in);
  if (!modes && strcmp(content, "vectors") != 0 && strcmp(content, "solution") != 0)
    return md_fail(context, MD_INPUT,
                   "%s: links, solutions or modes can be converted, the content of this one is: %s",
                   o->in, content);
  MD_TRY(md_vectors_format_find(context, o->out, o->format, &format));
  if (!modes && o->precision && strcmp(o->precision, "single") == 0 &&
      strcmp(md_lattice_format_name(format), "hdf5") == 0)
    return md_fail(context, MD_INPUT,
                   "hdf5 files hold solutions in double, got --precision single; leave it out");
  if (info->notes.run_count > 0 && md_vectors_count(info, true) == 0)
    return md_fail(context, MD_INPUT, "%s must hold a vector on all sites, got none", o->in);
  const md_layout_request request = md_layout_of(info->header.dims, o->common.grid, 0, NULL);
  MD_TRY(md_geometry_create(context, &request, &geometry));
  const md_status status = modes ? copy_modes(context, o, format, info, geometry, report)
                                 : copy_solution(context, o, format, info, geometry, report);
  md_report_geometry(report, geometry);
  md_report_add(report->root, "in=%s out=%s format=%s", o->in, o->out,
                md_lattice_format_name(format));
  if (status == MD_OK) md_say(context, "%s: %s\n", o->out, md_lattice_format_name(format));
  md_geometry_destroy(geometry);
  return status;
}

static md_status convert(md_context *context, const convert_options *o, md_report *report) {
  md_lattice_info info;
  md_status status = md_lattice_describe(context, o->in, &info);
  const bool links = status != MD_OK || strcmp(info.header.content, "links") == 0;
  if (!links) status = convert_vectors(context, o, &info, report);
  md_lattice_info_destroy(&info);
  return links ? convert_links(context, o, report) : status;
}

md_status md_command_convert(md_context *context, int argc, char **argv) {
  convert_options o = {0};
  md_option options[] = {
      MD_OPTION(TEXT, "in", &o.in, "IN", "links, solutions or modes in any format",
                .file = MD_FILE_INPUT, .positional = true, .required = true,
                .group = MD_GROUP_INPUT),
      MD_OPTION(TEXT, "out", &o.out, "OUT", "file to write", .file = MD_FILE_RESULT,
                .positional = true, .required = true, .group = MD_GROUP_OUTPUT),
      MD_OPTION(FLAG, "force", &o.force, NULL, "replace OUT where it is there"),
      MD_OPTION(CHOICE, "format", &o.format, "F",
                "hdf5, ildg, milc or nersc; of vectors scidac, fnal, quda too [by the suffix of "
                "OUT: .h5, .hdf5, .lime, .ildg, .milc, .ks, .nersc, .scidac, .fnal, .quda]",
                .choices = "hdf5|ildg|milc|nersc|scidac|fnal|quda"),
      MD_OPTION(CHOICE, "precision", &o.precision, "P", "double or single [that of IN]",
                .choices = "double|single"),
      MD_OPTION(FLAG, "ignore-checksum", &o.ignore_checksum, NULL,
                "only warn where the checksum, or the header of HDF5 or NERSC, does not fit links",
                .group = MD_GROUP_INPUT),
      MD_COMMON_OPTIONS(o.common)};
  enum { COUNT = sizeof options / sizeof *options };
  const md_command_text text = {"convert",
                                "copy links, solutions or modes into a file of another format",
                                NULL, "minidirac convert inputs/beta6.0_8x8x8x8.h5 copy.lime"};
  md_report report;
  MD_TRY(md_options_read(context, &text, options, COUNT, &o.common, argc, argv));
  if (o.common.help) return MD_OK;
  MD_TRY(md_report_open(context, "convert", &report));
  const md_status status = convert(context, &o, &report);
  return md_report_close_after(context, &report, o.common.json, status);
}
