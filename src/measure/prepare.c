/* What is looked at before the first lattice of a study is measured: which lattices there are, the
 * names and files of their modes, memory, results of an earlier run, and which of them are the
 * same. */
#include "base/file.h"
#include "base/interrupt.h"
#include "base/memory_need.h"
#include "base/text.h"
#include "io/site_data.h"
#include "lattice/gauge/smear.h"
#include "measure/measure.h"

#include <errno.h>
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int by_number(const void *a, const void *b) {
  return strverscmp(*(char *const *)a, *(char *const *)b);
}

static md_status add_lattice(md_context *context, md_study *s, const char *name) {
  if (strlen(name) >= MD_STUDY_NAME_BYTES)
    return md_fail(context, MD_INPUT,
                   "names of lattices must be shorter than %d bytes, got %.60s...",
                   MD_STUDY_NAME_BYTES, name);
  for (int k = 0; k < s->lattices; k++)
    if (strcmp(s->lattice[k].name, name) == 0)
      return md_fail(context, MD_INPUT, "--lattices must differ, %s is there twice", name);
  md_study_lattice *more = realloc(s->lattice, ((size_t)s->lattices + 1) * sizeof *s->lattice);
  if (!more) return md_fail_memory(context, sizeof *more, "list of lattices");
  s->lattice = more;
  s->lattice[s->lattices] = (md_study_lattice){0};
  snprintf(s->lattice[s->lattices++].name, MD_STUDY_NAME_BYTES, "%s", name);
  return MD_OK;
}

/* Folders that may not be read have no files for a pattern; one that cannot be opened for want of
 * something is another matter. */
static int ends_search(const char *folder, int reason) {
  (void)folder;
  return md_open_blame(reason) != MD_INPUT;
}

/* A word without wildcards is a file, which need not be there. */
static md_status add_word(md_context *context, md_study *s, const char *word) {
  glob_t found;
  if (!strpbrk(word, "*?[")) return add_lattice(context, s, word);
  errno = 0;
  const int code = glob(word, 0, ends_search, &found);
  if (code == GLOB_ABORTED || code == GLOB_NOSPACE)
    return md_fail(context, MD_ENVIRONMENT, "the files of the pattern '%s' cannot be listed: %s",
                   word, strerror(code == GLOB_NOSPACE ? ENOMEM : errno));
  if (code != 0)
    return md_fail(context, MD_INPUT,
                   "the pattern '%s' of --lattices must name a file, it names none", word);
  md_status status = MD_OK;
  qsort(found.gl_pathv, found.gl_pathc, sizeof *found.gl_pathv, by_number);
  for (size_t k = 0; k < found.gl_pathc && status == MD_OK; k++)
    status = add_lattice(context, s, found.gl_pathv[k]);
  globfree(&found);
  return status;
}

/* On rank 0, whose file system counts. */
static md_status find_lattices(md_context *context, md_study *s) {
  char *copy = strdup(s->options.lattices), *rest = copy;
  md_status status = copy ? MD_OK : md_fail_memory(context, 1, "list of lattices");
  for (char *word; status == MD_OK && (word = strtok_r(rest, " \t", &rest));)
    status = add_word(context, s, word);
  free(copy);
  if (status == MD_OK && s->lattices == 0)
    status =
        md_fail(context, MD_INPUT, "--lattices must name a file, got '%s'", s->options.lattices);
  return status;
}

/* The files that --lattices names, by patterns or one by one, in their order; those of a pattern in
 * that of the numbers in their names. Sets lattices and lattice. MD_INPUT: none, one twice, a
 * pattern without a file. Collective. */
static md_status list_lattices(md_context *context, md_study *s) {
  MD_TRY(md_agree(context, context->rank == 0 ? find_lattices(context, s) : MD_OK));
  md_broadcast(context, &s->lattices, sizeof s->lattices);
  const size_t bytes = (size_t)s->lattices * sizeof *s->lattice;
  if (context->rank != 0) s->lattice = malloc(bytes);
  MD_TRY(
      md_agree(context, s->lattice ? MD_OK : md_fail_memory(context, bytes, "list of lattices")));
  md_broadcast(context, s->lattice, bytes);
  return MD_OK;
}

