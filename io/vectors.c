#include "io/vectors.h"
#include "base/file.h"
#include "base/text.h"
#include "io/lattice_format.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const md_field_shape one_vector = {MD_DOUBLE, MD_HOST, MD_FERMION_REALS, 1, true, false};

/* Room for the vectors of one run: of both parities, as many as a site has on file. */
typedef struct room {
  int count;
  md_field *part[MD_PARITIES];
} room;

static void room_free(room *r) {
  for (int p = 0; p < MD_PARITIES; p++) {
    for (int k = 0; r->part[p] && k < r->count; k++) md_field_destroy(&r->part[p][k]);
    free(r->part[p]);
  }
}

/* To be freed also after a failure. Collective. */
static md_status room_make(md_context *context, const md_geometry *geometry, int count, room *r) {
  md_status status = MD_OK;
  *r = (room){.count = count};
  for (int p = 0; p < MD_PARITIES; p++) {
    r->part[p] = calloc((size_t)count, sizeof *r->part[p]);
    if (!r->part[p]) status = md_fail_memory(context, (size_t)count * sizeof(md_field), "vectors");
    for (int k = 0; k < count && status == MD_OK; k++)
      status = md_field_create(context, geometry, &one_vector, p, &r->part[p][k]);
  }
  return md_agree(context, status);
}

static md_site_fields sites_of(const room *r) {
  return (md_site_fields){r->part[0][0].geometry, {r->part[0], r->part[1]}};
}

/* Between our phases and MILC's: (-1)^(t (x + y + z)). */
static double sign_of(const int x[MD_DIMS]) {
  return x[MD_T] & (x[MD_X] + x[MD_Y] + x[MD_Z]) & 1 ? -1.0 : 1.0;
}

/* Right-hand side `to` of `out` = factor * sign * right-hand side `from` of `in`; false when a
 * value is not finite. Local, threaded. */
static bool convert(md_field *out, int to, const md_field *in, int from, double factor) {
  bool finite = true;
#pragma omp parallel for schedule(static) reduction(&& : finite)
  for (int64_t i = 0; i < in->sites; i++) {
    int x[MD_DIMS];
    double v[MD_FERMION_REALS];
    md_global_coordinates(in->geometry, in->parity, i, x);
    md_field_get(in, i, from, v);
    for (int c = 0; c < MD_FERMION_REALS; c++) {
      finite = finite && isfinite(v[c]);
      ((double *)out->data)[md_field_at(out, i, c, to)] = factor * sign_of(x) * v[c];
    }
  }
  return finite;
}

/* What brings a vector of that run to our convention, and its inverse. */
static double factor_of(const md_vector_run *run, bool source) {
  return !run->source && (run->colour >= 0 || !source) ? 2.0 : 1.0;
}

typedef struct writer {
  const md_vectors_output *output;
  const char *path;
  room room;
  int each; /* runs of a right-hand side: 2 where there is a place for its source */
} writer;

static md_status fill(md_context *context, void *user, int run) {
  writer *w = user;
  const md_vectors_output *o = w->output;
  const bool source = w->each == 2 && run % 2 == 0;
  const md_field *from = source ? o->source : o->solution;
  bool finite = true;
  for (int k = 0; k < w->room.count; k++) {
    const int rhs = o->format->together ? k : run / w->each;
    md_field *even = &w->room.part[MD_EVEN][k];
    if (o->modes) {
      MD_TRY(md_agree(context, md_field_convert(context, even, &o->modes->vectors[rhs])));
      finite = convert(even, 0, even, 0, 1.0) && finite; /* odd sites stay zero */
      continue;
    }
    for (int p = 0; p < MD_PARITIES; p++)
      finite = convert(&w->room.part[p][k], 0, &from[p], rhs, source ? 1.0 : 0.5) && finite;
  }
  return md_agree(context, finite ? MD_OK
                                  : md_fail(context, MD_INPUT,
                                            "%s: vectors must be finite, right-hand side %d is not",
                                            w->path, run / w->each));
}

