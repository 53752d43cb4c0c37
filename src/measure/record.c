/* What is kept of lattices: its layout in memory and in the file of results. */
#include "io/arrays.h"
#include "io/attribute.h"
#include "measure/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FORMAT_VERSION = 1, OWN_ATTRIBUTES = 9, TEXTS = 3, ARRAYS = MD_STUDY_FIELDS + TEXTS };
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
};

/* The shape of a field as it is in the file, of `lattices` of them. */
static md_array shape_of(const md_study *s, int field, int lattices) {
  const md_study_options *o = &s->options;
  md_array a = {.name = fields[field].name, .rank = 1, .extent = {lattices}};
  if (fields[field].cases) {
    a.extent[a.rank++] = o->actions.count;
    a.extent[a.rank++] = o->masses.count;
    a.extent[a.rank++] = o->sources.count;
  } else if (fields[field].numbers > 1)
    a.extent[a.rank++] = fields[field].numbers;
  if (fields[field].slices) {
    a.extent[a.rank++] = md_study_momenta(s);
    a.extent[a.rank++] = s->dims[MD_T];
  }
  return a;
}

md_status md_study_records_create(md_context *context, md_study *s) {
  s->record = 0;
  for (int f = 0; f < MD_STUDY_FIELDS; f++) {
    const md_array shape = shape_of(s, f, 1);
    s->start[f] = s->record;
    s->length[f] = 1;
    for (int d = 1; d < shape.rank; d++) s->length[f] *= (int)shape.extent[d];
    s->record += s->length[f];
  }
  const size_t count = (size_t)s->lattices * (size_t)s->record;
  s->records = malloc(count * sizeof *s->records);
  if (!s->records) return md_fail_memory(context, count * sizeof *s->records, "results");
  for (size_t i = 0; i < count; i++) s->records[i] = NAN;
  return MD_OK;
}

/* Arrays over lattices, as the file has them. */
typedef struct table {
  int lattices;
  char (*name)[MD_STUDY_NAME_BYTES], (*checksum)[MD_STUDY_CHECKSUM];
  char (*links)[MD_LATTICE_IDENTITY];
  double *values; /* field after field */
  md_array array[ARRAYS];
} table;

static void table_free(table *t) {
  free(t->name);
  free(t->checksum);
  free(t->links);
  free(t->values);
}

static double *field_of(const md_study *s, const table *t, int field) {
  return t->values + (size_t)s->start[field] * (size_t)t->lattices;
}

static md_status table_create(md_context *context, const md_study *s, int lattices, table *t) {
  const size_t n = (size_t)lattices;
  *t = (table){.lattices = lattices,
               .name = calloc(n, sizeof *t->name),
               .checksum = calloc(n, sizeof *t->checksum),
               .links = calloc(n, sizeof *t->links),
               .values = calloc(n * (size_t)s->record, sizeof *t->values)};
  if (!t->name || !t->checksum || !t->links || !t->values)
    return md_fail_memory(context, n * (size_t)s->record * sizeof *t->values, "results");
  for (int f = 0; f < MD_STUDY_FIELDS; f++) {
    t->array[f] = shape_of(s, f, lattices);
    t->array[f].data = field_of(s, t, f);
  }
  const md_array texts[TEXTS] = {
      {.name = "lattice", .text_bytes = sizeof *t->name, .data = t->name},
      {.name = "checksum", .text_bytes = sizeof *t->checksum, .data = t->checksum},
      {.name = "links_checksum",
       .text_bytes = sizeof *t->links,
       .data = t->links,
       .optional = true}};
  for (int i = 0; i < TEXTS; i++) {
    md_array *array = &t->array[MD_STUDY_FIELDS + i];
    *array = texts[i];
    array->rank = 1;
    array->extent[0] = lattices;
  }
  return MD_OK;
}

