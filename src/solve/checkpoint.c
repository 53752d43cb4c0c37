#include "base/text.h"
#include "io/propagator.h"
#include "lattice/fields/linear.h"
#include "solve/solve.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a state belongs to, in words that must be equal one by one: whatever changes a bit of an
 * iteration, and what the state's solution is added to. */
enum { KEYS = 15, PARAMETERS_BYTES = 256, WORD_BYTES = 8192 };

typedef struct key {
  md_attribute word[KEYS]; /* texts of this solve */
  char mass[32], rhs[16], at_once[16], words[MD_PHYSICS_WORDS_BYTES], parameters[PARAMETERS_BYTES];
} key;

static const char *file_of(const char *path) {
  return path ? md_base_of(path) : "none";
}

/* The words point into the run and into *k. */
static void make_key(const md_solve_run *run, key *k) {
  const md_solve_options *o = &run->options;
  const md_run_options *r = &o->run;
  snprintf(k->mass, sizeof k->mass, "%.17g", o->mass);
  snprintf(k->rhs, sizeof k->rhs, "%lld", o->rhs);
  snprintf(k->at_once, sizeof k->at_once, "%d",
           md_solver_at_once(md_solve_operator(run), (int)o->rhs));
  md_physics_words(&r->physics, &r->request, k->words, sizeof k->words);
  snprintf(k->parameters, sizeof k->parameters, "u0 %.17g, naik-epsilon %.17g, imaginary mu %.17g",
           r->physics.u0, r->physics.naik_epsilon, r->request.twist.imaginary_mu);
  if (md_action_get(r->request.action)->walls)
    md_append(k->parameters, sizeof k->parameters, ", M5 %.17g, b5 %.17g, c5 %.17g",
              r->request.walls.height, r->request.walls.b5, r->request.walls.c5);
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
      {"guess", file_of(o->guess)},
      {"rhs_block", k->at_once}};
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
enum {
  ITERATION,
  CARRIES,
  ROUND,
  UPDATES,
  RESTARTS,
  PROJECTIONS,
  MORE,
  NUMBER_COUNT,
  FIRST, /* right-hand side of this part; what the parts before it counted */
  ITERATIONS_BEFORE,
  UPDATES_BEFORE,
  RESTARTS_BEFORE,
  PROJECTIONS_BEFORE,
  COUNTS
};

static void add_counts(int64_t count[COUNTS], md_attribute *attributes) {
  static const char *const names[COUNTS] = {
      "iteration",         "carries",           "round",          "updates",
      "restarts",          "projections",       "more_fields",    "number_count",
      "first_rhs",         "iterations_before", "updates_before", "restarts_before",
      "projections_before"};
  for (int i = 0; i < COUNTS; i++)
    attributes[i] = (md_attribute){names[i], MD_ATTRIBUTE_INTEGER, 1, &count[i]};
}

static md_status check_counts(md_context *context, const md_solve_run *run,
                              const int64_t count[COUNTS]) {
  const md_solve_options *o = &run->options;
  const int at_once = md_solver_at_once(md_solve_operator(run), (int)o->rhs);
  for (int i = 0; i < COUNTS; i++)
    if (count[i] < 0 || count[i] >= INT32_MAX)
      return md_fail(context, MD_INPUT, "checkpoint %s has counts that cannot be, such as %lld",
                     o->checkpoint, (long long)count[i]);
  if (count[FIRST] >= o->rhs || count[FIRST] % at_once != 0)
    return md_fail(context, MD_INPUT,
                   "checkpoint %s must be of a part of %d right-hand sides of %lld, got one from "
                   "%lld on",
                   o->checkpoint, at_once, o->rhs, (long long)count[FIRST]);
  const int64_t iterations =
      count[ITERATION] < count[ITERATIONS_BEFORE] ? count[ITERATIONS_BEFORE] : count[ITERATION] + 1;
  if (iterations > o->max_iterations)
    return md_fail(context, MD_INPUT,
                   "checkpoint %s is at iteration %lld; raise --max-iter above it", o->checkpoint,
                   (long long)iterations - 1);
  return MD_OK;
}