md_status md_vectors_check(md_context *context, const md_lattice_format *f, md_precision precision,
                           int count, bool modes) {
  if (f->vectors_only && (modes || count != f->vectors_only))
    return md_fail(context, MD_INPUT,
                   "%s files hold %d solutions, one for each colour of a source, got %d %s; use "
                   "hdf5 or scidac",
                   f->name, f->vectors_only, count, modes ? "modes" : "of them");
  if (f->together && !f->vectors_only && !modes)
    return md_fail(context, MD_INPUT, "%s files hold modes, got solutions; use hdf5 or scidac",
                   f->name);
  if (!md_lattice_format_holds(f, precision))
    return md_fail(context, MD_INPUT, "%s files hold %s, got %s", f->name,
                   f->single_only ? "single precision" : "single or double precision",
                   md_precision_name(precision));
  return MD_OK;
}

/* The runs of a file that was written, as they are found there. */
static md_status read_back(md_context *context, const char *path, const md_geometry *geometry,
                           const md_checksum *sums) {
  md_lattice_info info;
  md_checksum_state state = MD_CHECKSUM_UNREAD;
  md_status status = md_lattice_describe(context, path, &info);
  if (status == MD_OK) status = md_vectors_verify(context, path, geometry, &info, sums, &state);
  md_lattice_info_destroy(&info);
  if (status != MD_OK) return MD_ENVIRONMENT; /* as of links, in lattice_file.c */
  if (state == MD_CHECKSUM_OK) return MD_OK;
  return md_fail(context, MD_ENVIRONMENT,
                 "%s: what was written does not read back the same; is the disk full or broken?",
                 path);
}

static md_status write_file(md_context *context, const char *path, writer *w, int count) {
  const md_vectors_output *o = w->output;
  const md_geometry *geometry = w->room.part[0][0].geometry;
  const md_site_fields sites = sites_of(&w->room);
  md_lattice_header header = {.precision = o->precision,
                              .site = {.vectors = w->room.count,
                                       .rows = 1,
                                       .real_bytes = o->precision == MD_DOUBLE ? 8 : 4,
                                       .big_endian = true},
                              .checksum.kind = o->format->checksum,
                              .vectors = o};
  const int runs = o->format->together ? 1 : count * w->each;
  md_checksum *sums = calloc((size_t)runs, sizeof *sums);
  memcpy(header.dims, geometry->global, sizeof header.dims);
  md_status status = sums ? MD_OK : md_fail_memory(context, (size_t)runs * sizeof *sums, "vectors");
  status = md_agree(context, status);
  if (status == MD_OK)
    status = md_payload_write(context, path, &header, &sites, o->format,
                              &(md_runs){runs, fill, w, sums});
  if (status == MD_OK) status = read_back(context, path, geometry, sums);
  free(sums);
  return status;
}

md_status md_vectors_write(md_context *context, const char *path, const md_vectors_output *o) {
  const md_field *first = o->modes ? o->modes->vectors : o->solution;
  const int count = o->modes ? o->modes->count : first->n_rhs;
  writer w = {.output = o, .path = path, .each = o->source && !o->format->vectors_only ? 2 : 1};
  md_new_file file;
  if (first->components != MD_FERMION_REALS)
    return md_fail(context, MD_INPUT, "%s files hold colour vectors, got %d reals a site; use hdf5",
                   o->format->name, first->components);
  MD_TRY(md_vectors_check(context, o->format, o->precision, count, o->modes != NULL));
  md_status status = room_make(context, first->geometry, o->format->together ? count : 1, &w.room);
  if (status == MD_OK) {
    status = md_new_file_begin(context, path, &file);
    if (status == MD_OK) {
      file.keep_old = o->keep_old;
      status = md_new_file_end(context, &file, write_file(context, file.path, &w, count));
    }
  }
  room_free(&w.room);
  return status;
}