md_status md_study_modes_name(md_context *context, const md_study *s, int lattice, int action,
                              char name[MD_STUDY_NAME_BYTES]) {
  enum { WORDS = 3 };
  static const char *const words[WORDS] = {"{lattice}", "{name}", "{action}"};
  const char *path = s->lattice[lattice].name, *base = md_base_of(path), *dot = strrchr(base, '.');
  const char *of_action = md_action_name((md_action)s->options.actions.value[action]);
  const bool counts = dot && strspn(dot + 1, "0123456789") == strlen(dot + 1); /* cfg.100 */
  const size_t suffix = dot && dot != base && !counts ? strlen(dot) : 0;
  const char *from[WORDS] = {path, base, of_action};
  const size_t length[WORDS] = {strlen(path) - suffix, strlen(base) - suffix, strlen(of_action)};
  bool whole = true;
  *name = '\0';
  for (const char *at = s->options.deflate; *at && whole;) {
    int w = 0;
    while (w < WORDS && strncmp(at, words[w], strlen(words[w])) != 0) w++;
    whole = md_append(name, MD_STUDY_NAME_BYTES, "%.*s", w < WORDS ? (int)length[w] : 1,
                      w < WORDS ? from[w] : at);
    at += w < WORDS ? strlen(words[w]) : 1;
  }
  if (whole) return MD_OK;
  return md_fail(context, MD_INPUT, "names of modes must be shorter than %d bytes, got %.60s...",
                 MD_STUDY_NAME_BYTES, name);
}

/* Appends the files of modes to those that the study reads. MD_INPUT where several lattices or
 * actions would share one. Local, same on all ranks. */
static md_status list_modes(md_context *context, const md_study *s, md_made_files *files) {
  const char *pattern = s->options.deflate;
  const size_t first = files->count;
  if (!pattern) return MD_OK;
  if (s->lattices > 1 && !strstr(pattern, "{lattice}") && !strstr(pattern, "{name}"))
    return md_fail(
        context, MD_INPUT,
        "modes belong to one lattice, and there are %d: --deflate must have {lattice} or {name} in "
        "it, which stand for a lattice's path or file name without suffix, got '%s'",
        s->lattices, pattern);
  if (s->options.actions.count > 1 && !strstr(pattern, "{action}"))
    return md_fail(context, MD_INPUT,
                   "modes belong to one action, and there are %d: --deflate must have {action} in "
                   "it, got '%s'",
                   s->options.actions.count, pattern);
  for (int k = 0; k < s->lattices; k++)
    for (int a = 0; a < s->options.actions.count; a++) {
      char name[MD_STUDY_NAME_BYTES];
      MD_TRY(md_study_modes_name(context, s, k, a, name));
      for (size_t i = first; i < files->count; i++)
        if (strcmp(files->file[i].path, name) == 0)
          return md_fail(context, MD_INPUT,
                         "modes belong to one lattice and action, and --deflate '%s' names %s for "
                         "two; rename the lattices so that {name} or {lattice} differs",
                         pattern, name);
      MD_TRY(md_made_files_add(context, files, "--deflate", name, MD_FILE_INPUT));
    }
  return MD_OK;
}

/* Looks at the files of one lattice and raises *bytes to what those of an action take on a rank of
 * the plan. Collective. */
static md_status look_at_modes(md_context *context, const md_study *s, int lattice,
                               const md_geometry *plan, int64_t *bytes) {
  if (!s->options.deflate) return MD_OK;
  for (int a = 0; a < s->options.actions.count; a++) {
    char name[MD_STUDY_NAME_BYTES];
    md_modes_info info;
    MD_TRY(md_study_modes_name(context, s, lattice, a, name));
    MD_TRY(md_deflation_describe(context, name, &info));
    const md_field_shape shape = {info.store, MD_HOST, info.components, 1, true, false};
    const int64_t needed = info.converged * md_field_bytes(plan, &shape);
    if (needed > *bytes) *bytes = needed;
  }
  return MD_OK;
}

/* No file that is written is a lattice or has modes, and --output replaces nothing unasked. */
static md_status check_output(md_context *context, const md_study *s) {
  const md_study_options *o = &s->options;
  md_made_files read = {0};
  md_status status = MD_OK;
  for (int k = 0; k < s->lattices && status == MD_OK; k++)
    status = md_made_files_add(context, &read, "--lattices", s->lattice[k].name, MD_FILE_INPUT);
  if (status == MD_OK) status = list_modes(context, s, &read);
  MD_TRY(md_options_check_made(context, &o->run.common, &read, status));
  const bool there = context->rank == 0 && access(o->output, F_OK) == 0;
  if (there && !o->resume && !o->force)
    status = md_fail(context, MD_INPUT,
                     "--output replaces no file, but %s is there; go on with it by --resume, add "
                     "--force or give another name",
                     o->output);
  return md_agree(context, status);
}

