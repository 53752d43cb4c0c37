#include "io/propagator.h"
#include "solve/solve.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a state belongs to, in words that must be equal one by one: whatever changes a bit of an
 * iteration, and what the state's solution is added to. */
enum { KEYS = 14, PARAMETERS_BYTES = 160, WORD_BYTES = 8192 };

typedef struct key {
  md_attribute word[KEYS]; /* texts of this solve */
  char mass[32], rhs[16], words[MD_PHYSICS_WORDS_BYTES], parameters[PARAMETERS_BYTES];
} key;

static const char *file_of(const char *path) {
  const char *slash = path ? strrchr(path, '/') : NULL;
  return !path ? "none" : slash ? slash + 1 : path;
}

/* The words point into the run and into *k. */
static void make_key(const md_solve_run *run, key *k) {
  const md_solve_options *o = &run->options;
  const md_run_options *r = &o->run;
  snprintf(k->mass, sizeof k->mass, "%.17g", o->mass);
  snprintf(k->rhs, sizeof k->rhs, "%lld", o->rhs);
  md_physics_words(&r->physics, &r->request, k->words, sizeof k->words);
  snprintf(k->parameters, sizeof k->parameters, "u0 %.17g, naik-epsilon %.17g, imaginary mu %.17g",
           r->physics.u0, r->physics.naik_epsilon, r->request.twist.imaginary_mu);
  const char *const words[KEYS][2] = {
      {"links", run->links.checksum},
      {"action", k->words},
      {"parameters", k->parameters},
      {"boundary", r->boundary},
      {"mass", k->mass},
      {"source", o->source.text},
      {"rhs", k->rhs},
      {"precision", r->precision},
      {"inner", r->inner},
      {"reconstruct", r->reconstruct},
      {"backend", md_solve_operator(run)->backend->name},
      {"packing", md_packing_name(md_solve_operator(run)->request.packing)},
      {"deflate", file_of(o->deflate)},
      {"guess", file_of(o->guess)}};
  for (int w = 0; w < KEYS; w++)
    k->word[w] = (md_attribute){words[w][0], MD_ATTRIBUTE_TEXT, 0, (void *)(uintptr_t)words[w][1]};
}

/* Names the first word that differs, and long ones from near the place where they do. */
static md_status check_key(md_context *context, const char *path, const key *k,
                           const md_attribute read[KEYS]) {
  for (int w = 0; w < KEYS; w++) {
    const char *there = read[w].data, *here = k->word[w].data;
    size_t same = 0;
    while (there[same] && there[same] == here[same]) same++;
    const size_t from = same > 40 ? same - 20 : 0;
    if (there[same] != here[same])
      return md_fail(context, MD_INPUT,
                     "checkpoint %.300s must belong to this solve: %s %s%.60s there, %s%.60s here",
                     path, k->word[w].name, from ? "..." : "", there + from, from ? "..." : "",
                     here + from);
  }
  return MD_OK;
}

/* The counts of a state, on which the length of the rest depends. */
enum { ITERATION, CARRIES, ROUND, UPDATES, RESTARTS, PROJECTIONS, MORE, NUMBER_COUNT, COUNTS };

static void add_counts(int64_t count[COUNTS], md_attribute *attributes) {
  static const char *const names[COUNTS] = {"iteration",   "carries",     "round",
                                            "updates",     "restarts",    "projections",
                                            "more_fields", "number_count"};
  for (int i = 0; i < COUNTS; i++)
    attributes[i] = (md_attribute){names[i], MD_ATTRIBUTE_INTEGER, 1, &count[i]};
}

static md_status check_counts(md_context *context, const char *path, const int64_t count[COUNTS],
                              const md_cg_state *s) {
  for (int i = 0; i < COUNTS; i++)
    if (count[i] < 0 || count[i] >= INT32_MAX)
      return md_fail(context, MD_INPUT, "checkpoint %s has counts that cannot be, such as %lld",
                     path, (long long)count[i]);
  if (count[CARRIES] > (s->carried != NULL))
    return md_fail(context, MD_INPUT,
                   "checkpoint %s carries a residual of iterations on a GPU, which these are not",
                   path);
  if (count[NUMBER_COUNT] != s->more.numbers || count[MORE] > s->more.most)
    return md_fail(context, MD_INPUT,
                   "checkpoint %s has %lld fields and %lld numbers of the inner solver, needed are "
                   "at most %d and %d: on a lattice as small as this --tol decides how it works, "
                   "give the one of that solve",
                   path, (long long)count[MORE], (long long)count[NUMBER_COUNT], s->more.most,
                   s->more.numbers);
  if (count[ITERATION] >= s->most)
    return md_fail(context, MD_INPUT,
                   "checkpoint %s is at iteration %lld; raise --max-iter above it", path,
                   (long long)count[ITERATION]);
  return MD_OK;
}

