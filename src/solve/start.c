#include "base/memory_need.h"
#include "io/propagator.h"
#include "solve/solve.h"

#include <math.h>
#include <string.h>

/* What a solve begins with: modes to deflate with, and a solution to go on from. */

static md_status read_guess(md_context *context, md_solve_run *run) {
  const md_solve_options *o = &run->options;
  const bool thin = o->lattice != NULL;
  const double here = thin ? run->links.plaquette : run->links.fat_plaquette;
  const md_field_shape shape = {MD_DOUBLE, MD_HOST, MD_FERMION_REALS, o->request.n_rhs, true};
  char action[MD_PHYSICS_WORDS_BYTES], boundary[32], words[MD_PHYSICS_WORDS_BYTES];
  double plaquette = NAN;
  const md_attribute wanted[] = {
      {thin ? "plaquette" : "fat_plaquette", MD_ATTRIBUTE_REAL, 1, &plaquette},
      {"action", MD_ATTRIBUTE_TEXT, sizeof action, action},
      {"boundary", MD_ATTRIBUTE_TEXT, sizeof boundary, boundary}};
  md_status status = MD_OK;
  for (int p = 0; p < MD_PARITIES && status == MD_OK; p++)
    status = md_field_create(context, run->links.geometry, &shape, p, &run->guess[p]);
  MD_TRY(md_agree(context, status));
  if (md_counts(context)) return MD_OK;
  MD_TRY(md_propagator_read(context, o->guess, run->guess, wanted, 3));
  if (!(fabs(plaquette - here) <= 1e-12))
    return md_fail(context, MD_INPUT,
                   "the guess %s must be of this lattice, plaquette %.12f, got one of %.12f",
                   o->guess, here, plaquette);
  md_physics_words(&o->physics, &o->request, words, sizeof words);
  if (strcmp(action, words) != 0 || strcmp(boundary, o->boundary) != 0)
    return md_fail(context, MD_INPUT,
                   "the guess %s must be of action '%s' and boundary '%s', got '%s' and '%s'",
                   o->guess, words, o->boundary, action, boundary);
  return MD_OK;
}

md_status md_solve_start_load(md_context *context, md_solve_run *run, md_space space) {
  const md_solve_options *o = &run->options;
  if (o->guess) MD_TRY(read_guess(context, run));
  if (!o->deflate) return MD_OK;
  MD_TRY(md_deflation_describe(context, o->deflate, &run->modes_info));
  const md_modes_label wanted =
      md_action_links_label(&o->physics, &o->request, o->boundary, &run->links);
  return md_modes_read(context, o->deflate, run->links.geometry, &wanted, &run->modes_info,
                       run->modes_info.converged, space, &run->modes);
}
