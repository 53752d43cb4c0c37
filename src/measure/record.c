/* What is kept of lattices: its layout in memory and in the file of results. */
#include "base/text.h"
#include "io/arrays.h"
#include "io/attribute.h"
#include "measure/measure.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FORMAT_VERSION = 1, OWN_ATTRIBUTES = 9, TEXTS = 3, ARRAYS = MD_STUDY_FIELDS + TEXTS };
enum { LATTICES_MOST = 1 << 24 }; /* of a file */
static const char group[] = "study";

static const struct {
  const char *name;
  bool cases;  /* one for each action, mass and source */
  bool slices; /* and for each momentum and time slice */
  int numbers; /* of those without cases */
} fields[MD_STUDY_FIELDS] = {
    [MD_STUDY_PLAQUETTE] = {"plaquette", .numbers = 1},
    [MD_STUDY_PLAQUETTE_SS] = {"plaquette_ss", .numbers = 1},
    [MD_STUDY_PLAQUETTE_ST] = {"plaquette_st", .numbers = 1},
    [MD_STUDY_LINK_TRACE] = {"link_trace", .numbers = 1},
    [MD_STUDY_POLYAKOV] = {"polyakov_loop", .numbers = 2},
    [MD_STUDY_SECONDS] = {"seconds", .numbers = 1},
    [MD_STUDY_PION] = {"pion", .cases = true, .slices = true},
    [MD_STUDY_PION_ERROR] = {"pion_error", .cases = true, .slices = true},
    [MD_STUDY_CONDENSATE] = {"condensate", .cases = true},
    [MD_STUDY_CONDENSATE_ERROR] = {"condensate_error", .cases = true},
    [MD_STUDY_RESIDUAL] = {"relative_residual", .cases = true},
    [MD_STUDY_ITERATIONS] = {"iterations", .cases = true},
    [MD_STUDY_MIDPOINT] = {"midpoint", .cases = true},
};

/* Arrays of the file: fields, texts, and behind them the last field where an action has walls. */
static int field_of(int array) {
  return array < MD_STUDY_MIDPOINT ? array : array == ARRAYS - 1 ? MD_STUDY_MIDPOINT : -1;
}
static int count_arrays(const md_study *s) {
  bool walls = false;
  for (int a = 0; a < s->options.actions.count; a++)
    walls = walls || md_action_get((md_action)s->options.actions.value[a])->walls;
  return walls ? ARRAYS : ARRAYS - 1;
}

/* The shape of a field as it is in the file, of `lattices` of them. */
static md_array shape_of(const md_study *s, int field, int lattices) {
  const md_study_options *o = &s->options;
  md_array a = {.name = fields[field].name, .rank = 1, .extent = {lattices}, .axes = "lattice"};
  if (fields[field].cases) {
    a.axes = fields[field].slices ? "lattice,action,mass,source,momentum,t"
                                  : "lattice,action,mass,source";
    a.extent[a.rank++] = o->actions.count;
    a.extent[a.rank++] = o->masses.count;
    a.extent[a.rank++] = o->sources.count;
  } else if (fields[field].numbers > 1) {
    a.axes = "lattice,part";
    a.extent[a.rank++] = fields[field].numbers;
  }
  if (fields[field].slices) {
    a.extent[a.rank++] = md_study_momenta(s);
    a.extent[a.rank++] = s->dims[MD_T];
  }
  return a;
}

md_status md_study_records_lay_out(md_context *context, md_study *s) {
  int64_t record = 0;
  for (int f = 0; f < MD_STUDY_FIELDS; f++) {
    const md_array shape = shape_of(s, f, 1);
    int64_t length = 1;
    for (int d = 1; d < shape.rank; d++) length *= shape.extent[d];
    s->start[f] = (int)record;
    s->length[f] = (int)length;
    record += length;
  }
  s->record = (int)record;
  if (s->options.groups * (record + MD_STUDY_HEAD_MOST) <= INT_MAX) return MD_OK;
  return md_fail(context, MD_INPUT,
                 "results of the lattices that --groups measure at once must be less than 2^31 "
                 "numbers, got %lld times %lld; take fewer groups, momenta, masses or sources",
                 s->options.groups, (long long)record);
}