/* The numbers of a state, after its counts; returns how many attributes that is. */
enum { NUMBERS = 8 };

static int add_numbers(md_cg_state *s, int64_t *rhs_iterations, int iteration, bool carries,
                       md_attribute *attributes) {
  const int n = s->n_rhs;
  const md_attribute list[] = {
      {"rhs_iterations", MD_ATTRIBUTE_INTEGER, n, rhs_iterations},
      {"r_norm2", MD_ATTRIBUTE_REAL, n, s->r_norm2},
      {"residual_history", MD_ATTRIBUTE_REAL, iteration + 1, s->result.history},
      {"tolerance", MD_ATTRIBUTE_REAL, 1, &s->tolerance},
      {"round_before", MD_ATTRIBUTE_REAL, 1, &s->round_before}};
  int count = sizeof list / sizeof *list;
  memcpy(attributes, list, sizeof list);
  if (carries)
    attributes[count++] = (md_attribute){"carried", MD_ATTRIBUTE_REAL, 3 * n, s->carried};
  if (s->more.numbers > 0)
    attributes[count++] =
        (md_attribute){"numbers", MD_ATTRIBUTE_REAL, s->more.numbers, s->more.number};
  return count;
}

/* The fields of a state and their names; returns their number. */
enum { FIELDS = 5 + MD_CG_MORE_FIELDS, NAME_BYTES = 16 };

static int list_fields(md_cg_state *s, md_named_field fields[FIELDS],
                       char names[FIELDS][NAME_BYTES]) {
  int count = 0;
  fields[count++] = (md_named_field){"x", &s->x};
  fields[count++] = (md_named_field){"r", &s->r};
  fields[count++] = (md_named_field){"p", &s->p};
  if (s->carries) fields[count++] = (md_named_field){"before", &s->before};
  if (s->round > 0) fields[count++] = (md_named_field){"solved", s->solved};
  for (int i = 0; i < s->more.fields; i++, count++) {
    snprintf(names[count], NAME_BYTES, "more%d", i);
    fields[count] = (md_named_field){names[count], s->more.field[i]};
  }
  return count;
}

static md_status create_like(md_context *context, const md_field *field, md_precision precision,
                             md_field *copy) {
  const md_field_shape shape = {precision, MD_HOST, field->components, field->n_rhs, true, false};
  return md_field_create(context, field->geometry, &shape, field->parity, copy);
}

md_status md_solve_checkpoint_save(md_context *context, const md_solve_run *run,
                                   const md_cg_state *state) {
  md_cg_state s = *state; /* descriptors, not the data */
  md_named_field fields[FIELDS];
  char names[FIELDS][NAME_BYTES];
  md_field host[FIELDS] = {0};
  int64_t rhs_iterations[MD_MAX_RHS];
  md_attribute attributes[KEYS + COUNTS + NUMBERS];
  key k;
  int64_t counts[COUNTS] = {s.iteration,      s.carries,         s.round,
                            s.result.updates, s.result.restarts, s.result.projections,
                            s.more.fields,    s.more.numbers};
  const int count = list_fields(&s, fields, names);
  for (int r = 0; r < s.n_rhs; r++) rhs_iterations[r] = s.result.rhs_iterations[r];
  md_status status = MD_OK;
  for (int f = 0; f < count && status == MD_OK; f++) {
    const md_field *from = fields[f].field;
    if (from->space == MD_HOST) continue;
    status = create_like(context, from, from->precision, &host[f]);
    if (status == MD_OK) status = md_field_convert(context, &host[f], from);
    fields[f].field = &host[f];
  }
  status = md_agree(context, status);
  if (status == MD_OK) {
    make_key(run, &k);
    memcpy(attributes, k.word, sizeof k.word);
    add_counts(counts, attributes + KEYS);
    attributes[KEYS + COUNTS] =
        (md_attribute){"start_norm2", MD_ATTRIBUTE_REAL, s.n_rhs, s.start_norm2};
    const int numbers =
        add_numbers(&s, rhs_iterations, s.iteration, s.carries, attributes + KEYS + COUNTS + 1);
    status = md_checkpoint_write(context, run->options.checkpoint, fields, count, attributes,
                                 KEYS + COUNTS + 1 + numbers);
  }
  for (int f = 0; f < count; f++) md_field_destroy(&host[f]);
  return status;
}