/* The same of what depends on the state that is to take them. */
static md_status check_room(md_context *context, const char *path, const int64_t count[COUNTS],
                            const md_cg_state *s) {
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

/* The numbers of the parts before a state's own, after the state's; returns how many attributes
 * that is. */
enum { PARTS = 4 };

static int add_parts(const md_solver_parts *parts, int64_t rhs_iterations[MD_MAX_RHS],
                     double products[MD_MAX_RHS], md_attribute *attributes) {
  if (!parts || parts->first == 0) return 0;
  const md_solver_result *before = parts->before;
  const md_attribute list[PARTS] = {
      {"rhs_iterations_before", MD_ATTRIBUTE_INTEGER, parts->first, rhs_iterations},
      {"residuals_before", MD_ATTRIBUTE_REAL, parts->first, before->residuals},
      {"products_before", MD_ATTRIBUTE_REAL, parts->first, products},
      {"residual_history_before", MD_ATTRIBUTE_REAL, before->iterations + 1, before->history}};
  memcpy(attributes, list, sizeof list);
  return PARTS;
}

/* The fields of a state and their names; returns their number. Solutions of the parts before it
 * stand in the run's. */
enum { FIELDS = 5 + 2 * MD_PARITIES + MD_CG_MORE_FIELDS, NAME_BYTES = 16 };
_Static_assert((int)FIELDS <= (int)MD_CHECKPOINT_FIELDS, "a file holds every state");

static int list_solutions(const md_solve_run *run, md_named_field fields[2 * MD_PARITIES]) {
  static const char *const names[2][MD_PARITIES] = {{"solution_even", "solution_odd"},
                                                    {"midpoint_even", "midpoint_odd"}};
  int count = 0;
  for (int p = 0; p < MD_PARITIES; p++)
    fields[count++] = (md_named_field){names[0][p], (md_field *)(uintptr_t)&run->of.x[p]};
  for (int p = 0; p < MD_PARITIES && run->midpoint[0].components; p++)
    fields[count++] = (md_named_field){names[1][p], (md_field *)(uintptr_t)&run->midpoint[p]};
  return count;
}

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

/* Re <b, x> of every right-hand side: of a solution that belongs to its source, the same bits on
 * all rank grids. Collective. */
static md_status multiply_sources(md_context *context, const md_solve_run *run,
                                  double products[MD_MAX_RHS]) {
  double part[MD_MAX_RHS];
  for (int r = 0; r < MD_MAX_RHS; r++) products[r] = 0.0;
  for (int p = 0; p < MD_PARITIES; p++) {
    MD_TRY(md_linear_dot(context, &run->of.b[p], &run->of.x[p], NULL, part));
    for (int r = 0; r < run->of.x[p].n_rhs; r++) products[r] += part[r];
  }
  return MD_OK;
}

static md_status create_like(md_context *context, const md_field *field, md_precision precision,
                             md_field *copy) {
  const md_field_shape shape = {precision, MD_HOST, field->components, field->n_rhs, true, false};
  return md_field_create(context, field->geometry, &shape, field->parity, copy);
}

md_status md_solve_checkpoint_place(md_context *context, const md_solve_options *o) {
  md_lattice_info info;
  bool there;
  if (!o->checkpoint || o->resume) return MD_OK;
  const md_status status = md_lattice_describe_old(context, o->checkpoint, &info, &there);
  const bool state = status == MD_OK && strcmp(info.header.content, "checkpoint") == 0;
  md_lattice_info_destroy(&info);
  if (!there || state) return MD_OK;
  return md_fail(context, MD_INPUT,
                 "--checkpoint replaces the state of a solve alone, but %s holds other data; give "
                 "another name",
                 o->checkpoint);
}

md_status md_solve_checkpoint_save(md_context *context, const md_solve_run *run,
                                   const md_cg_state *state) {
  md_cg_state s = *state; /* descriptors, not the data */
  md_named_field fields[FIELDS];
  char names[FIELDS][NAME_BYTES];
  md_field host[FIELDS] = {0};
  int64_t rhs_iterations[MD_MAX_RHS], rhs_before[MD_MAX_RHS];
  double products[MD_MAX_RHS];
  md_attribute attributes[KEYS + COUNTS + NUMBERS + PARTS];
  key k;
  static const md_solver_result none = {0};
  const int first = s.parts ? s.parts->first : 0;
  const md_solver_result *before = first > 0 ? s.parts->before : &none;
  int64_t counts[COUNTS] = {s.iteration,        s.carries,         s.round,
                            s.result.updates,   s.result.restarts, s.result.projections,
                            s.more.fields,      s.more.numbers,    first,
                            before->iterations, before->updates,   before->restarts,
                            before->projections};
  int count = list_fields(&s, fields, names);
  if (first > 0) count += list_solutions(run, fields + count);
  for (int r = 0; r < s.n_rhs; r++) rhs_iterations[r] = s.result.rhs_iterations[r];
  for (int r = 0; r < first; r++) rhs_before[r] = before->rhs_iterations[r];
  md_status status = first > 0 ? multiply_sources(context, run, products) : MD_OK;
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
    int numbers =
        add_numbers(&s, rhs_iterations, s.iteration, s.carries, attributes + KEYS + COUNTS + 1);
    numbers += add_parts(s.parts, rhs_before, products, attributes + KEYS + COUNTS + 1 + numbers);
    status = md_checkpoint_write(context, run->options.checkpoint, fields, count, attributes,
                                 KEYS + COUNTS + 1 + numbers);
  }
  for (int f = 0; f < count; f++) md_field_destroy(&host[f]);
  return status;
}

