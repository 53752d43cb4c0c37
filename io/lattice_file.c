#include "base/file.h"
#include "base/memory_need.h"
#include "base/text.h"
#include "base/timer.h"
#include "io/lattice_format.h"
#include "io/modes_file.h"
#include "io/vectors.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static const md_lattice_format *const formats[] = {
    &md_format_hdf5,   &md_format_ildg, &md_format_milc,         &md_format_nersc,
    &md_format_scidac, &md_format_quda, &md_format_milc_vectors, &md_format_fnal};
enum { FORMATS = sizeof formats / sizeof *formats };

/* Header values are often printed from single precision. Relative above 1: those of fat and long
 * links have no bound. */
static const double value_tolerance = 1e-5;
static const double unitarity_tolerance = 1e-4;

const char *md_lattice_format_name(const md_lattice_format *format) {
  return format->name;
}

const char *md_lattice_header_format(const md_lattice_header *header) {
  return header->scidac ? "scidac" : formats[header->format]->name;
}

const char *md_checksum_state_name(md_checksum_state state) {
  static const char *const names[] = {"absent", "ok", "mismatch", "unread"};
  return names[state];
}

void md_lattice_info_destroy(md_lattice_info *info) {
  MD_FREE(info->notes.records, info->notes.departures, info->notes.runs);
  md_file_texts_free(&info->notes.texts);
  *info = (md_lattice_info){0};
}

static md_status recognise(const md_header_input *s) {
  unsigned char head[16];
  const size_t bytes = s->bytes < (int64_t)sizeof head ? (size_t)s->bytes : sizeof head;
  MD_TRY(md_header_input_read(s, 0, head, bytes));
  for (int i = 0; i < FORMATS; i++)
    if (formats[i]->recognises && formats[i]->recognises(head, bytes)) {
      MD_TRY(formats[i]->describe(s));
      s->header->format = i;
      if (!*s->header->content) strcpy(s->header->content, "links");
      return MD_OK;
    }
  return md_fail(s->context, MD_INPUT,
                 "%s is no lattice file: it starts neither as HDF5, LIME (ILDG, SciDAC), MILC v5 "
                 "nor NERSC, %lld bytes",
                 s->path, (long long)s->bytes);
}

/* Rank 0 alone. */
static md_status describe(md_context *context, const char *path, md_lattice_info *info) {
  md_header_input s = {context, path, -1, 0, &info->header, &info->notes};
  MD_TRY(md_file_length(context, path, &s.bytes));
  s.file = open(path, O_RDONLY);
  if (s.file < 0) return md_fail_open(context, "", path, errno);
  info->file_bytes = s.bytes;
  const md_status status = recognise(&s);
  close(s.file);
  return status;
}

/* Rank 0's texts to every rank. Collective. */
static md_status share_texts(md_context *context, md_file_texts *texts) {
  md_status status = MD_OK;
  md_file_texts all = *texts;
  md_broadcast(context, &all, sizeof all);
  if (context->rank != 0) {
    md_file_texts_free(texts);
    *texts = (md_file_texts){.used = all.used, .count = all.count, .lost = all.lost};
    if (all.used > 0) texts->bytes = malloc(MD_FILE_TEXTS_MOST);
    if (all.used > 0 && !texts->bytes)
      status = md_fail_memory(context, MD_FILE_TEXTS_MOST, "texts of a file");
  }
  status = md_agree(context, status);
  if (status == MD_OK && all.used > 0) md_broadcast(context, texts->bytes, texts->used);
  if (status != MD_OK) md_file_texts_free(texts);
  return status;
}

/* The same for the runs of vectors. Collective. */
static md_status share_runs(md_context *context, md_notes *notes) {
  md_status status = MD_OK;
  md_broadcast(context, &notes->run_count, sizeof notes->run_count);
  const size_t bytes = (size_t)notes->run_count * sizeof *notes->runs;
  if (context->rank != 0 && bytes > 0) notes->runs = malloc(bytes);
  if (bytes > 0 && !notes->runs) status = md_fail_memory(context, bytes, "notes of a file");
  status = md_agree(context, status);
  if (status == MD_OK && bytes > 0) md_broadcast(context, notes->runs, bytes);
  return status;
}