/* Lattice `from` of one to place `to` of the other, or back. */
static void move(const md_study *s, int lattice, const table *t, int place, bool back) {
  for (int f = 0; f < MD_STUDY_FIELDS; f++) {
    double *here = md_study_at(s, lattice, (md_study_field)f);
    double *there = field_of(s, t, f) + (size_t)place * (size_t)s->length[f];
    memcpy(back ? here : there, back ? there : here, (size_t)s->length[f] * sizeof *here);
  }
  md_study_lattice *l = &s->lattice[lattice];
  if (!back) memcpy(t->name[place], l->name, sizeof l->name);
  memcpy(back ? l->sums.file : t->checksum[place], back ? t->checksum[place] : l->sums.file,
         sizeof l->sums.file);
  memcpy(back ? l->sums.links : t->links[place], back ? t->links[place] : l->sums.links,
         sizeof l->sums.links);
}

/* Words of a choice or list, in the order of the results. */
static void join(char *text, size_t bytes, const char *word) {
  const size_t used = strlen(text);
  snprintf(text + used, bytes - used, "%s%s", used ? " " : "", word);
}

/* Attributes of the group: what the arrays are of, and who made them. */
static md_status write_table(md_context *context, const md_study *s, const table *t) {
  const md_study_options *o = &s->options;
  int64_t dims[MD_DIMS], version = FORMAT_VERSION, lattices = t->lattices;
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
      {"boundary", MD_ATTRIBUTE_TEXT, 0, (char *)o->boundary}};
  md_provenance made;
  md_provenance_of_run(context, &made);
  made.tolerance = o->tolerance;
  const int count = md_provenance_append(&made, attributes, OWN_ATTRIBUTES);
  const bool first = !s->saved && !o->resume && !o->force;
  return md_arrays_write(context, o->output, first, group, t->array, ARRAYS, attributes, count);
}

md_status md_study_save(md_context *context, md_study *s) {
  int done = 0;
  table t;
  for (int k = 0; k < s->lattices; k++) done += md_study_has(s, k);
  if (done == 0) return MD_OK;
  md_status status = md_agree(context, table_create(context, s, done, &t));
  for (int k = 0, place = 0; k < s->lattices && status == MD_OK; k++)
    if (md_study_has(s, k)) move(s, k, &t, place++, false);
  if (status == MD_OK) status = write_table(context, s, &t);
  s->saved = s->saved || status == MD_OK;
  table_free(&t);
  return status;
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
  if (version != FORMAT_VERSION || *lattices < 1 || *lattices > 1 << 24)
    return md_fail(context, MD_INPUT, "%s must be a study of format %d, got format %lld", path,
                   FORMAT_VERSION, (long long)version);
  for (int d = 0; d < MD_DIMS; d++)
    if (dims[d] != s->dims[d])
      return md_fail(context, MD_INPUT,
                     "%s has results of %lldx%lldx%lldx%lld lattices, those of this study are "
                     "%dx%dx%dx%d; give another --output",
                     path, (long long)dims[0], (long long)dims[1], (long long)dims[2],
                     (long long)dims[3], s->dims[0], s->dims[1], s->dims[2], s->dims[3]);
  if (strcmp(settings, s->options.settings) == 0) return MD_OK;
  return md_fail(context, MD_INPUT,
                 "%s must belong to this study, its settings are '%s'; give another --output, or "
                 "--force without --resume",
                 path, settings);
}

md_status md_study_load(md_context *context, md_study *s) {
  int64_t lattices = 0;
  table t;
  int there = context->rank == 0 && access(s->options.output, F_OK) == 0;
  md_broadcast(context, &there, sizeof there);
  if (!there) return MD_OK;
  MD_TRY(check_file(context, s, &lattices));
  md_status status = md_agree(context, table_create(context, s, (int)lattices, &t));
  if (status == MD_OK)
    status = md_arrays_read(context, s->options.output, group, t.array, ARRAYS, NULL, 0);
  for (int place = 0; place < lattices && status == MD_OK; place++) {
    int k = 0;
    while (k < s->lattices && strcmp(s->lattice[k].name, t.name[place]) != 0) k++;
    if (k == s->lattices) {
      status = md_fail(context, MD_INPUT,
                       "%s has results of %s, which is not in --lattices; list it, or give another "
                       "--output",
                       s->options.output, t.name[place]);
      break;
    }
    move(s, k, &t, place, true);
    s->lattice[k].state = MD_LATTICE_RESUMED;
  }
  table_free(&t);
  return status;
}