md_status md_study_leave_out(md_study_run *r, int lattice, md_status status) {
  md_study_lattice *l = &r->study.lattice[lattice];
  const bool may = status == MD_INPUT || status == MD_UNREACHED;
  const char *why = r->whole->message;
  if (!r->study.options.keep_going || !may || md_interrupt_name(r->whole)) {
    const bool named = strstr(why, l->name) != NULL;
    return md_fail(r->whole, status, "%s%s%s", named ? "" : l->name, named ? "" : ": ", why);
  }
  md_warn(r->whole, "%s is left out: %s", l->name, why);
  snprintf(l->reason, sizeof l->reason, "%.*s", (int)sizeof l->reason - 1, why);
  l->state = MD_LATTICE_SKIPPED;
  return MD_OK;
}

/* `status` and what was found with it, of the first group, to all ranks: its verdict counts for
 * all. Collective over the run. */
static md_status hear(md_study_run *r, md_status status, void *found, size_t bytes) {
  char message[sizeof r->group->message];
  snprintf(message, sizeof message, "%s", r->group->message);
  md_broadcast(r->whole, &status, sizeof status);
  md_broadcast(r->whole, message, sizeof message);
  md_broadcast(r->whole, found, bytes);
  return status == MD_OK ? MD_OK : md_fail(r->whole, status, "%s", message);
}

/* Looks at the header of a lattice, and of its modes, before the first is measured: the first that
 * can be read has the extents of all. */
static md_status look(md_study_run *r, int lattice, bool *known) {
  md_study *s = &r->study;
  md_study_lattice *l = &s->lattice[lattice];
  md_geometry plan = {0};
  md_lattice_header header;
  struct {
    int dims[MD_DIMS];
    int64_t modes_bytes;
    char stated[sizeof l->stated];
  } found = {{0}, 0, ""};
  md_status status = md_lattice_plan(r->group, l->name, s->options.run.common.grid, &plan, &header);
  if (status == MD_OK) md_checksum_print(&header.checksum, found.stated, sizeof found.stated);
  if (status == MD_OK) status = look_at_modes(r->group, s, lattice, &plan, &found.modes_bytes);
  memcpy(found.dims, plan.global, sizeof found.dims);
  status = hear(r, status, &found, sizeof found);
  if (status != MD_OK) return md_study_leave_out(r, lattice, status);
  if (!*known) memcpy(s->dims, found.dims, sizeof s->dims);
  *known = true;
  if (found.modes_bytes > r->modes_bytes) r->modes_bytes = found.modes_bytes;
  if (memcmp(s->dims, found.dims, sizeof s->dims) == 0) {
    memcpy(l->stated, found.stated, sizeof found.stated);
    return MD_OK;
  }
  status =
      md_fail(r->whole, MD_INPUT,
              "the extents must be %dx%dx%dx%d as those of the other lattices, got %dx%dx%dx%d in "
              "%.200s",
              s->dims[0], s->dims[1], s->dims[2], s->dims[3], found.dims[0], found.dims[1],
              found.dims[2], found.dims[3], l->name);
  return md_study_leave_out(r, lattice, status);
}

static md_status look_at_all(md_study_run *r) {
  bool known = false;
  for (int k = 0; k < r->study.lattices; k++) MD_TRY(look(r, k, &known));
  for (int i = 0; known && i < r->study.options.sources.count; i++)
    MD_TRY(md_source_check(r->whole, &r->study.options.sources.source[i], r->study.dims));
  if (known) return MD_OK;
  return md_fail(r->whole, MD_INPUT, "none of the %d lattice%s can be read", r->study.lattices,
                 md_plural(r->study.lattices));
}

/* One action on a lattice, as a dry run. */
typedef struct planned {
  md_study_run *run;
  int action;
} planned;