md_status md_lattice_describe(md_context *context, const char *path, md_lattice_info *info) {
  *info = (md_lattice_info){.checksum = MD_CHECKSUM_UNREAD};
  const md_status status =
      md_agree(context, context->rank == 0 ? describe(context, path, info) : MD_OK);
  md_broadcast(context, &info->header, sizeof info->header);
  md_broadcast(context, &info->file_bytes, sizeof info->file_bytes);
  info->described = status == MD_OK;
  if (status != MD_OK) info->notes.run_count = 0;
  MD_TRY(status);
  MD_TRY(share_texts(context, &info->notes.texts));
  return share_runs(context, &info->notes);
}

md_status md_lattice_describe_old(md_context *context, const char *path, md_lattice_info *info,
                                  bool *there) {
  struct stat old;
  *info = (md_lattice_info){.checksum = MD_CHECKSUM_UNREAD};
  *there = context->rank == 0 && stat(path, &old) == 0 && old.st_size > 0;
  md_broadcast(context, there, sizeof *there);
  return *there ? md_lattice_describe(context, path, info) : MD_OK;
}

static md_status open_lattice(md_context *context, const char *path, md_lattice_info *info) {
  MD_TRY(md_lattice_describe(context, path, info));
  if (strcmp(info->header.content, "links") == 0) return MD_OK;
  return md_fail(context, MD_INPUT, "%s: a file of links is needed, the content of this one is: %s",
                 path, info->header.content);
}

/* A finding that --ignore-checksum turns into a warning. */
static md_status found(md_context *context, bool ignored, md_status status) {
  if (!ignored || status == MD_OK) return status;
  md_warn(context, "%s (ignored)", context->message);
  return MD_OK;
}

static md_status judge_checksum(md_context *context, const char *path, bool ignored,
                                const md_lattice_info *info) {
  char expected[32], computed[32];
  if (info->checksum != MD_CHECKSUM_MISMATCH) return MD_OK;
  md_checksum_print(&info->header.checksum, expected, sizeof expected);
  md_checksum_print(&info->computed, computed, sizeof computed);
  return found(context, ignored,
               md_fail(context, MD_INPUT,
                       "%s: checksum mismatch: the file says %s, its %lld bytes of links give %s%s",
                       path, expected, (long long)md_lattice_link_bytes(&info->header), computed,
                       info->computed.damaged ? "; Fletcher32 of a chunk fails too" : ""));
}

static md_status judge_value(md_context *context, const char *path, const md_lattice_info *info,
                             const char *name, bool given, double there, double here) {
  const double size = fmax(1.0, fmin(fabs(there), fabs(here)));
  if (!given || fabs(there - here) <= value_tolerance * size) return MD_OK;
  if (info->header.binding)
    return md_fail(context, MD_INPUT, "%s: the header says %s %.15g, its links give %.15g", path,
                   name, there, here);
  md_warn(context, "%s: the metadata say %s %.15g, the links give %.15g", path, name, there, here);
  return MD_OK;
}

static md_status check_finite(md_context *context, const char *path,
                              const md_gauge_observables *o) {
  if (o->bad_links == 0) return MD_OK;
  return md_fail(context, MD_INPUT, "%s: links must be finite, NaN or infinity is in %lld of them",
                 path, o->bad_links);
}

static md_status judge(md_context *context, const char *path, bool ignored,
                       const md_lattice_info *info) {
  const md_lattice_header *header = &info->header;
  const md_gauge_observables *here = &info->observables;
  MD_TRY(judge_checksum(context, path, ignored, info));
  MD_TRY(check_finite(context, path, here));
  const md_status plaquette = judge_value(context, path, info, "plaquette", header->has_plaquette,
                                          header->plaquette, here->plaquette);
  MD_TRY(found(context, ignored, plaquette));
  const md_status trace = judge_value(context, path, info, "link trace", header->has_link_trace,
                                      header->link_trace, here->link_trace);
  MD_TRY(found(context, ignored, trace));
  /* What is refused gets one line. */
  if (info->checksum == MD_CHECKSUM_ABSENT)
    md_warn(context, "%s has no checksum: its links cannot be verified", path);
  return MD_OK;
}