md_status md_vectors_settle(const md_header_input *s, const long long dims[MD_DIMS],
                            bool big_endian) {
  md_lattice_header *header = s->header;
  int64_t end = 0;
  strcpy(header->content, "vectors");
  MD_TRY(md_header_input_check_dims(s, dims));
  for (int i = 0; i < s->notes->run_count; i++) {
    const md_vector_run *run = &s->notes->runs[i];
    if (!run->vectors || !run->real_bytes)
      return md_fail(s->context, MD_INPUT,
                     "%s: record %d of colour vectors must have a typesize of 24 or 48 and a "
                     "datacount of 1 to %d",
                     s->path, i, MD_MODES_MOST);
    header->site = (md_site_format){run->vectors, 1, run->real_bytes, big_endian};
    const int64_t bytes = md_lattice_link_bytes(header);
    if (!run->part && run->bytes != bytes)
      return md_fail(s->context, MD_INPUT,
                     "%s: record %d of colour vectors has %lld bytes, a %dx%dx%dx%d lattice needs "
                     "%lld",
                     s->path, i, (long long)run->bytes, header->dims[0], header->dims[1],
                     header->dims[2], header->dims[3], (long long)bytes);
    if (run->offset + run->bytes > s->bytes)
      return md_fail(s->context, MD_INPUT,
                     "%s is truncated: vectors %d end at byte %lld, the file at %lld", s->path, i,
                     (long long)(run->offset + run->bytes), (long long)s->bytes);
    header->precision = run->real_bytes == 8 ? MD_DOUBLE : MD_SINGLE;
    end = run->offset + run->bytes;
  }
  if (!header->scidac && end < s->bytes) /* in LIME there is more behind them */
    md_notes_departure(s->notes, "the vectors end %lld byte%s before the file",
                       (long long)(s->bytes - end), md_plural(s->bytes - end));
  return MD_OK;
}

/* True for the runs that md_vectors_count counts. */
static bool is_wanted(const md_lattice_info *info, const md_vector_run *run, bool source) {
  bool any = false;
  for (int i = 0; i < info->notes.run_count && source; i++)
    any = any || (info->notes.runs[i].source && !info->notes.runs[i].part);
  return !run->part && run->source == any;
}

int md_vectors_count(const md_lattice_info *info, bool source) {
  int count = 0;
  for (int i = 0; i < info->notes.run_count; i++)
    if (is_wanted(info, &info->notes.runs[i], source)) count += info->notes.runs[i].vectors;
  return count;
}

bool md_vectors_are_modes(const md_lattice_info *info) {
  const char *convention = md_file_texts_find(&info->notes.texts, "convention");
  return (info->notes.run_count > 0 && info->notes.runs[0].mode) ||
         (convention && strncmp(convention, MD_MILC_MODES, strlen(MD_MILC_MODES)) == 0);
}

static md_lattice_header header_of(const md_lattice_info *info, const md_vector_run *run) {
  md_lattice_header header = info->header;
  header.site.vectors = run->vectors;
  header.site.real_bytes = run->real_bytes;
  header.offset = run->offset;
  header.checksum = run->checksum;
  return header;
}

/* The vectors of a run, as on file. Collective. */
static md_status read_run(md_context *context, const char *path, const md_lattice_info *info,
                          const md_vector_run *run, const room *r) {
  const md_lattice_header header = header_of(info, run);
  const md_site_fields sites = sites_of(r);
  const md_checksum *there = &run->checksum;
  md_checksum here = {.kind = there->kind};
  MD_TRY(md_payload_read(context, path, &header, sites.geometry, &sites, &here));
  md_checksum_combine(context, &here);
  if (here.a == there->a && here.b == there->b) return MD_OK;
  return md_fail(context, MD_INPUT,
                 "%s: checksum mismatch: the file says %08x %08x of its vectors at byte %lld, they "
                 "give %08x %08x",
                 path, there->a, there->b, (long long)run->offset, here.a, here.b);
}

static md_status check_extents(md_context *context, const char *path, const md_lattice_info *info,
                               const md_geometry *geometry) {
  const int *d = info->header.dims, *g = geometry->global;
  if (strcmp(info->header.content, "vectors") != 0)
    return md_fail(context, MD_INPUT, "%s: vectors are needed, the content of this one is: %s",
                   path, info->header.content);
  if (memcmp(d, g, sizeof info->header.dims) == 0) return MD_OK;
  return md_fail(context, MD_INPUT, "%s is of a %dx%dx%dx%d lattice, needed is one of %dx%dx%dx%d",
                 path, d[0], d[1], d[2], d[3], g[0], g[1], g[2], g[3]);
}

static md_status not_finite(md_context *context, const char *path, bool finite) {
  return md_agree(
      context,
      finite ? MD_OK : md_fail(context, MD_INPUT, "%s has values that are NaN or infinite", path));
}