/* Thin links, which stay, those that are made of them, and the modes. */
static md_status count_links(md_context *context, const planned *p, md_space space,
                             const md_geometry *g, md_gauge field[MD_MOST_LINK_FIELDS]) {
  const md_physics_options physics = md_study_physics(&p->run->study.options, p->action);
  const md_smear_request smear = md_physics_smear(&physics, space);
  const int64_t links = md_gauge_bytes(g), modes = p->run->modes_bytes;
  md_memory_need loading = {md_lattice_load_bytes(g) - md_geometry_bytes(g), 0};
  md_memory_need making = {links, 0}, stays = {smear.recipe ? links : 0, 0};
  if (smear.recipe) md_smear_need(g, &smear, &making);
  *(space == MD_HOST ? &stays.host : &stays.device) += modes;
  const md_memory_need mark = md_memory_mark(context);
  md_count_memory(context, loading);
  md_memory_return_to(context, mark);
  md_count_memory(context, making);
  md_memory_return_to(context, mark);
  for (int f = 0; f < md_action_get(md_physics_action(&physics))->fields; f++)
    MD_TRY(md_gauge_create(context, g, &field[f]));
  md_count_memory(context, stays);
  return MD_OK;
}

static md_status dry_run(md_context *context, void *user) {
  const planned *p = user;
  const md_study *s = &p->run->study;
  md_layout_request layout = md_study_layout(context, s);
  md_gauge field[MD_MOST_LINK_FIELDS] = {0};
  const md_study_links links = {.action = p->action, .field = field};
  const md_backend *backend;
  md_geometry *geometry = NULL;
  MD_TRY(md_geometry_create(context, &layout, &geometry));
  md_backend_request request =
      md_study_batch(p->run->group, &s->options, p->action, geometry->local);
  p->run->rhs_block = request.n_rhs;
  md_status status = md_backend_choose(p->run->group, s->options.run.backend, geometry->local,
                                       &request, &backend, &p->run->packing_reason);
  p->run->packing = md_packing_name(request.packing);
  if (status == MD_OK) status = count_links(context, p, backend->space, geometry, field);
  if (status == MD_OK) status = md_study_propagate(context, s, &links, NULL);
  if (status == MD_OK) p->run->backend = backend->name;
  p->run->plan = *geometry;
  md_geometry_destroy(geometry);
  return status;
}

/* --inner auto becomes a precision or none, one for all lattices: by the lightest mass. */
static md_status choose_inner(md_study_run *r) {
  const md_study *s = &r->study;
  md_study_options *o = &r->study.options;
  md_backend_request request = md_study_request(o, 0);
  md_auto_inner facts = {.mass = o->masses.value[0],
                         .tolerance = o->tolerance,
                         .solver = o->how.by,
                         .n_rhs = request.n_rhs,
                         .sites = 1.0};
  for (int d = 0; d < MD_DIMS; d++) facts.sites *= s->dims[d];
  for (int m = 1; m < o->masses.count; m++) facts.mass = fmin(facts.mass, o->masses.value[m]);
  MD_TRY(md_run_choose_inner(r->group, &o->run, &facts, &request));
  o->run.request.precision = request.precision;
  return MD_OK;
}

/* The most that any action needs, and the results of all lattices, which rank 0 has once more when
 * it writes them, and every rank when they are read. */
static md_status require_memory(md_study_run *r) {
  md_study *s = &r->study;
  md_memory_need most = {0}, need;
  MD_TRY(md_agree(r->whole, md_study_records_lay_out(r->whole, s)));
  const int64_t records = (int64_t)s->lattices * s->record * (int64_t)sizeof *s->records;
  md_status status = choose_inner(r);
  for (int a = 0; a < r->study.options.actions.count && status == MD_OK; a++) {
    planned p = {r, a};
    status = md_memory_foresee(r->group, dry_run, &p, &need);
    most = md_memory_larger(most, need);
  }
  if (status != MD_OK && r->group != r->whole) /* told by the group */
    snprintf(r->whole->message, sizeof r->whole->message, "%s", r->group->message);
  MD_TRY(md_agree(r->whole, status));
  most.host += s->options.resume || r->whole->rank == 0 ? 2 * records : records;
  return md_memory_require(r->whole, &most, "measure");
}

static md_status refuse_repeat(md_context *context, const md_study *s, int lattice, int same,
                               const char *checksum) {
  return md_fail(context, MD_INPUT,
                 "a lattice must count once, %s has the links of %s, checksum '%s'; list one of "
                 "them, or add --allow-repeats",
                 s->lattice[lattice].name, s->lattice[same].name, checksum);
}