md_status md_lattice_plan(md_context *context, const char *path, const int grid[MD_DIMS],
                          md_geometry *geometry, md_lattice_header *header) {
  md_lattice_info info;
  md_status status = open_lattice(context, path, &info);
  if (header) *header = info.header;
  if (status == MD_OK) {
    const md_layout_request request = md_layout_of(info.header.dims, grid, 0, NULL);
    status = md_geometry_plan(context, &request, geometry);
  }
  md_lattice_info_destroy(&info);
  return status;
}

int64_t md_lattice_load_bytes(const md_geometry *geometry) {
  enum { BUFFERS = 32 << 20 }; /* two slabs of the readers */
  const int64_t links = md_gauge_bytes(geometry);
  return md_geometry_bytes(geometry) + links + (links < BUFFERS ? links : BUFFERS);
}

/* The checksum of the header's kind over the whole file. */
static md_status read_checked(md_context *context, const char *path,
                              const md_lattice_format *format, const md_lattice_header *header,
                              const md_geometry *geometry, const md_site_fields *links,
                              md_checksum *checksum) {
  *checksum = (md_checksum){.kind = header->checksum.kind};
  MD_TRY((format->compose ? md_payload_read : md_h5_lattice_read)(context, path, header, geometry,
                                                                  links, checksum));
  md_checksum_combine(context, checksum);
  return MD_OK;
}

static md_status read_links(md_context *context, const char *path, const int grid[MD_DIMS],
                            md_geometry **geometry, md_gauge *gauge, md_lattice_info *info) {
  const int *d = info->header.dims;
  if (*geometry && memcmp((*geometry)->global, d, sizeof info->header.dims) != 0)
    return md_fail(context, MD_INPUT,
                   "%s: the extents must be %d x %d x %d x %d as those of the other links, got "
                   "%d x %d x %d x %d",
                   path, (*geometry)->global[0], (*geometry)->global[1], (*geometry)->global[2],
                   (*geometry)->global[3], d[0], d[1], d[2], d[3]);
  if (!*geometry) {
    md_geometry plan;
    const md_layout_request request = md_layout_of(d, grid, 0, NULL);
    MD_TRY(md_geometry_plan(context, &request, &plan));
    const md_memory_need need = {.host = md_lattice_load_bytes(&plan)};
    MD_TRY(md_memory_require(context, &need, "loading the lattice"));
    MD_TRY(md_geometry_create(context, &request, geometry));
  }
  MD_TRY(md_agree(context, md_gauge_create(context, *geometry, gauge)));
  const double start_s = md_time_s();
  const md_site_fields links = md_gauge_sites(gauge);
  MD_TRY(read_checked(context, path, formats[info->header.format], &info->header, *geometry, &links,
                      &info->computed));
  info->read_s = md_time_s() - start_s;
  const md_checksum *there = &info->header.checksum, *here = &info->computed;
  const bool same = there->kind == here->kind && there->a == here->a && there->b == here->b;
  info->checksum = here->damaged || !same            ? MD_CHECKSUM_MISMATCH
                   : there->kind == MD_CHECKSUM_NONE ? MD_CHECKSUM_ABSENT
                                                     : MD_CHECKSUM_OK;
  MD_TRY(md_gauge_exchange(context, gauge));
  MD_TRY(md_gauge_observe(context, gauge, &info->observables));
  info->observed = true;
  return MD_OK;
}

/* Thin links are asked for by --lattice, others by --fat and --long. */
static md_status check_kind(md_context *context, const char *path, const md_link_kind *wanted,
                            const md_link_label *label) {
  if (!wanted || label->kind == *wanted || label->kind == MD_LINKS_THIN) return MD_OK;
  return md_fail(context, MD_INPUT,
                 "%s: %s links are asked for, the file says that its links are %s", path,
                 md_link_kind_name(*wanted), md_link_kind_name(label->kind));
}