md_status md_study_records_create(md_context *context, md_study *s) {
  MD_TRY(md_study_records_lay_out(context, s));
  const size_t count = (size_t)s->lattices * (size_t)s->record;
  s->records = malloc(count * sizeof *s->records);
  if (!s->records) return md_fail_memory(context, count * sizeof *s->records, "results");
  for (size_t i = 0; i < count; i++) s->records[i] = NAN;
  return MD_OK;
}

/* What a lattice of the study has of an array, and its bytes. */
static void *part_of(const md_study *s, int lattice, int array, size_t *bytes) {
  md_study_lattice *l = &s->lattice[lattice];
  const struct {
    char *text;
    size_t bytes;
  } texts[TEXTS] = {{l->name, sizeof l->name},
                    {l->sums.file, sizeof l->sums.file},
                    {l->sums.links, sizeof l->sums.links}};
  const int field = field_of(array);
  if (field < 0) {
    *bytes = texts[array - MD_STUDY_MIDPOINT].bytes;
    return texts[array - MD_STUDY_MIDPOINT].text;
  }
  *bytes = (size_t)s->length[field] * sizeof(double);
  return md_study_at(s, lattice, (md_study_field)field);
}

/* Arrays over lattices, as the file has them, one behind the other in *data, which is to be freed.
 */
static md_status create_arrays(md_context *context, const md_study *s, int lattices,
                               md_array array[ARRAYS], void **data) {
  static const char *const texts[TEXTS] = {"lattice", "checksum", "links_checksum"};
  size_t total = 0, bytes[ARRAYS];
  for (int a = 0; a < ARRAYS; a++) {
    part_of(s, 0, a, &bytes[a]);
    total += bytes[a] * (size_t)lattices;
  }
  char *at = *data = calloc(1, total);
  if (!at) return md_fail_memory(context, total, "results");
  for (int a = 0; a < ARRAYS; at += bytes[a++] * (size_t)lattices) {
    const int text = a - MD_STUDY_MIDPOINT;
    array[a] = field_of(a) >= 0 ? shape_of(s, field_of(a), lattices)
                                : (md_array){.name = texts[text],
                                             .rank = 1,
                                             .extent = {lattices},
                                             .text_bytes = (int)bytes[a],
                                             .optional = text == TEXTS - 1,
                                             .axes = "lattice"};
    array[a].data = at;
  }
  return MD_OK;
}

/* Lattice `lattice` of the study to place `place` of the arrays, or back. */
static void move(const md_study *s, int lattice, const md_array array[ARRAYS], int place,
                 bool back) {
  for (int a = 0; a < count_arrays(s); a++) {
    size_t bytes;
    void *here = part_of(s, lattice, a, &bytes);
    void *there = (char *)array[a].data + (size_t)place * bytes;
    memcpy(back ? here : there, back ? there : here, bytes);
  }
}

/* Words of a choice or list, in the order of the results. */
static void join(char *text, size_t bytes, const char *word) {
  md_append(text, bytes, "%s%s", *text ? " " : "", word);
}

/* Attributes of the group: what the arrays are of, and who made them. */
static md_status write_arrays(md_context *context, const md_study *s, const md_array array[ARRAYS],
                              int64_t lattices) {
  const md_study_options *o = &s->options;
  int64_t dims[MD_DIMS], version = FORMAT_VERSION;
  int64_t momenta[MD_MOMENTA_MOST * 3];
  char actions[128] = "", sources[MD_STUDY_SETTINGS_BYTES] = "";
  const md_momenta list = md_momenta_of(&o->momenta);
  for (int d = 0; d < MD_DIMS; d++) dims[d] = s->dims[d];
  for (int q = 0; q < 3 * list.count; q++) momenta[q] = list.n[q / 3][q % 3];
  for (int a = 0; a < o->actions.count; a++)
    join(actions, sizeof actions, md_action_name((md_action)o->actions.value[a]));
  for (int i = 0; i < o->sources.count; i++)
    join(sources, sizeof sources, o->sources.source[i].text);
  md_attribute attributes[OWN_ATTRIBUTES + MD_PROVENANCE_ATTRIBUTES] = {
      {"format_version", MD_ATTRIBUTE_INTEGER, 1, &version},
      {"lattices", MD_ATTRIBUTE_INTEGER, 1, &lattices},
      {"dims", MD_ATTRIBUTE_INTEGER, MD_DIMS, dims},
      {"settings", MD_ATTRIBUTE_TEXT, 0, (char *)o->settings},
      {"actions", MD_ATTRIBUTE_TEXT, 0, actions},
      {"masses", MD_ATTRIBUTE_REAL, o->masses.count, (double *)o->masses.value},
      {"sources", MD_ATTRIBUTE_TEXT, 0, sources},
      {"momenta", MD_ATTRIBUTE_INTEGER, 3 * list.count, momenta},
      {"boundary", MD_ATTRIBUTE_TEXT, 0, (char *)o->run.boundary}};
  md_provenance made;
  md_provenance_of_run(context, &made);
  made.tolerance = o->tolerance;
  const int count = md_provenance_append(&made, attributes, OWN_ATTRIBUTES);
  const bool first = !s->saved && !o->resume && !o->force;
  return md_arrays_write(context, o->output, first, group, array, count_arrays(s), attributes,
                         count);
}

