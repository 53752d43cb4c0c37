#include "io/propagator.h"
#include "solve/solve.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELDS = 4, KEY_BYTES = 768 };

/* What the state belongs to, as one text that must be equal on reading. */
static void key_of(const md_solve_run *run, char key[KEY_BYTES]) {
  const md_solve_options *o = &run->options;
  char words[MD_PHYSICS_WORDS_BYTES];
  const bool files = o->physics.fat_file != NULL;
  const char *path = files ? o->physics.fat_file : o->lattice, *slash = strrchr(path, '/');
  const int used = snprintf(
      key, KEY_BYTES,
      "plaquette %.15g mass %.17g source %s boundary %s precision %s inner %s rhs %lld "
      "backend %s packing %s reconstruct %s action %s lattice %.64s",
      files ? run->links.fat_plaquette : run->links.plaquette, o->mass, o->source.text, o->boundary,
      o->precision, o->inner, o->rhs, md_solve_operator(run)->backend->name, o->packing,
      o->reconstruct, md_physics_words(&o->physics, &o->request, words, sizeof words),
      slash ? slash + 1 : path);
  if (o->deflate || o->guess) /* what the state's solution is added to */
    snprintf(key + used, KEY_BYTES - (size_t)used, " deflate %.100s guess %.100s",
             o->deflate ? o->deflate : "none", o->guess ? o->guess : "none");
}

/* Host copies of the state's fields in double: exact for every storage type. */
static md_status host_fields(md_context *context, const md_cg_state *state, int count,
                             md_field host[FIELDS]) {
  const md_field_shape shape = {MD_DOUBLE, MD_HOST, state->x.components, state->n_rhs, true};
  memset(host, 0, FIELDS * sizeof *host);
  md_status status = MD_OK;
  for (int f = 0; f < count && status == MD_OK; f++)
    status = md_field_create(context, state->x.geometry, &shape, MD_EVEN, &host[f]);
  return md_agree(context, status);
}

static md_status move(md_context *context, const md_solve_run *run, md_cg_state *state, bool save) {
  char key[KEY_BYTES], found[KEY_BYTES];
  md_field host[FIELDS], *fields[FIELDS] = {&state->x, &state->r, &state->p, &state->before};
  const int n_fields = state->carried ? FIELDS : FIELDS - 1;
  int64_t iteration = state->iteration, carries = state->carries,
          *counts = calloc((size_t)state->n_rhs, sizeof *counts);
  key_of(run, key);
  memcpy(found, key, sizeof found);
  for (int r = 0; counts && r < state->n_rhs; r++) counts[r] = state->rhs_iterations[r];
  const md_attribute attributes[] = {
      {"belongs_to", MD_ATTRIBUTE_TEXT, KEY_BYTES, found},
      {"iteration", MD_ATTRIBUTE_INTEGER, 1, &iteration},
      {"rhs_iterations", MD_ATTRIBUTE_INTEGER, state->n_rhs, counts},
      {"r_norm2", MD_ATTRIBUTE_REAL, state->n_rhs, state->r_norm2},
      {"b_norm", MD_ATTRIBUTE_REAL, state->n_rhs, state->b_norm},
      {"carries", MD_ATTRIBUTE_INTEGER, 1, &carries},
      {"carried", MD_ATTRIBUTE_REAL, 3 * state->n_rhs, state->carried}};
  const md_named_field named[FIELDS] = {
      {"x", &host[0]}, {"r", &host[1]}, {"p", &host[2]}, {"before", &host[3]}};
  const int count = (int)(sizeof attributes / sizeof *attributes) - (state->carried ? 0 : 2);
  const char *path = run->options.checkpoint;
  md_status status = counts ? MD_OK : md_fail_memory(context, 1, "checkpoint");
  if (status == MD_OK) status = host_fields(context, state, n_fields, host);
  for (int f = 0; save && f < n_fields && status == MD_OK; f++)
    status = md_field_convert(context, &host[f], fields[f]);
  status = md_agree(context, status);
  if (status == MD_OK)
    status = save ? md_checkpoint_write(context, path, named, n_fields, attributes, count)
                  : md_checkpoint_read(context, path, named, n_fields, attributes, count);
  if (status == MD_OK && strcmp(found, key) != 0)
    status = md_fail(context, MD_INPUT, "checkpoint %s must belong to this solve, got '%s'", path,
                     found);
  if (status == MD_OK && (iteration < 0 || iteration >= state->most))
    status =
        md_fail(context, MD_INPUT, "checkpoint %s is at iteration %lld; raise --max-iter above it",
                path, (long long)iteration);
  for (int f = 0; !save && f < n_fields && status == MD_OK; f++)
    status = md_field_convert(context, fields[f], &host[f]);
  for (int r = 0; !save && status == MD_OK && r < state->n_rhs; r++)
    state->rhs_iterations[r] = (int)counts[r];
  if (!save && status == MD_OK) state->iteration = (int)iteration;
  if (!save && status == MD_OK) state->carries = carries == 1;
  for (int i = 0; !save && status == MD_OK && i < state->iteration; i++)
    state->history[i] = NAN; /* of the earlier run, not kept */
  for (int f = 0; f < FIELDS; f++) md_field_destroy(&host[f]);
  free(counts);
  return status;
}

md_status md_solve_checkpoint_save(md_context *context, const md_solve_run *run,
                                   const md_cg_state *state) {
  return move(context, run, (md_cg_state *)state, true);
}

md_status md_solve_checkpoint_load(md_context *context, const md_solve_run *run,
                                   md_cg_state *state) {
  return move(context, run, state, false);
}