/* After a failure: a geometry that was given stays. */
static void drop_links(bool given, md_geometry **geometry, md_gauge *gauge) {
  md_gauge_destroy(gauge);
  if (given) return;
  md_geometry_destroy(*geometry);
  *geometry = NULL;
}

static md_status load(md_context *context, const char *path, const md_link_kind *wanted,
                      const int grid[MD_DIMS], bool ignore_checksum, md_geometry **geometry,
                      md_gauge *gauge, md_lattice_info *info) {
  const bool given = *geometry != NULL;
  *gauge = (md_gauge){0};
  MD_TRY(open_lattice(context, path, info));
  MD_TRY(check_kind(context, path, wanted, &info->header.label));
  md_status status = read_links(context, path, grid, geometry, gauge, info);
  if (status == MD_OK) status = judge(context, path, ignore_checksum, info);
  if (status != MD_OK) drop_links(given, geometry, gauge);
  return status;
}

md_status md_lattice_load_links(md_context *context, const char *path, const md_link_kind *wanted,
                                const int grid[MD_DIMS], bool ignore_checksum,
                                md_geometry **geometry, md_gauge *gauge, md_lattice_info *info) {
  MD_TRY(load(context, path, wanted, grid, ignore_checksum, geometry, gauge, info));
  const md_link_kind kind = wanted ? *wanted : info->header.label.kind;
  const double deviation = info->observables.unitarity_deviation;
  if (kind == MD_LINKS_THIN && !(deviation <= unitarity_tolerance))
    md_warn(context, "%s: links are not in SU(3), largest deviation %.3g", path, deviation);
  return MD_OK;
}

md_status md_lattice_load(md_context *context, const char *path, const int grid[MD_DIMS],
                          bool ignore_checksum, md_geometry **geometry, md_gauge *gauge,
                          md_lattice_info *info) {
  const md_link_kind thin = MD_LINKS_THIN;
  *geometry = NULL;
  return load(context, path, &thin, grid, ignore_checksum, geometry, gauge, info);
}

static bool has_suffix(const char *path, const char *suffixes) {
  const char *dot = strrchr(path, '.');
  if (!dot || strchr(dot, '/')) return false;
  const size_t length = strlen(dot);
  for (const char *at = strstr(suffixes, dot); at; at = strstr(at + 1, dot))
    if (at[length] == 0 || at[length] == ' ') return true;
  return false;
}

static const md_lattice_format *format_of(const char *path, const char *name, unsigned holds) {
  for (int i = 0; i < FORMATS; i++)
    if ((formats[i]->holds & holds) &&
        (name ? strcmp(formats[i]->name, name) == 0 : has_suffix(path, formats[i]->suffixes)))
      return formats[i];
  return NULL;
}

const md_lattice_format *md_vectors_format_of(const char *path, const char *name) {
  const md_lattice_format *format = format_of(path, name, MD_HOLDS_VECTORS);
  return format ? format : &md_format_hdf5;
}

md_status md_vectors_check_suffix(md_context *context, const char *path) {
  if (format_of(path, NULL, MD_HOLDS_VECTORS) || !format_of(path, NULL, MD_HOLDS_LINKS))
    return MD_OK;
  return md_fail(context, MD_INPUT,
                 "a file of vectors must have no suffix that stands for links, got %s; end it in "
                 ".h5",
                 path);
}

/* None of that name or suffix; `choices` are names where there is a name, else suffixes. */
static md_status fail_format(md_context *context, bool vectors, const char *path, const char *name,
                             const char *choices) {
  if (name)
    return md_fail(context, MD_INPUT, "the format must be one of %s, '%s' is none; use --format %s",
                   vectors ? "vectors" : "links", name, choices);
  return md_fail(context, MD_INPUT,
                 "the format%s must be named, the suffix of '%s' tells none; end it in %s",
                 vectors ? " of vectors" : "", path, choices);
}