md_status md_vectors_read(md_context *context, const char *path, const md_lattice_info *info,
                          bool source, md_field fields[MD_PARITIES]) {
  const md_geometry *geometry = fields[0].geometry;
  const int wanted = fields[0].n_rhs, there = md_vectors_count(info, source);
  bool finite = true, summed = true;
  md_status status = check_extents(context, path, info, geometry);
  if (status == MD_OK && there < wanted)
    status = md_fail(context, MD_INPUT, "%s: %d right-hand sides are needed, the file has %d", path,
                     wanted, there);
  for (int i = 0, done = 0; i < info->notes.run_count && done < wanted && status == MD_OK; i++) {
    const md_vector_run *run = &info->notes.runs[i];
    room r = {0};
    if (!is_wanted(info, run, source)) continue;
    status = room_make(context, geometry, run->vectors, &r);
    if (status == MD_OK) status = read_run(context, path, info, run, &r);
    for (int k = 0; k < run->vectors && done < wanted && status == MD_OK; k++, done++)
      for (int p = 0; p < MD_PARITIES; p++)
        finite = convert(&fields[p], done, &r.part[p][k], 0, factor_of(run, source)) && finite;
    summed = summed && run->checksum.kind != MD_CHECKSUM_NONE;
    room_free(&r);
  }
  if (status == MD_OK && !summed)
    md_warn(context, "%s has no checksum: its vectors cannot be verified", path);
  return status == MD_OK ? not_finite(context, path, finite) : status;
}

md_status md_vectors_read_mode(md_context *context, const char *path, const md_lattice_info *info,
                               int i, md_field *even) {
  room r = {0};
  bool finite = true;
  MD_TRY(check_extents(context, path, info, even->geometry));
  md_status status = room_make(context, even->geometry, 1, &r);
  if (status == MD_OK) status = read_run(context, path, info, &info->notes.runs[i], &r);
  if (status == MD_OK) finite = convert(even, 0, &r.part[MD_EVEN][0], 0, 1.0);
  room_free(&r);
  return status == MD_OK ? not_finite(context, path, finite) : status;
}

md_status md_vectors_verify(md_context *context, const char *path, const md_geometry *geometry,
                            const md_lattice_info *info, const md_checksum *sums,
                            md_checksum_state *state) {
  *state = MD_CHECKSUM_OK;
  for (int i = 0; i < info->notes.run_count; i++) {
    const md_vector_run *run = &info->notes.runs[i];
    const md_checksum *there = sums ? &sums[i] : &run->checksum;
    const md_lattice_header header = header_of(info, run);
    md_checksum here = {.kind = there->kind};
    if (run->part || there->kind == MD_CHECKSUM_NONE) {
      if (!run->part && *state == MD_CHECKSUM_OK) *state = MD_CHECKSUM_ABSENT;
      continue;
    }
    MD_TRY(md_payload_read(context, path, &header, geometry, NULL, &here));
    md_checksum_combine(context, &here);
    if (here.a != there->a || here.b != there->b) *state = MD_CHECKSUM_MISMATCH;
  }
  return MD_OK;
}

/* Numbers of the runs, where they have one each. */
static bool get_residuals(const md_lattice_info *info, const md_attribute *a) {
  int count = 0;
  for (int i = 0; i < info->notes.run_count; i++) {
    const md_vector_run *run = &info->notes.runs[i];
    if (!is_wanted(info, run, false) || isnan(run->residual) || count == a->count) continue;
    ((double *)a->data)[count++] = run->residual;
  }
  return count == a->count;
}

/* Numbers between blanks, exactly as many. */
static bool get_numbers(const char *text, const md_attribute *a) {
  char *end = NULL;
  for (int i = 0; i < a->count; i++, text = end) {
    const double value = strtod(text, &end);
    if (end == text) return false;
    if (a->type == MD_ATTRIBUTE_REAL)
      ((double *)a->data)[i] = value;
    else
      ((int64_t *)a->data)[i] = (int64_t)value;
  }
  return *end == 0;
}

bool md_vectors_attribute(const md_lattice_info *info, const md_attribute *a) {
  if (strcmp(a->name, "residuals") == 0 && info->notes.run_count > 0) return get_residuals(info, a);
  const char *text = md_file_texts_find(&info->notes.texts, a->name);
  if (!text) return false;
  if (a->type != MD_ATTRIBUTE_TEXT) return get_numbers(text, a);
  if (strlen(text) >= (size_t)a->count) return false;
  strcpy(a->data, text);
  return true;
}