md_status md_study_save(md_context *context, md_study *s) {
  int done = 0;
  md_array array[ARRAYS] = {0};
  void *data = NULL;
  const bool writes = context->rank == 0;
  for (int k = 0; k < s->lattices; k++) done += md_study_has(s, k);
  if (done == 0) {
    if (s->stale)
      md_warn(context,
              "%s still has the results of links that were replaced: there are no others to write; "
              "go on with --resume --force, or remove it",
              s->options.output);
    return MD_OK;
  }
  md_status status =
      md_agree(context, writes ? create_arrays(context, s, done, array, &data) : MD_OK);
  for (int k = 0, place = 0; k < s->lattices && writes && status == MD_OK; k++)
    if (md_study_has(s, k)) move(s, k, array, place++, false);
  if (status == MD_OK) status = write_arrays(context, s, array, done);
  s->saved = s->saved || status == MD_OK;
  free(data);
  return status;
}

/* Settings from the key on whose values are the first to differ from those of `other`. */
static const char *from_key(const char *settings, const char *other) {
  static const char *const keys[] = {" vectors ", " tol ",     " actions ",
                                     " masses ",  " sources ", " momenta "};
  const char *from = settings, *end = settings;
  while (*end && *end == *other++) end++;
  for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
    const char *at = strstr(settings, keys[k]);
    if (at && at + strlen(keys[k]) <= end) from = at + 1;
  }
  return from;
}

/* What the file says of itself is what this study asks for. */
static md_status check_file(md_context *context, const md_study *s, int64_t *lattices) {
  const char *path = s->options.output;
  int64_t dims[MD_DIMS], version;
  char settings[MD_STUDY_SETTINGS_BYTES];
  const md_attribute attributes[] = {{"format_version", MD_ATTRIBUTE_INTEGER, 1, &version},
                                     {"lattices", MD_ATTRIBUTE_INTEGER, 1, lattices},
                                     {"dims", MD_ATTRIBUTE_INTEGER, MD_DIMS, dims},
                                     {"settings", MD_ATTRIBUTE_TEXT, sizeof settings, settings}};
  MD_TRY(md_arrays_read(context, path, group, NULL, 0, attributes,
                        sizeof attributes / sizeof *attributes));
  if (version != FORMAT_VERSION)
    return md_fail(context, MD_INPUT, "%s must be a study of format %d, got format %lld", path,
                   FORMAT_VERSION, (long long)version);
  if (*lattices < 1 || *lattices > LATTICES_MOST)
    return md_fail(context, MD_INPUT, "%s: attribute lattices must be within 1..%d, got %lld", path,
                   LATTICES_MOST, (long long)*lattices);
  for (int d = 0; d < MD_DIMS; d++)
    if (dims[d] != s->dims[d])
      return md_fail(context, MD_INPUT,
                     "%s has results of %lldx%lldx%lldx%lld lattices, those of this study are "
                     "%dx%dx%dx%d; give another --output",
                     path, (long long)dims[0], (long long)dims[1], (long long)dims[2],
                     (long long)dims[3], s->dims[0], s->dims[1], s->dims[2], s->dims[3]);
  if (strcmp(settings, s->options.settings) == 0) return MD_OK;
  return md_fail(context, MD_INPUT,
                 "%s must belong to this study, its settings have '%.200s', this study's '%.200s'; "
                 "give another --output, or --force without --resume",
                 path, from_key(settings, s->options.settings),
                 from_key(s->options.settings, settings));
}

