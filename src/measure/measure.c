/* minidirac measure: a study of many lattices, one after the other or several at once. */
#include "measure/measure.h"
#include "base/interrupt.h"
#include "base/progress.h"
#include "base/text.h"
#include "commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void say_lattice(const md_study_run *r, int lattice) {
  const md_study *s = &r->study;
  const double *loop = md_study_at(s, lattice, MD_STUDY_POLYAKOV);
  md_say(r->whole, "%5d  %-32s %.12f  %11.8f %11.8f  %9.2f\n", lattice + 1,
         s->lattice[lattice].name, *md_study_at(s, lattice, MD_STUDY_PLAQUETTE), loop[0], loop[1],
         *md_study_at(s, lattice, MD_STUDY_SECONDS));
}

/* What a group found, as bits that are added over the ranks: those of all but one are zero. */
typedef struct outcome {
  long long status;
  md_lattice_sums sums;
  char message[1024];
  double record[];
} outcome;
_Static_assert(sizeof(outcome) % sizeof(long long) == 0 && sizeof(double) == sizeof(long long) &&
                   sizeof(outcome) <= MD_STUDY_HEAD_MOST * sizeof(long long),
               "bits are added as integers");

static size_t outcome_bytes(const md_study_run *r) {
  return sizeof(outcome) + (size_t)r->study.record * sizeof(double);
}

/* Of group g, among those of all groups. */
static outcome *outcome_of(const md_study_run *r, outcome *all, int g) {
  return (outcome *)((char *)all + (size_t)g * outcome_bytes(r));
}

/* Takes over what a group found of a lattice; *failed is the first failure that ends the run.
 * Groups that measure the same lattice at once know nothing of each other. */
static void take(md_study_run *r, int lattice, const outcome *found, bool *news,
                 md_status *failed) {
  md_study_lattice *l = &r->study.lattice[lattice];
  char first[sizeof r->whole->message];
  memcpy(first, r->whole->message, sizeof first);
  md_status status = found->status == MD_OK
                         ? md_study_repeat(r->whole, &r->study, lattice, &found->sums)
                         : md_fail(r->whole, (md_status)found->status, "%s", found->message);
  if (status != MD_OK) {
    status = md_study_leave_out(r, lattice, status);
    if (*failed == MD_OK)
      *failed = status;
    else /* the message goes with the status */
      memcpy(r->whole->message, first, sizeof first);
    return;
  }
  memcpy(md_study_at(&r->study, lattice, (md_study_field)0), found->record,
         (size_t)r->study.record * sizeof(double));
  l->sums = found->sums;
  l->state = MD_LATTICE_MEASURED;
  *news = true;
  say_lattice(r, lattice);
}

static int next_waiting(const md_study *s, int from) {
  while (from < s->lattices && s->lattice[from].state != MD_LATTICE_WAITS) from++;
  return from;
}

/* Writes the file. One that cannot be written now keeps no lattice from being measured: the next
 * one, and the end, try again. `status`, a failure that ended the study, stands above its own. */
static md_status save(md_study_run *r, md_status status, bool last) {
  const bool before = r->unsaved;
  char message[sizeof r->whole->message];
  snprintf(message, sizeof message, "%s", r->whole->message);
  const md_status saved = md_study_save(r->whole, &r->study);
  r->unsaved = saved != MD_OK;
  if (saved == MD_OK) r->study.stale = false;
  if (saved == MD_ENVIRONMENT && !last && !before)
    md_warn(r->whole, "results are not written yet, the study goes on: %s", r->whole->message);
  if (status != MD_OK) return md_fail(r->whole, status, "%s", message);
  return saved == MD_ENVIRONMENT && !last ? MD_OK : saved;
}

/* What the lines of progress say of a round: its lattices, and its part of the run. */
static void name_round(md_study_run *r, const int *lattice, int count) {
  md_study *s = &r->study;
  s->begin = (double)r->begun / r->waiting;
  s->share = (double)count / r->waiting;
  r->begun += count;
  if (count == 1)
    md_progress_piece(r->group, s->begin, 0.0, "lattice %d of %d", lattice[0] + 1, s->lattices);
  else
    md_progress_piece(r->group, s->begin, 0.0, "lattices %d to %d of %d", lattice[0] + 1,
                      lattice[count - 1] + 1, s->lattices);
}

