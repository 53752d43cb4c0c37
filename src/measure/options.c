#include "base/text.h"
#include "measure/measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Words between blanks, each a source. */
static md_status read_sources(md_context *context, const char *label, const char *text,
                              void *target) {
  md_study_options *o = target;
  char *copy = strdup(text), *rest = copy;
  md_status status = copy ? MD_OK : md_fail_memory(context, strlen(text), "sources");
  o->sources.count = 0;
  for (char *word; status == MD_OK && (word = strtok_r(rest, " \t", &rest));) {
    if (o->sources.count == MD_STUDY_SOURCES_MOST)
      status = md_fail(context, MD_INPUT, "%s must be at most %d sources, got '%.200s'", label,
                       MD_STUDY_SOURCES_MOST, text);
    else
      status = md_source_parse(context, label, word, &o->sources.source[o->sources.count++]);
    if (status == MD_OK)
      status = md_source_refuse_file(context, &o->sources.source[o->sources.count - 1], "measure",
                                     "solve");
  }
  free(copy);
  if (status == MD_OK && o->sources.count == 0)
    return md_fail(context, MD_INPUT, "%s must name a source, got '%.200s'", label, text);
  return status;
}

md_physics_options md_study_physics(const md_study_options *options, int action) {
  md_physics_options physics = options->run.physics;
  physics.action = md_action_name((md_action)options->actions.value[action]);
  const md_recipe *recipe = md_recipe_find(physics.action);
  if (!recipe || !md_recipe_takes(recipe, "u0")) physics.u0 = NAN;
  if (!recipe || !md_recipe_takes(recipe, "naik-epsilon")) physics.naik_epsilon = NAN;
  if (!md_action_get(md_physics_action(&physics))->walls) physics.slices = 0, physics.height = NAN;
  if (md_physics_action(&physics) != MD_ACTION_MOBIUS) physics.b5 = physics.c5 = NAN;
  return physics;
}

/* A parameter belongs to one of the actions. */
static md_status check_actions(md_context *context, const md_study_options *o) {
  const md_physics_options *given = &o->run.physics;
  bool u0 = isnan(given->u0), naik_epsilon = isnan(given->naik_epsilon);
  bool walls = given->slices == 0 && isnan(given->height),
       mobius = isnan(given->b5) && isnan(given->c5);
  const int spins = md_action_get((md_action)o->actions.value[0])->spins;
  for (int a = 0; a < o->actions.count; a++) {
    const md_physics_options physics = md_study_physics(o, a);
    MD_TRY(md_physics_check(context, &physics));
    for (int m = 0; m < o->masses.count; m++)
      MD_TRY(md_physics_check_mass(context, "masses", md_physics_action(&physics),
                                   o->masses.value[m]));
    if (md_action_get(md_physics_action(&physics))->spins != spins)
      return md_fail(
          context, MD_INPUT,
          "--actions must all be staggered or all have four spins, as sources do, got %s "
          "and %s; make two studies",
          md_action_name((md_action)o->actions.value[0]), physics.action);
    walls = walls || md_action_get(md_physics_action(&physics))->walls;
    mobius = mobius || md_physics_action(&physics) == MD_ACTION_MOBIUS;
    u0 = u0 || !isnan(physics.u0);
    naik_epsilon = naik_epsilon || !isnan(physics.naik_epsilon);
    for (int b = 0; b < a; b++)
      if (o->actions.value[a] == o->actions.value[b])
        return md_fail(context, MD_INPUT, "--actions must differ, %s is there twice",
                       physics.action);
  }
  if (!walls || !mobius)
    return md_fail(context, MD_INPUT, "none of the --actions takes %s; leave them out",
                   walls ? "--b5 and --c5" : "--Ls and --M5");
  if (!u0 || !naik_epsilon)
    return md_fail(context, MD_INPUT, "none of the --actions takes --%s; leave it out",
                   u0 ? "naik-epsilon" : "u0");
  return MD_OK;
}

/* Sources have the spins of the actions, and quarks with four are solved by fewer solvers. */
static md_status check_spins(md_context *context, md_study_options *o) {
  const md_action_data *action = md_action_get((md_action)o->actions.value[0]);
  for (int i = 0; i < o->sources.count; i++) o->sources.source[i].spins = action->spins;
  if (action->spins == 1) return MD_OK;
  if (o->how.by == &md_solver_auto) o->how.by = &md_solver_cg;
  if (!o->how.by)
    return md_fail(context, MD_INPUT,
                   "--solver multishift is for staggered actions, got --actions %s; leave it out",
                   action->name);
  if (o->deflate && o->masses.count > 1)
    return md_fail(context, MD_INPUT,
                   "modes of action %s belong to a mass: --deflate takes one of --masses, got %d",
                   action->name, o->masses.count);
  return MD_OK;
}