/* Key and counts, which are compared. */
static md_status load_counts(md_context *context, const md_solve_run *run, int64_t counts[COUNTS]) {
  const char *path = run->options.checkpoint;
  md_attribute attributes[KEYS + COUNTS];
  key k;
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
    status =
        md_checkpoint_read(context, path, run->links.geometry, NULL, 0, attributes, KEYS + COUNTS);
  if (status == MD_OK) status = check_key(context, path, &k, attributes);
  if (status == MD_OK) status = check_counts(context, run, counts);
  status = md_agree(context, status);
  free(there);
  return status;
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

static md_status check_norms(md_context *context, const char *path, const char *name,
                             const double *values, int count) {
  for (int i = 0; i < count; i++)
    if (!(values[i] >= 0.0 && isfinite(values[i])))
      return md_fail(context, MD_INPUT,
                     "checkpoint %s must have a finite %s of at least 0, got %g at place %d", path,
                     name, values[i], i);
  return MD_OK;
}

static md_status check_iterations(md_context *context, const char *path, const char *name,
                                  const int64_t *there, int count, int most) {
  for (int r = 0; r < count; r++)
    if (there[r] < 0 || there[r] > most)
      return md_fail(context, MD_INPUT,
                     "checkpoint %s must have %s within 0..%d, got %lld of right-hand side %d",
                     path, name, most, (long long)there[r], r);
  return MD_OK;
}

static md_status load_numbers(md_context *context, const char *path, md_cg_state *s) {
  double start_norm2[MD_MAX_RHS];
  int64_t rhs_iterations[MD_MAX_RHS];
  md_attribute attributes[1 + NUMBERS] = {
      {"start_norm2", MD_ATTRIBUTE_REAL, s->n_rhs, start_norm2}};
  const int count = 1 + add_numbers(s, rhs_iterations, s->iteration, s->carries, attributes + 1);
  MD_TRY(md_checkpoint_read(context, path, s->x.geometry, NULL, 0, attributes, count));
  MD_TRY(check_norms(context, path, "start_norm2", start_norm2, s->n_rhs));
  MD_TRY(check_start(context, path, s, start_norm2));
  MD_TRY(check_norms(context, path, "r_norm2", s->r_norm2, s->n_rhs));
  MD_TRY(check_norms(context, path, "residual_history", s->result.history, s->iteration + 1));
  MD_TRY(check_iterations(context, path, "rhs_iterations", rhs_iterations, s->n_rhs, s->iteration));
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
  MD_FIELDS_DESTROY(&wide, &narrow);
  return md_agree(context, status);
}

md_status md_solve_checkpoint_load(md_context *context, const md_solve_run *run, md_cg_state *s) {
  const char *path = run->options.checkpoint;
  md_named_field fields[FIELDS];
  char names[FIELDS][NAME_BYTES];
  int64_t counts[COUNTS];
  MD_TRY(load_counts(context, run, counts));
  MD_TRY(check_room(context, path, counts, s));
  s->iteration = (int)counts[ITERATION];
  s->carries = counts[CARRIES] == 1;
  s->round = (int)counts[ROUND];
  s->result.updates = (int)counts[UPDATES];
  s->result.restarts = (int)counts[RESTARTS];
  s->result.projections = (int)counts[PROJECTIONS];
  s->more.fields = (int)counts[MORE];
  MD_TRY(load_numbers(context, path, s));
  const int count = list_fields(s, fields, names);
  for (int f = 0; f < count; f++) MD_TRY(load_field(context, path, &fields[f]));
  return MD_OK;
}

/* What stands beside the solutions: the tolerance that they meet, and their sources. */
static md_status check_parts(md_context *context, const md_solve_run *run,
                             const md_solver_parts *parts, const double there[MD_MAX_RHS]) {
  double products[MD_MAX_RHS];
  MD_TRY(multiply_sources(context, run, products));
  for (int r = 0; r < parts->first; r++) {
    const double residual = parts->before->residuals[r];
    if (!(residual <= run->options.tolerance))
      return md_fail(context, MD_INPUT,
                     "checkpoint %s must be of this --tol or a smaller one, %g, got a residual of "
                     "%g",
                     run->options.checkpoint, run->options.tolerance, residual);
    if (!(products[r] == there[r]))
      return md_fail(context, MD_INPUT,
                     "checkpoint %s must belong to this solve: <b, x> of right-hand side %d is "
                     "%.9g there, %.9g here; give the same source",
                     run->options.checkpoint, r, there[r], products[r]);
  }
  return MD_OK;
}

md_status md_solve_checkpoint_load_parts(md_context *context, const md_solve_run *run,
                                         md_solver_parts *parts) {
  const md_geometry *geometry = run->links.geometry;
  const char *path = run->options.checkpoint;
  md_solver_result *before = parts->before;
  int64_t counts[COUNTS], rhs_iterations[MD_MAX_RHS];
  double products[MD_MAX_RHS];
  md_attribute attributes[PARTS];
  md_named_field fields[2 * MD_PARITIES];
  MD_TRY(load_counts(context, run, counts));
  if (counts[FIRST] == 0) return MD_OK;
  parts->first = (int)counts[FIRST];
  before->iterations = (int)counts[ITERATIONS_BEFORE];
  before->updates = (int)counts[UPDATES_BEFORE];
  before->restarts = (int)counts[RESTARTS_BEFORE];
  before->projections = (int)counts[PROJECTIONS_BEFORE];
  add_parts(parts, rhs_iterations, products, attributes);
  const int count = list_solutions(run, fields);
  MD_TRY(md_checkpoint_read(context, path, geometry, fields, count, attributes, PARTS));
  MD_TRY(check_iterations(context, path, "rhs_iterations_before", rhs_iterations, parts->first,
                          before->iterations));
  MD_TRY(check_norms(context, path, "residuals_before", before->residuals, parts->first));
  MD_TRY(check_norms(context, path, "residual_history_before", before->history,
                     before->iterations + 1));
  MD_TRY(check_parts(context, run, parts, products));
  for (int r = 0; r < parts->first; r++) {
    before->rhs_iterations[r] = (int)rhs_iterations[r];
    before->relative_residual = fmax(before->relative_residual, before->residuals[r]);
  }
  for (int i = before->iterations + 1; i <= run->options.max_iterations; i++)
    before->history[i] = before->history[before->iterations];
  return MD_OK;
}