md_status md_vectors_format_find(md_context *context, const char *path, const char *name,
                                 const md_lattice_format **format) {
  *format = format_of(path, name, MD_HOLDS_VECTORS);
  if (*format) return MD_OK;
  return fail_format(context, true, path, name,
                     name ? "hdf5|scidac|milc|fnal|quda"
                          : ".h5, .lime, .scidac, .milc, .ks, .fnal or .quda");
}

bool md_vectors_recognised(const md_context *context, const char *path) {
  bool found = false;
  if (context->rank == 0) {
    unsigned char head[16];
    struct stat there; /* a pipe would keep its reader waiting */
    FILE *file = stat(path, &there) == 0 && S_ISREG(there.st_mode) ? fopen(path, "rb") : NULL;
    const size_t bytes = file ? fread(head, 1, sizeof head, file) : 0;
    if (file) fclose(file);
    for (int i = 0; i < FORMATS; i++)
      found = found || (formats[i]->compose && formats[i]->recognises &&
                        formats[i]->recognises(head, bytes));
  }
  md_broadcast(context, &found, sizeof found);
  return found;
}

md_status md_lattice_format_find(md_context *context, const char *path, const char *name,
                                 const md_lattice_format **format) {
  *format = format_of(path, name, MD_HOLDS_LINKS);
  if (*format) return MD_OK;
  return fail_format(context, false, path, name,
                     name ? "hdf5|ildg|milc|nersc" : ".h5, .lime or .ildg");
}

bool md_lattice_format_holds(const md_lattice_format *format, md_precision precision) {
  return precision == MD_SINGLE || (precision == MD_DOUBLE && !format->single_only);
}

bool md_lattice_format_takes(const md_lattice_format *format, md_link_kind kind) {
  return kind == MD_LINKS_THIN || !format->thin_only;
}

bool md_lattice_format_keeps(const md_lattice_format *format, const char *name, const char *text,
                             size_t *used) {
  return !format->keeps || format->keeps(name, text, used);
}

int md_lattice_format_drops(const md_lattice_format *format, const md_link_label *label,
                            const char *names[2]) {
  const bool thin = label->kind == MD_LINKS_THIN, lime = format == &md_format_ildg;
  int count = 0;
  if (format == &md_format_hdf5) return 0;
  if (*label->made && (thin || !lime)) names[count++] = "made";
  if (!thin && !lime) names[count++] = "links";
  return count;
}

/* The file as it lies on disk has the links that were in memory. No input is at fault where a file
 * of our own is lost or damaged. */
static md_status read_back(md_context *context, const char *path, const md_lattice_format *format,
                           const md_lattice_header *header, const md_gauge *gauge) {
  md_checksum there;
  if (read_checked(context, path, format, header, gauge->geometry, NULL, &there) != MD_OK)
    return MD_ENVIRONMENT;
  if (there.damaged || there.a != header->checksum.a || there.b != header->checksum.b)
    return md_fail(context, MD_ENVIRONMENT,
                   "%s: what was written does not read back the same; is the disk full or broken?",
                   path);
  return MD_OK;
}

static md_status check_output(md_context *context, const md_lattice_output *output) {
  const md_lattice_format *format = output->format;
  if (!md_lattice_format_holds(format, output->precision))
    return md_fail(context, MD_INPUT, "%s files hold %s, got %s%s", format->name,
                   format->single_only ? "single precision" : "single or double precision",
                   md_precision_name(output->precision),
                   format->single_only ? "; take single" : "");
  if (!md_lattice_format_takes(format, output->label.kind))
    return md_fail(context, MD_INPUT, "%s files hold thin links, got %s links; use hdf5 or ildg",
                   format->name, md_link_kind_name(output->label.kind));
  return MD_OK;
}

