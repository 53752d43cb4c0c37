/* What is looked at before the first lattice of a study is measured. */
#include "base/interrupt.h"
#include "base/memory_need.h"
#include "base/text.h"
#include "dirac/backend.h"
#include "io/site_data.h"
#include "lattice/gauge/smear.h"
#include "measure/masses.h"
#include "measure/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* No file that is written is a lattice or has modes, and --output replaces nothing unasked. */
static md_status check_output(md_context *context, const md_study *s) {
  const md_study_options *o = &s->options;
  md_made_files read = {0};
  md_status status = MD_OK;
  for (int k = 0; k < s->lattices && status == MD_OK; k++)
    status = md_made_files_add(context, &read, "--lattices", s->lattice[k].name, MD_FILE_INPUT);
  if (status == MD_OK) status = md_study_modes_list(context, s, &read);
  MD_TRY(md_options_check_made(context, &o->common, &read, status));
  const bool there = context->rank == 0 && access(o->output, F_OK) == 0;
  if (there && !o->resume && !o->force)
    status = md_fail(context, MD_INPUT,
                     "--output replaces no file, but %s is there; go on with it by --resume, add "
                     "--force or give another name",
                     o->output);
  return md_agree(context, status);
}

md_status md_study_leave_out(md_study_run *r, int lattice, md_status status, const char *why) {
  md_study_lattice *l = &r->study.lattice[lattice];
  const bool may = status == MD_INPUT || status == MD_UNREACHED;
  if (!r->study.options.keep_going || !may || md_interrupt_name(r->whole)) {
    const bool named = strstr(why, l->name) != NULL;
    return md_fail(r->whole, status, "%s%s%s", named ? "" : l->name, named ? "" : ": ", why);
  }
  md_warn(r->whole, "%s is left out: %s", l->name, why);
  snprintf(l->reason, sizeof l->reason, "%s", why);
  l->state = MD_LATTICE_SKIPPED;
  r->skipped++;
  return MD_OK;
}

/* Looks at the header of every lattice, and of its modes, before the first is measured: the first
 * that can be read has the extents of all. The first group's verdict counts for all. */