/* Numbers of a field from place `at` on are finite and at least `least`. */
static md_status check_numbers(md_context *context, const md_study *s, int lattice,
                               md_study_field field, int at, int count, double least) {
  const double *values = md_study_at(s, lattice, field) + at;
  for (int i = 0; i < count; i++)
    if (!(values[i] >= least && isfinite(values[i])))
      return md_fail(context, MD_INPUT,
                     "%s: %s of %s must be finite%s, got %g; give another --output, or --force "
                     "without --resume",
                     s->options.output, fields[field].name, s->lattice[lattice].name,
                     isfinite(least) ? " and not negative" : "", values[i]);
  return MD_OK;
}

/* What a source gives of a lattice; all else of it is NaN (propagate.c). */
static md_status check_source(md_context *context, const md_study *s, int lattice, int place,
                              const md_source *from) {
  const md_momenta momenta = md_momenta_of(&s->options.momenta);
  const int times = s->dims[MD_T];
  MD_TRY(check_numbers(context, s, lattice, MD_STUDY_RESIDUAL, place, 1, 0.0));
  MD_TRY(check_numbers(context, s, lattice, MD_STUDY_ITERATIONS, place, 1, 0.0));
  if (md_source_is_noise(from))
    return check_numbers(context, s, lattice, MD_STUDY_CONDENSATE, place, 1, -INFINITY);
  for (int q = 0; q < momenta.count; q++) {
    const int *n = momenta.n[q], at = (place * momenta.count + q) * times;
    if ((n[0] || n[1] || n[2]) && !md_source_is_points(from)) continue;
    MD_TRY(check_numbers(context, s, lattice, MD_STUDY_PION, at, times, -INFINITY));
  }
  return MD_OK;
}

/* Results that a lattice may have. */
static md_status check_results(md_context *context, const md_study *s, int lattice) {
  const md_study_options *o = &s->options;
  for (int f = MD_STUDY_PLAQUETTE; f <= MD_STUDY_POLYAKOV; f++)
    MD_TRY(check_numbers(context, s, lattice, (md_study_field)f, 0, s->length[f], -INFINITY));
  for (int a = 0; a < o->actions.count; a++)
    for (int m = 0; m < o->masses.count; m++)
      for (int i = 0; i < o->sources.count; i++)
        MD_TRY(check_source(context, s, lattice, md_study_case(s, a, m, i), &o->sources.source[i]));
  return MD_OK;
}

md_status md_study_load(md_context *context, md_study *s) {
  int64_t lattices = 0;
  md_array array[ARRAYS] = {0};
  void *data = NULL;
  int there = context->rank == 0 && access(s->options.output, F_OK) == 0;
  md_broadcast(context, &there, sizeof there);
  if (!there) return MD_OK;
  MD_TRY(check_file(context, s, &lattices));
  md_status status = md_agree(context, create_arrays(context, s, (int)lattices, array, &data));
  if (status == MD_OK)
    status = md_arrays_read(context, s->options.output, group, array, count_arrays(s), NULL, 0);
  const char *name = array[MD_STUDY_MIDPOINT].data;
  for (int place = 0, before = 0; place < lattices && status == MD_OK;
       place++, name += MD_STUDY_NAME_BYTES) {
    int k = 0;
    while (k < s->lattices && strcmp(s->lattice[k].name, name) != 0) k++;
    if (k == s->lattices) {
      status = md_fail(context, MD_INPUT,
                       "%s has results of %s, which is not in --lattices; list it, or give another "
                       "--output",
                       s->options.output, name);
      break;
    }
    s->stale = s->stale || k < before;
    before = k;
    move(s, k, array, place, true);
    status = check_results(context, s, k);
    if (s->lattice[k].state == MD_LATTICE_SKIPPED)
      md_warn(context, "%s keeps the results that %s has of it", name, s->options.output);
    s->lattice[k].state = MD_LATTICE_RESUMED;
  }
  free(data);
  return status;
}