md_status md_study_repeat(md_context *context, const md_study *s, int lattice,
                          const md_lattice_sums *sums) {
  if (s->options.allow_repeats) return MD_OK;
  for (int k = 0; k < s->lattices; k++)
    if (k != lattice && md_study_has(s, k) && strcmp(s->lattice[k].sums.links, sums->links) == 0)
      return refuse_repeat(context, s, lattice, k, sums->links);
  return MD_OK;
}

/* The checksum that both have; NULL where none is known. One of 32 bits, as NERSC files state,
 * proves nothing. */
static const char *shared(const md_study_lattice *a, const md_study_lattice *b) {
  enum { ONE_NUMBER = 8 };
  if (strlen(a->stated) > ONE_NUMBER && strcmp(a->stated, b->stated) == 0) return a->stated;
  if (*a->sums.links && strcmp(a->sums.links, b->sums.links) == 0) return a->sums.links;
  return NULL;
}

static md_status check_repeats(md_study_run *r) {
  const md_study *s = &r->study;
  for (int k = 0; k < s->lattices; k++)
    for (int j = 0; j < k; j++) {
      const md_study_lattice *a = &s->lattice[j], *b = &s->lattice[k];
      const char *checksum = shared(a, b);
      if (!checksum || a->state == MD_LATTICE_SKIPPED || b->state == MD_LATTICE_SKIPPED) continue;
      /* One of two that state the same may be damaged: the links tell, once they are read. */
      if (s->options.keep_going && !md_study_has(s, j) && !md_study_has(s, k)) continue;
      const bool later = md_study_has(s, j) || !md_study_has(s, k);
      const md_status status = refuse_repeat(r->whole, s, later ? k : j, later ? j : k, checksum);
      MD_TRY(md_study_leave_out(r, later ? k : j, status));
    }
  return MD_OK;
}

/* A header that states the checksum of the results is believed. Another may be that of a copy in
 * another format, so that links decide; studies of old know those of the file alone. */
static md_status check_results(md_study_run *r, int lattice) {
  md_study_lattice *l = &r->study.lattice[lattice];
  const md_study_options *o = &r->study.options;
  const bool known = *l->sums.links, states = strcmp(l->stated, "none") != 0;
  md_lattice_sums now = {"", ""};
  if (!*l->stated || (states && strcmp(l->stated, l->sums.file) == 0)) return MD_OK;
  const md_status status =
      hear(r, md_study_identify(r->group, &r->study, lattice, &now), &now, sizeof now);
  if (status == MD_INPUT && o->keep_going) {
    md_warn(r->whole, "%s keeps the results that %s has of it: %s", l->name, o->output,
            r->whole->message);
    return MD_OK;
  }
  MD_TRY(status);
  const char *before = known ? l->sums.links : l->sums.file, *here = known ? now.links : now.file;
  if (strcmp(before, here) == 0) return MD_OK;
  if (!o->force)
    return md_fail(r->whole, MD_INPUT,
                   "%s has changed since %s got its results, from checksum '%s' to '%s'; put the "
                   "file of before back, measure it anew with --resume --force, or give another "
                   "--output",
                   l->name, o->output, before, here);
  md_warn(r->whole, "%s has changed since %s got its results and is measured anew", l->name,
          o->output);
  l->state = MD_LATTICE_WAITS;
  l->sums = (md_lattice_sums){"", ""};
  r->study.stale = true;
  return MD_OK;
}

/* Results of an earlier run whose lattice is another by now are refused, or with --force waited for
 * again; then, of two lattices that are known to be the same, by their headers or their results,
 * the later one, or the one without results, is left out. Collective. */
static md_status check_sameness(md_study_run *r) {
  const md_study *s = &r->study;
  for (int k = 0; k < s->lattices; k++)
    if (s->lattice[k].state == MD_LATTICE_RESUMED) MD_TRY(check_results(r, k));
  return s->options.allow_repeats ? MD_OK : check_repeats(r);
}

md_status md_study_prepare(md_study_run *r) {
  md_study *s = &r->study;
  MD_TRY(list_lattices(r->whole, s));
  MD_TRY(check_output(r->whole, s));
  MD_TRY(look_at_all(r));
  MD_TRY(require_memory(r));
  MD_TRY(md_agree(r->whole, md_study_records_create(r->whole, s)));
  if (s->options.resume) MD_TRY(md_study_load(r->whole, s));
  return check_sameness(r);
}