static md_status look(md_study_run *r, int lattice, bool *known) {
  md_study *s = &r->study;
  md_geometry plan = {0};
  md_lattice_header header;
  struct {
    md_status status;
    int dims[MD_DIMS];
    int64_t modes_bytes;
    char stated[sizeof s->lattice->stated], message[sizeof r->whole->message];
  } found = {MD_OK, {0}, 0, "", ""};
  found.status =
      md_lattice_plan(r->group, s->lattice[lattice].name, s->options.common.grid, &plan, &header);
  if (found.status == MD_OK) md_checksum_print(&header.checksum, found.stated, sizeof found.stated);
  if (found.status == MD_OK)
    found.status = md_study_modes_look(r->group, s, lattice, &plan, &found.modes_bytes);
  memcpy(found.dims, plan.global, sizeof found.dims);
  snprintf(found.message, sizeof found.message, "%s", r->group->message);
  md_broadcast(r->whole, &found, sizeof found);
  if (found.status != MD_OK) return md_study_leave_out(r, lattice, found.status, found.message);
  memcpy(s->lattice[lattice].stated, found.stated, sizeof found.stated);
  if (!*known) memcpy(s->dims, found.dims, sizeof s->dims);
  *known = true;
  if (found.modes_bytes > r->modes_bytes) r->modes_bytes = found.modes_bytes;
  if (memcmp(s->dims, found.dims, sizeof s->dims) == 0) return MD_OK;
  snprintf(found.message, sizeof found.message,
           "the extents must be %dx%dx%dx%d as those of the other lattices, got %dx%dx%dx%d in "
           "%.200s",
           s->dims[0], s->dims[1], s->dims[2], s->dims[3], found.dims[0], found.dims[1],
           found.dims[2], found.dims[3], s->lattice[lattice].name);
  return md_study_leave_out(r, lattice, MD_INPUT, found.message);
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

static md_status plan_backend(const planned *p, md_space *space) {
  const md_study_options *o = &p->run->study.options;
  const md_physics_options physics = md_study_physics(o, p->action);
  md_backend_request request = o->request;
  const md_backend *backend;
  request.n_rhs = md_study_width(o);
  md_physics_apply(&physics, &request);
  MD_TRY(md_backend_find(p->run->group, o->backend, &request, &backend));
  p->run->backend = backend->name;
  *space = backend->space;
  return MD_OK;
}

/* Thin links, which stay, those that are made of them, and the modes. */
static md_status count_links(md_context *context, const planned *p, md_space space,
                             const md_geometry *g, md_gauge field[MD_MOST_LINK_FIELDS]) {
  const md_physics_options physics = md_study_physics(&p->run->study.options, p->action);
  const md_smear_request smear = md_physics_smear(&physics, space);
  const int fields = md_action_get(md_physics_action(&physics))->fields;
  const int64_t modes = p->run->modes_bytes;
  md_memory_need loading = {md_lattice_load_bytes(g) - md_geometry_bytes(g), 0};
  md_memory_need making = {md_gauge_bytes(g), 0};
  if (smear.recipe) md_smear_need(g, &smear, &making);
  const md_memory_need mark = md_memory_mark(context);
  md_count_memory(context, loading);
  md_memory_return_to(context, mark);
  md_count_memory(context, making);
  md_memory_return_to(context, mark);
  for (int f = 0; f < fields; f++) MD_TRY(md_gauge_create(context, g, &field[f]));
  md_count_memory(context, (md_memory_need){smear.recipe ? md_gauge_bytes(g) : 0, 0});
  md_count_memory(context,
                  (md_memory_need){space == MD_HOST ? modes : 0, space == MD_DEVICE ? modes : 0});
  return MD_OK;
}

static md_status dry_run(md_context *context, void *user) {
  const planned *p = user;
  const md_study *s = &p->run->study;
  md_layout_request layout = md_study_layout(context, s);
  md_gauge field[MD_MOST_LINK_FIELDS] = {0};
  const md_study_links links = {.action = p->action, .field = field};
  md_propagator propagator = {.s = s};
  md_space space = MD_HOST;
  md_geometry *geometry = NULL;
  MD_TRY(plan_backend(p, &space));
  MD_TRY(md_geometry_create(context, &layout, &geometry));
  md_status status = count_links(context, p, space, geometry, field);
  if (status == MD_OK)
    status = md_propagator_create(context, &links, md_study_width(&s->options), &propagator);
  if (status == MD_OK)
    status = md_study_multishift(&s->options) ? md_propagate_together(context, &propagator)
                                              : md_propagate_apart(context, &propagator);
  p->run->plan = *geometry;
  md_propagator_destroy(&propagator);
  md_geometry_destroy(geometry);
  return status;
}

/* The most that any action needs. */
static md_status require_memory(md_study_run *r) {
  md_memory_need most = {0}, need;
  md_status status = MD_OK;
  for (int a = 0; a < r->study.options.actions.count && status == MD_OK; a++) {
    planned p = {r, a};
    status = md_memory_foresee(r->group, dry_run, &p, &need);
    most = md_memory_larger(most, need);
  }
  if (status != MD_OK && r->group != r->whole) /* told by the group */
    snprintf(r->whole->message, sizeof r->whole->message, "%s", r->group->message);
  MD_TRY(md_agree(r->whole, status));
  return md_memory_require(r->whole, &most, "measure");
}

md_status md_study_prepare(md_study_run *r) {
  md_study *s = &r->study;
  MD_TRY(md_study_list(r->whole, s));
  MD_TRY(check_output(r->whole, s));
  MD_TRY(look_at_all(r));
  MD_TRY(require_memory(r));
  MD_TRY(md_agree(r->whole, md_study_records_create(r->whole, s)));
  if (s->options.resume) MD_TRY(md_study_load(r->whole, s));
  return md_study_check_sameness(r);
}
