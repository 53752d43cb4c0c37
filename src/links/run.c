#include "links/run.h"

#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

md_status md_run_set_request(md_context *context, md_run_options *o) {
  const bool asked = strcmp(o->inner, "none") != 0;
  o->mixed = asked && strcmp(o->inner, "auto") != 0; /* which is double until it is chosen */
  o->request = (md_backend_request){
      .precision = (md_precision)md_precision_of(o->mixed ? o->inner : o->precision),
      .reconstruct = (md_reconstruct)md_reconstruct_of(o->reconstruct),
      .packing = (md_packing)md_packing_of(o->packing),
      .n_rhs = 1,
      .pads = true,
      .antiperiodic = strcmp(o->boundary, "antiperiodic") == 0};
  if (!asked || strcmp(o->precision, "double") == 0) return MD_OK;
  return md_fail(context, MD_INPUT,
                 "--inner needs --precision double, in which the residual is kept, got %s",
                 o->precision);
}

md_status md_inner_choose(md_context *context, const char *backend, const md_auto_inner *facts,
                          md_backend_request *request, char reason[MD_INNER_REASON_BYTES]) {
  static const md_precision candidates[] = {MD_HALF, MD_SINGLE};
  md_auto_inner f = *facts;
  const md_backend *found;
  *reason = '\0';
  if (!f.solver || (f.solver->takes & MD_TAKES_INNER) == 0) {
    snprintf(reason, MD_INNER_REASON_BYTES, "the rule is for cg, block, bicgstab or auto");
    return MD_OK;
  }
  MD_TRY(md_backend_find(context, backend, request, &found));
  f.on_host = found->space == MD_HOST;
  const bool spin = md_action_has_spin(request->action);
  /* On a host half takes as long as single where right-hand sides share the links, and longer with
   * four spins. */
  const bool from_single = f.on_host ? f.n_rhs > 1 || spin : f.solver == &md_solver_bicgstab;
  for (int k = from_single; k < 2; k++) {
    md_backend_request narrow = *request;
    double noise, most;
    narrow.precision = candidates[k];
    const char *name = md_precision_name(narrow.precision);
    const bool fits = spin || md_auto_inner_fits(&f, narrow.precision, &noise, &most);
    const bool served = fits && md_backend_find(context, backend, &narrow, &found) == MD_OK;
    md_append(reason, MD_INNER_REASON_BYTES, "%srounding in %s ", *reason ? "; " : "", name);
    if (spin)
      md_append(reason, MD_INNER_REASON_BYTES, "times a kappa that iterations measure");
    else
      md_append(reason, MD_INNER_REASON_BYTES, "times kappa %.2g", noise);
    if (fits && !served) md_append(reason, MD_INNER_REASON_BYTES, " (not served)");
    if (!served && !fits) md_append(reason, MD_INNER_REASON_BYTES, " above %g", most);
    if (!served) continue;
    request->precision = narrow.precision;
    return MD_OK;
  }
  return MD_OK;
}

md_status md_run_choose_inner(md_context *context, md_run_options *o, const md_auto_inner *facts,
                              md_backend_request *request) {
  if (strcmp(o->inner, "auto") != 0) return MD_OK;
  MD_TRY(md_inner_choose(context, o->backend, facts, request, o->inner_reason));
  o->mixed = request->precision != MD_DOUBLE;
  o->inner = o->mixed ? md_precision_name(request->precision) : "none";
  return MD_OK;
}

md_status md_run_check(md_context *context, const char *command, md_run_options *o) {
  if (!o->lattice && !o->physics.fat_file)
    return md_fail(context, MD_INPUT,
                   "%s needs --lattice LATTICE, with or without the flag, or --fat FILE and --long "
                   "FILE; see minidirac %s --help",
                   command, command);
  MD_TRY(md_physics_check(context, &o->physics));
  MD_TRY(md_run_set_request(context, o));
  md_physics_apply(&o->physics, &o->request);
  return MD_OK;
}

md_status md_run_load(md_context *context, const md_run_options *o, md_space space, bool identify,
                      md_action_links *links) {
  const md_action_links_request from = {.physics = &o->physics,
                                        .lattice = o->lattice,
                                        .grid = o->common.grid,
                                        .ignore_checksum = o->ignore_checksum,
                                        .space = space,
                                        .identify = identify};
  return md_action_links_load(context, &from, links);
}

void md_report_geometry(md_report *report, const md_geometry *g) {
  md_report_grid(report, g->grid, g->grid_asked, g->grid_reason);
  md_report_integers(report->root, "dims", g->global, MD_DIMS);
}