/* One lattice for each group, then the file. A failure keeps what the others found. */
static md_status measure_round(md_study_run *r, const int *lattice, int count, outcome *all) {
  const size_t bytes = (size_t)r->groups * outcome_bytes(r);
  outcome *mine = outcome_of(r, all, r->number);
  bool news = false;
  md_status failed = MD_OK;
  memset(all, 0, bytes);
  name_round(r, lattice, count);
  if (r->number < count) {
    mine->status =
        md_study_measure(r->group, &r->study, lattice[r->number], mine->record, &mine->sums);
    if (mine->status != MD_OK)
      snprintf(mine->message, sizeof mine->message, "%s", r->group->message);
  }
  if (r->group->rank != 0) memset(mine, 0, outcome_bytes(r));
  md_sum_integers(r->whole, (long long *)all, (int)(bytes / sizeof(long long)));
  md_interrupted_now(r->whole);
  for (int g = 0; g < count; g++) take(r, lattice[g], outcome_of(r, all, g), &news, &failed);
  return news ? save(r, failed, false) : failed;
}

static md_status measure_all(md_study_run *r) {
  const size_t bytes = (size_t)r->groups * outcome_bytes(r);
  outcome *all = malloc(bytes);
  int *lattice = malloc((size_t)r->groups * sizeof *lattice);
  md_status status =
      md_agree(r->whole, all && lattice ? MD_OK : md_fail_memory(r->whole, bytes, "results"));
  int next = next_waiting(&r->study, 0);
  for (int k = next; k < r->study.lattices; k = next_waiting(&r->study, k + 1)) r->waiting++;
  if (next < r->study.lattices)
    md_say(r->whole, "%5s  %-32s %-14s  %-23s  %9s\n", "", "lattice", "plaquette", "Polyakov loop",
           "seconds");
  while (status == MD_OK && next < r->study.lattices && !md_interrupted_now(r->whole)) {
    int count = 0;
    for (; count < r->groups && next < r->study.lattices; next = next_waiting(&r->study, next + 1))
      lattice[count++] = next;
    status = measure_round(r, lattice, count, all);
  }
  md_progress_pieces_end(r->group);
  if (r->unsaved || r->study.stale) status = save(r, status, true);
  MD_FREE(all, lattice);
  return status;
}

static void say_head(const md_study_run *r) {
  const md_study *s = &r->study;
  const md_study_options *o = &s->options;
  const md_context *context = r->whole;
  md_say(context, "lattices     %d, %dx%dx%dx%d, %s%s%s\n", s->lattices, s->dims[0], s->dims[1],
         s->dims[2], s->dims[3], s->lattice[0].name, s->lattices > 1 ? " to " : "",
         s->lattices > 1 ? s->lattice[s->lattices - 1].name : "");
  if (r->groups > 1) md_say(context, "groups       %d, each with a lattice at a time\n", r->groups);
  md_say_ranks(context, &r->plan, -1);
  md_say(context, "operator     %s, packing %s, %s, inner %s, %s reals per link; %s\n", r->backend,
         r->packing, o->run.precision, o->run.inner, o->run.reconstruct, o->run.boundary);
  if (o->run.inner_reason[0])
    md_say(context, "inner        %s: %s\n", o->run.inner, o->run.inner_reason);
  for (int a = 0; a < o->actions.count; a++) {
    const md_physics_options physics = md_study_physics(o, a);
    const md_backend_request request = md_study_request(o, a);
    char words[MD_PHYSICS_WORDS_BYTES];
    md_say(context, "action       %s\n", md_physics_words(&physics, &request, words, sizeof words));
  }
  for (int m = 0; m < o->masses.count; m++)
    md_say(context, "%s%g%s", m ? ", " : "masses       ", o->masses.value[m],
           m + 1 < o->masses.count ? "" : "\n");
  for (int i = 0; i < o->sources.count; i++)
    md_say(context, "source       %s\n", o->sources.source[i].text);
  md_say(context, "solver       %s, tolerance %g, %d right-hand side%s at once at most\n\n",
         o->how.by ? o->how.by->name : "multishift", o->tolerance, md_study_width(o),
         md_plural(md_study_width(o)));
}