static md_status check(md_context *context, md_study_options *o) {
  const bool chosen = strcmp(o->run.inner, "auto") == 0;
  const bool mixed = !chosen && strcmp(o->run.inner, "none") != 0;
  MD_TRY(md_solver_options_read(context, &o->how, mixed, false, o->deflate));
  MD_TRY(check_spins(context, o));
  const bool multishift = !o->how.by;
  if (o->how.by == &md_solver_auto)
    o->how.by = o->masses.count > 1 && !mixed && !chosen && !o->deflate ? NULL : &md_solver_cg;
  MD_TRY(check_actions(context, o));
  if (mixed && multishift)
    return md_fail(context, MD_INPUT, "--solver multishift goes without --inner");
  if (o->deflate && multishift)
    return md_fail(
        context, MD_INPUT,
        "--solver multishift begins from zero for all masses: it goes without --deflate");
  MD_TRY(md_run_set_request(context, &o->run));
  for (int i = 0; i < o->masses.count; i++)
    for (int k = 0; k < i; k++)
      if (o->masses.value[i] == o->masses.value[k])
        return md_fail(context, MD_INPUT, "--masses must differ, %g is there twice",
                       o->masses.value[i]);
  for (int i = 0; i < o->sources.count; i++)
    for (int k = 0; k < i; k++)
      if (strcmp(o->sources.source[i].text, o->sources.source[k].text) == 0)
        return md_fail(context, MD_INPUT, "--sources must differ, %s is there twice",
                       o->sources.source[i].text);
  bool points = o->momenta.count == 0;
  for (int i = 0; i < o->sources.count; i++)
    points = points || md_source_is_points(&o->sources.source[i]);
  if (!points)
    return md_fail(context, MD_INPUT,
                   "--momenta needs a source of points among --sources, whose correlators have "
                   "them, got '%s'",
                   o->sources.source[0].text);
  if (context->ranks % o->groups != 0)
    return md_fail(context, MD_INPUT,
                   "--groups must divide the number of ranks, %d, into equal parts, got %lld",
                   context->ranks, o->groups);
  return MD_OK;
}

/* In words, whatever changes a number of the results beyond rounding, and the order of the numbers.
 */
static md_status write_settings(md_context *context, md_study_options *o) {
  const md_momenta momenta = md_momenta_of(&o->momenta);
  const size_t bytes = sizeof o->settings;
  char *text = o->settings;
  bool fits = false; /* the last word, and so all: behind what was cut there is no room */
  md_append(text, bytes, "boundary %s vectors %lld tol %.17g actions", o->run.boundary, o->vectors,
            o->tolerance);
  for (int a = 0; a < o->actions.count; a++) {
    const md_physics_options physics = md_study_physics(o, a);
    md_backend_request request = {0};
    char words[MD_PHYSICS_WORDS_BYTES];
    md_physics_apply(&physics, &request);
    md_append(text, bytes, " (%s)", md_physics_words(&physics, &request, words, sizeof words));
  }
  md_append(text, bytes, " masses");
  for (int m = 0; m < o->masses.count; m++) md_append(text, bytes, " %.17g", o->masses.value[m]);
  md_append(text, bytes, " sources");
  for (int s = 0; s < o->sources.count; s++)
    md_append(text, bytes, " %s", o->sources.source[s].text);
  md_append(text, bytes, " momenta");
  for (int q = 0; q < momenta.count; q++)
    fits = md_append(text, bytes, " %d,%d,%d", momenta.n[q][0], momenta.n[q][1], momenta.n[q][2]);
  if (fits) return MD_OK;
  return md_fail(context, MD_INPUT,
                 "actions, masses, sources and momenta must take less than %d bytes in words, got "
                 "more; make several studies",
                 MD_STUDY_SETTINGS_BYTES);
}