md_status md_lattice_save_as(md_context *context, const char *path, const md_lattice_output *output,
                             const md_gauge *gauge) {
  const md_lattice_format *format = output->format;
  md_gauge_observables observables;
  md_new_file file;
  md_provenance provenance;
  MD_TRY(check_output(context, output));
  MD_TRY(md_gauge_observe_in(context, gauge, output->precision, &observables));
  MD_TRY(check_finite(context, path, &observables));
  if (output->written) *output->written = observables;
  md_provenance_of_run(context, &provenance);
  if (output->provenance) provenance = *output->provenance;
  md_lattice_header header = {.precision = output->precision,
                              .site = {.rows = 3,
                                       .real_bytes = output->precision == MD_DOUBLE ? 8 : 4,
                                       .big_endian = format->compose || MD_HOST_BIG_ENDIAN},
                              .checksum.kind = format->checksum,
                              .has_plaquette = true,
                              .has_link_trace = true,
                              .plaquette = observables.plaquette,
                              .link_trace = observables.link_trace,
                              .label = output->label,
                              .texts = output->texts,
                              .provenance = &provenance};
  memcpy(header.dims, gauge->geometry->global, sizeof header.dims);
  MD_TRY(md_new_file_begin(context, path, &file));
  file.keep_old = output->keep_old;
  const md_site_fields links = md_gauge_sites(gauge);
  md_status status = format->compose ? md_payload_write(context, file.path, &header, &links, format,
                                                        &(md_runs){.count = 1})
                                     : md_h5_lattice_write(context, file.path, &header, gauge);
  if (status == MD_OK) status = read_back(context, file.path, format, &header, gauge);
  return md_new_file_end(context, &file, status);
}

static md_status take_off_phases(md_context *context, const char *path, md_link_kind kind,
                                 bool known_bare, md_gauge *gauge, md_phases *phases) {
  *phases = (md_phases){.convention = MD_PHASES_NONE, .score = 1.0, .boundary_score = 1.0};
  if (known_bare) return MD_OK;
  MD_TRY(md_phases_find(context, gauge, kind, path, phases));
  md_say(context, "%s: %s links with staggered phases %s, boundary sign %s (scores %.2f, %.2f)%s\n",
         path, md_link_kind_name(kind), md_phase_name(phases->convention),
         phases->antiperiodic ? "antiperiodic" : "periodic", phases->score, phases->boundary_score,
         phases->convention != MD_PHASES_NONE || phases->antiperiodic ? ", taken off" : "");
  return md_phases_apply(context, gauge, kind, phases);
}

md_status md_improved_load(md_context *context, const char *path, md_link_kind kind,
                           const int grid[MD_DIMS], bool ignore_checksum, md_geometry **geometry,
                           md_gauge *gauge, md_improved_info *info) {
  const bool given = *geometry != NULL;
  *info = (md_improved_info){0};
  MD_TRY(md_lattice_load_links(context, path, &kind, grid, ignore_checksum, geometry, gauge,
                               &info->lattice));
  const md_status status =
      take_off_phases(context, path, kind, info->lattice.header.label.bare, gauge, &info->phases);
  if (status != MD_OK) drop_links(given, geometry, gauge);
  return status;
}

/* The SciDAC checksums of fields in that form, as words. */
static md_status print_checksums(md_context *context, const md_gauge *fields, int count, int rows,
                                 int real_bytes, char *text, size_t bytes) {
  *text = 0;
  for (int f = 0; f < count; f++) {
    md_lattice_header h = {.site = {.rows = rows, .real_bytes = real_bytes, .big_endian = true},
                           .checksum.kind = MD_CHECKSUM_SCIDAC};
    const md_site_fields links = md_gauge_sites(&fields[f]);
    MD_TRY(md_sites_write(context, &h, &links, NULL, NULL));
    (void)md_append(text, bytes, "%s%08x%08x", f ? " " : "", h.checksum.a, h.checksum.b);
  }
  return MD_OK;
}

md_status md_links_checksum(md_context *context, const md_gauge *fields, int count,
                            char text[MD_MODES_TEXT]) {
  return print_checksums(context, fields, count, 3, 8, text, MD_MODES_TEXT);
}

md_status md_lattice_identity(md_context *context, const md_gauge *thin,
                              char text[MD_LATTICE_IDENTITY]) {
  return print_checksums(context, thin, 1, 2, 4, text, MD_LATTICE_IDENTITY);
}