static void report_settings(const md_study_run *r, md_report *report) {
  const md_study_options *o = &r->study.options;
  cJSON *root = report->root;
  cJSON *actions = cJSON_AddArrayToObject(root, "actions");
  for (int a = 0; a < o->actions.count; a++)
    cJSON_AddItemToArray(actions,
                         cJSON_CreateString(md_action_name((md_action)o->actions.value[a])));
  cJSON *physics = cJSON_AddArrayToObject(root, "physics");
  for (int a = 0; a < o->actions.count; a++) {
    const md_physics_options of = md_study_physics(o, a);
    const md_backend_request request = md_study_request(o, a);
    char words[MD_PHYSICS_WORDS_BYTES];
    cJSON_AddItemToArray(physics,
                         cJSON_CreateString(md_physics_words(&of, &request, words, sizeof words)));
  }
  md_report_reals(root, "masses", o->masses.value, o->masses.count);
  cJSON *sources = cJSON_AddArrayToObject(root, "sources");
  for (int i = 0; i < o->sources.count; i++)
    cJSON_AddItemToArray(sources, cJSON_CreateString(o->sources.source[i].text));
  cJSON_AddStringToObject(root, "boundary", o->run.boundary);
  if (o->run.physics.reunitarize) cJSON_AddBoolToObject(root, "reunitarized", true);
  md_report_add(root, "tolerance=%g solver=%s", o->tolerance,
                o->how.by ? o->how.by->name : "multishift");
  md_solver_options_report(root, &o->how);
  if (o->deflate) cJSON_AddStringToObject(root, "deflate", o->deflate);
  md_report_add(root,
                "backend=%s packing=%s packing_reason=%s precision=%s inner=%s rhs=%d rhs_block=%d "
                "vectors=%g groups=%d output=%s",
                r->backend, r->packing, r->packing_reason, o->run.precision, o->run.inner,
                md_study_width(o), r->rhs_block, (double)o->vectors, r->groups, o->output);
  if (o->run.inner_reason[0]) cJSON_AddStringToObject(root, "inner_reason", o->run.inner_reason);
}

/* What ended the run stands above a report that could not be written. */
static md_status finish(md_study_run *r, md_status status) {
  const md_study *s = &r->study;
  md_report report;
  char message[sizeof r->whole->message];
  snprintf(message, sizeof message, "%s", r->whole->message);
  int of[MD_LATTICE_STATES] = {0};
  for (int k = 0; k < s->lattices; k++) of[s->lattice[k].state]++;
  const int measured = of[MD_LATTICE_MEASURED], resumed = of[MD_LATTICE_RESUMED];
  const int skipped = of[MD_LATTICE_SKIPPED], kept = measured + resumed;
  MD_TRY(md_report_open(r->whole, "measure", &report));
  report_settings(r, &report);
  md_report_geometry(&report, &r->plan);
  md_report_add(report.root, "measured=%d resumed=%d skipped=%d", measured, resumed, skipped);
  const md_status analysed = md_study_analyse(r->whole, s, report.root);
  snprintf(r->whole->message, sizeof r->whole->message, "%s", message);
  if (status == MD_OK) status = analysed;
  if (md_interrupt_name(r->whole) && kept + skipped < s->lattices && !r->unsaved)
    status = md_fail(r->whole, MD_ENVIRONMENT, "%s ended the study after %d of %d lattice%s%s%s%s",
                     md_interrupt_name(r->whole), kept, s->lattices, md_plural(s->lattices),
                     kept ? "; " : "", kept ? s->options.output : "",
                     kept ? " has them, go on with --resume" : "");
  else if (status == MD_OK && skipped > 0)
    status = md_fail(r->whole, MD_UNREACHED, "%d of %d lattice%s left out%s%s", skipped,
                     s->lattices, s->lattices == 1 ? " was" : "s were",
                     kept > 0 ? "" : "; nothing is written to ", kept > 0 ? "" : s->options.output);
  return md_report_close_after(r->whole, &report, s->options.run.common.json, status);
}

static md_status start_groups(md_study_run *r, md_context *context) {
  r->groups = (int)r->study.options.groups;
  r->whole = r->group = context;
  if (r->groups == 1) return MD_OK;
  r->number = context->rank / (context->ranks / r->groups);
  MD_TRY(md_context_split(context, r->number, &r->part));
  r->group = &r->part;
  r->part.quiet = true; /* the run tells what its groups do */
  return MD_OK;
}

md_status md_study_by_words(md_context *context, int argc, char **argv) {
  md_study_run *r = calloc(1, sizeof *r);
  md_status status = md_agree(context, r ? MD_OK : md_fail_memory(context, sizeof *r, "study"));
  if (status != MD_OK) {
    free(r);
    return status;
  }
  status = md_study_options_read(context, &r->study.options, argc, argv);
  if (status == MD_OK && !r->study.options.run.common.help) {
    status = start_groups(r, context);
    if (status == MD_OK) {
      status = md_study_prepare(r);
      if (status == MD_OK) {
        say_head(r);
        status = finish(r, measure_all(r));
      }
      if (r->groups > 1) md_context_join(context, &r->part);
    }
  }
  for (int i = 0; i < r->study.options.sources.count; i++)
    free((char *)r->study.options.sources.source[i].text);
  MD_FREE(r->study.lattice, r->study.records, r);
  return status;
}

md_status md_command_measure(md_context *context, int argc, char **argv) {
  md_interrupt_catch(context);
  return md_study_by_words(context, argc, argv);
}