void md_run_report(md_report *report, const md_run_options *o, const md_action_links *links) {
  md_report_geometry(report, links->geometry);
  if (o->lattice) cJSON_AddStringToObject(report->root, "lattice", o->lattice);
  cJSON_AddStringToObject(report->root, "boundary", o->boundary);
  md_physics_report(report->root, &o->request);
  md_action_links_report(report->root, &o->physics, links);
}

static void say_bytes(const md_context *context, double bytes) {
  if (bytes < 1e9) md_say(context, "%.1f MB", 1e-6 * bytes);
  if (bytes >= 1e9) md_say(context, "%.2f GB", 1e-9 * bytes);
}

void md_say_ranks(const md_context *context, const md_geometry *g, int64_t halo_bytes) {
  md_say(context, "ranks        %d (grid %dx%dx%dx%d), %d thread%s each", context->ranks,
         g->grid[0], g->grid[1], g->grid[2], g->grid[3], context->threads,
         md_plural(context->threads));
  if (halo_bytes >= 0) md_say(context, ", %lld halo bytes per hop and rank", (long long)halo_bytes);
  if (context->ranks > 1) md_say(context, "\nrank grid    %s", g->grid_reason);
  md_say(context, "\nmemory       ");
  say_bytes(context, (double)context->host_need);
  if (context->device_need > 0) {
    md_say(context, " and on the GPU ");
    say_bytes(context, (double)context->device_need);
  }
  md_say(context, " a rank, estimated\n");
}

void md_run_say_head(const md_context *context, const md_run_options *o,
                     const md_action_links *links, int64_t halo_bytes) {
  const int *dims = links->geometry->global;
  md_say(context, "lattice      %s%s%dx%dx%dx%d", o->lattice ? o->lattice : "",
         o->lattice ? ", " : "", dims[0], dims[1], dims[2], dims[3]);
  if (o->lattice) md_say(context, ", plaquette %.12f", links->plaquette);
  md_say(context, "\n");
  md_say_ranks(context, links->geometry, halo_bytes);
}

void md_run_progress(md_progress *progress, const char *what, int from, int iteration, double first,
                     double residual, double tolerance) {
  const double fraction = log(residual / first) / log(tolerance / first);
  if (fraction > 0.0 && fraction <= 1.0)
    md_progress_update(progress, fraction, "%siteration %d of about %.0f, residual %.2e", what,
                       iteration, from + (iteration - from) / fraction, residual);
  else
    md_progress_update(progress, -1.0, "%siteration %d, residual %.2e", what, iteration, residual);
}

void md_run_say(const md_context *context, const md_run_options *o, const md_action_links *links) {
  char words[MD_PHYSICS_WORDS_BYTES];
  md_say(context, "action       %s\n",
         md_physics_words(&o->physics, &o->request, words, sizeof words));
  md_action_links_say(context, &o->physics, links);
}

md_status md_host_fields(md_context *context, const md_geometry *geometry,
                         const md_backend_request *request, md_field field[MD_PARITIES]) {
  const md_field_shape shape = {MD_DOUBLE,      MD_HOST, md_action_reals(request->action),
                                request->n_rhs, true,    false};
  md_status status = MD_OK;
  for (int p = 0; p < MD_PARITIES && status == MD_OK; p++)
    status = md_field_create(context, geometry, &shape, p, &field[p]);
  return md_agree(context, status);
}

md_status md_equation_create(md_context *context, const md_run_options *o,
                             const md_backend_request *request, const md_gauge *links,
                             md_equation *e) {
  md_backend_request at_once = *request;
  if (o->parts) md_solver_part_request(context, o->backend, links->geometry->local, &at_once);
  MD_TRY(md_solver_operators(context, links, o->backend, &at_once, &o->halo, o->mixed, &e->dirac,
                             &e->exact, &e->inner));
  MD_TRY(md_host_fields(context, links->geometry, request, e->b));
  return md_host_fields(context, links->geometry, request, e->x);
}

void md_equation_destroy(md_equation *e) {
  for (int p = 0; p < MD_PARITIES; p++) MD_FIELDS_DESTROY(&e->b[p], &e->x[p]);
  md_dirac_destroy(&e->dirac);
  md_dirac_destroy(&e->exact);
  md_dirac_destroy(&e->inner);
}

md_dirac *md_equation_exact(md_equation *e) {
  return e->exact.backend ? &e->exact : &e->dirac;
}