/* Key and counts, which are compared and taken over. */
static md_status load_counts(md_context *context, const md_solve_run *run, md_cg_state *s) {
  const char *path = run->options.checkpoint;
  md_attribute attributes[KEYS + COUNTS];
  key k;
  int64_t counts[COUNTS];
  size_t bytes = WORD_BYTES;
  make_key(run, &k);
  for (int w = 0; w < KEYS; w++)
    if (strlen(k.word[w].data) >= bytes) bytes = strlen(k.word[w].data) + 1;
  char *there = calloc(KEYS, bytes);
  md_status status =
      md_agree(context, there ? MD_OK : md_fail_memory(context, KEYS * bytes, "checkpoint"));
  for (int w = 0; there && w < KEYS; w++)
    attributes[w] =
        (md_attribute){k.word[w].name, MD_ATTRIBUTE_TEXT, (int)bytes, there + (size_t)w * bytes};
  add_counts(counts, attributes + KEYS);
  if (status == MD_OK)
    status = md_checkpoint_read(context, path, s->x.geometry, NULL, 0, attributes, KEYS + COUNTS);
  if (status == MD_OK) status = check_key(context, path, &k, attributes);
  if (status == MD_OK) status = check_counts(context, path, counts, s);
  free(there);
  if (status != MD_OK) return status;
  s->iteration = (int)counts[ITERATION];
  s->carries = counts[CARRIES] == 1;
  s->round = (int)counts[ROUND];
  s->result.updates = (int)counts[UPDATES];
  s->result.restarts = (int)counts[RESTARTS];
  s->result.projections = (int)counts[PROJECTIONS];
  s->more.fields = (int)counts[MORE];
  return MD_OK;
}

/* The residual that the solve began with says more of modes and guess than their files' names. */
static md_status check_start(md_context *context, const char *path, const md_cg_state *s,
                             const double *there) {
  for (int r = 0; r < s->n_rhs; r++)
    if (!(fabs(there[r] - s->start_norm2[r]) <= 1e-10 * s->start_norm2[r]))
      return md_fail(context, MD_INPUT,
                     "checkpoint %s must belong to this solve: it began with |r|^2 = %.9g of "
                     "right-hand side %d there, %.9g here; give the same modes and guess",
                     path, there[r], r, s->start_norm2[r]);
  return MD_OK;
}

static md_status load_numbers(md_context *context, const char *path, md_cg_state *s) {
  double start_norm2[MD_MAX_RHS];
  int64_t rhs_iterations[MD_MAX_RHS];
  md_attribute attributes[1 + NUMBERS] = {
      {"start_norm2", MD_ATTRIBUTE_REAL, s->n_rhs, start_norm2}};
  const int count = 1 + add_numbers(s, rhs_iterations, s->iteration, s->carries, attributes + 1);
  MD_TRY(md_checkpoint_read(context, path, s->x.geometry, NULL, 0, attributes, count));
  MD_TRY(check_start(context, path, s, start_norm2));
  for (int r = 0; r < s->n_rhs; r++) s->result.rhs_iterations[r] = (int)rhs_iterations[r];
  for (int i = 0; i < s->more.numbers; i++)
    if (!isfinite(s->more.number[i]))
      return md_fail(context, MD_INPUT, "checkpoint %s must have finite numbers, got %g", path,
                     s->more.number[i]);
  return MD_OK;
}

/* One field, by way of the host in double. */
static md_status load_field(md_context *context, const char *path, const md_named_field *named) {
  md_field *field = named->field, wide = {0}, narrow = {0};
  const bool away = field->space == MD_DEVICE;
  const md_named_field in = {named->name, &wide};
  md_status status = create_like(context, field, MD_DOUBLE, &wide);
  if (status == MD_OK && away) status = create_like(context, field, field->precision, &narrow);
  status = md_agree(context, status);
  if (status == MD_OK) status = md_checkpoint_read(context, path, field->geometry, &in, 1, NULL, 0);
  if (status == MD_OK) status = md_field_restore(context, away ? &narrow : field, &wide);
  if (status == MD_OK && away) status = md_field_convert(context, field, &narrow);
  md_field_destroy(&wide);
  md_field_destroy(&narrow);
  return md_agree(context, status);
}

md_status md_solve_checkpoint_load(md_context *context, const md_solve_run *run, md_cg_state *s) {
  const char *path = run->options.checkpoint;
  md_named_field fields[FIELDS];
  char names[FIELDS][NAME_BYTES];
  MD_TRY(load_counts(context, run, s));
  MD_TRY(load_numbers(context, path, s));
  const int count = list_fields(s, fields, names);
  for (int f = 0; f < count; f++) MD_TRY(load_field(context, path, &fields[f]));
  return MD_OK;
}