md_status md_study_options_read(md_context *context, md_study_options *o, int argc, char **argv) {
  *o = (md_study_options){.run = MD_RUN_DEFAULTS,
                          .how = {.solver = "auto", .precondition = "none"},
                          .tolerance = 1e-10,
                          .max_iterations = 10000,
                          .vectors = 16,
                          .rhs = 16,
                          .groups = 1,
                          .bin = 1};
  char backends[MD_BACKEND_WORDS_BYTES];
  md_option options[] = {
      MD_OPTION(TEXT, "lattices", &o->lattices, "FILES",
                "files and patterns such as 'cfg.*.h5', blanks between (required)",
                .required = true, .group = MD_GROUP_INPUT),
      MD_OPTION(CHOICES, "actions", &o->actions, "A,B,...", "what D is [naive]",
                .choices = md_action_words, .initial = "naive", .group = MD_GROUP_PHYSICS),
      MD_OPTION(REALS, "masses", &o->masses, "A,B,...", "quark masses in M = m + D (required)",
                .required = true),
      MD_OPTION(PARSED, "sources", o, "SOURCES", "see below, blanks between [point:0,0,0,0]",
                .parse = read_sources, .initial = "point:0,0,0,0"),
      MD_OPTION(INTEGER, "vectors", &o->vectors, "N", "of each random source and lattice [16]",
                .low = 1, .high = 4096),
      MD_OPTION(PARSED, "momenta", &o->momenta, "X,Y,Z;...", MD_MOMENTA_HELP,
                .parse = md_momenta_parse),
      MD_OPTION(INTEGER, "rhs", &o->rhs, "N", "right-hand sides solved at once, at most [16]",
                .low = 1, .high = MD_MAX_RHS, .group = MD_GROUP_SOLVER),
      MD_OPTION(CHOICE, "solver", &o->how.solver, NULL,
                "auto: multishift for several masses without --inner and --deflate, else cg [auto]",
                .choices = &(MD_SOLVER_WORDS "|multishift")[1]),
      MD_PRECONDITION_OPTIONS(o->how),
      MD_LIMIT_OPTIONS(*o),
      MD_OPTION(
          TEXT, "deflate", &o->deflate, "MODES.h5",
          "lowest modes of eigen for each lattice: {lattice}, {name}, {action} are filled in"),
      MD_OPERATOR_OPTIONS(o->run, backends),
      MD_BOUNDARY_OPTION(o->run.boundary),
      MD_HALO_OPTIONS(o->run.halo, o->run.common),
      MD_SMEAR_OPTIONS(o->run.physics.u0, "asqtad", o->run.physics.naik_epsilon),
      MD_REUNITARIZE_OPTION(o->run.physics.reunitarize),
      MD_WALL_OPTIONS(o->run.physics),
      MD_TWIST_OPTIONS(o->run.physics),
      MD_OPTION(TEXT, "output", &o->output, "FILE.h5",
                "results, written after each lattice (required)", .file = MD_FILE_STATE,
                .required = true, .group = MD_GROUP_OUTPUT),
      MD_OPTION(FLAG, "resume", &o->resume, NULL,
                "go on with the file of --output: lattices that it has are not measured again"),
      MD_OPTION(
          FLAG, "force", &o->force, NULL,
          "replace the file of --output; with --resume only results of lattices that changed"),
      MD_OPTION(FLAG, "keep-going", &o->keep_going, NULL,
                "leave out lattices that cannot be measured; exit 1 at the end"),
      MD_OPTION(FLAG, "allow-repeats", &o->allow_repeats, NULL,
                "measure links that several files have once for each of them",
                .group = MD_GROUP_INPUT),
      MD_IGNORE_CHECKSUM_OPTION(o->run.ignore_checksum),
      MD_OPTION(INTEGER, "groups", &o->groups, "N",
                "of ranks, each with a lattice of its own at a time [1]", .low = 1, .high = 1 << 20,
                .group = MD_GROUP_MACHINE),
      MD_OPTION(INTEGER, "bin", &o->bin, "N", "lattices in a bin of the jackknife [1]", .low = 1,
                .high = 1 << 20, .group = MD_GROUP_OUTPUT),
      MD_COMMON_OPTIONS(o->run.common)};
  const md_command_text text = {
      "measure", "Measure pion correlators and chiral condensates on many lattices.",
      MD_SOURCE_DETAILS
      "Random ones are drawn anew for each lattice. Points and walls give pion correlators, noise\n"
      "the condensate. What is done stays in --output, whatever ends the run. docs/study.md",
      "minidirac measure --lattices 'inputs/beta5.7*' --masses 0.05,0.1 --sources "
      "'point:0,0,0,0 random:1' --output study.h5"};
  const int count = sizeof options / sizeof *options;
  bool random = false;
  MD_TRY(md_options_read(context, &text, options, count, &o->run.common, argc, argv));
  if (o->run.common.help) return MD_OK;
  for (int i = 0; i < o->sources.count; i++)
    random = random || md_source_is_random(&o->sources.source[i]);
  MD_TRY(md_options_need(context, options, count, "vectors", random,
                         "a random source among --sources"));
  MD_TRY(check(context, o));
  return write_settings(context, o);
}
