/* What a solve gives, on the terminal and in the report. */
#include "base/text.h"
#include "solve/solve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A source on one time slice, whose t counts from the first slice of the lattice. */
static bool on_one_slice(const md_source *source) {
  return source->word != MD_WORD_POINTS && source->word != MD_WORD_SEEDED;
}

/* C(t) from the source to t of the lattice. */
static void turn(double *correlator, double *room, int times, int first) {
  for (int t = 0; t < times; t++) room[(t + first) % times] = correlator[t];
  memcpy(correlator, room, (size_t)times * sizeof *correlator);
}

/* Means over the copies of the source with momentum zero of the quark x; room holds the correlators
 * of all right-hand sides. */
static md_status mean_of(md_context *context, const md_solve_run *run,
                         const md_field x[MD_PARITIES], const int (*origin)[MD_DIMS], double *room,
                         double *mean, double *error) {
  const md_solve_options *o = &run->options;
  const int times = run->links.geometry->global[MD_T];
  static const int zero[1][3] = {{0, 0, 0}};
  const md_momenta still = {1, zero};
  MD_TRY(md_pion_correlators(context, x, origin, &still, room));
  md_source_mean(&o->source, (int)o->rhs, room, times, times, mean, error);
  if (!on_one_slice(&o->source)) return MD_OK;
  turn(mean, room, times, origin[0][MD_T]);
  turn(error, room, times, origin[0][MD_T]);
  return MD_OK;
}

/* Of domain walls: the window of m_res leaves out the contact terms near the source on slice
 * `first` of the correlators. */
static md_status observe_walls(md_context *context, md_solve_run *run, const int (*origin)[MD_DIMS],
                               double *room) {
  md_solve_observables *found = &run->observed;
  const int times = run->links.geometry->global[MD_T], n = (int)run->options.rhs;
  const int first = on_one_slice(&run->options.source) ? origin[0][MD_T] : 0;
  double parts[MD_MAX_RHS], trace = 0.0, sum = 0.0;
  if (!found->midpoint) return MD_OK;
  MD_TRY(
      mean_of(context, run, run->midpoint, origin, room, found->midpoint, found->midpoint_error));
  MD_TRY(md_chiral_condensate(context, run->of.b, run->of.x, parts));
  for (int r = 0; r < n; r++)
    trace +=
        parts[r] * (double)run->links.geometry->volume * md_source_width(&run->options.source) / n;
  for (int t = 0; t < times; t++) sum += run->options.mass * found->pion[t] + found->midpoint[t];
  found->residual_mass = md_residual_mass(found->midpoint, found->pion, times, first);
  found->ward = sum / trace - 1.0;
  return MD_OK;
}

/* room holds the correlators of all right-hand sides, with the momenta asked for. */
static md_status correlate(md_context *context, md_solve_run *run, double *room) {
  const md_solve_options *o = &run->options;
  const md_solve_observables *found = &run->observed;
  const int *dims = run->links.geometry->global, times = dims[MD_T], n = (int)o->rhs;
  md_source_vector vectors[MD_MAX_RHS];
  int origin[MD_MAX_RHS][MD_DIMS];
  md_source_expand(&o->source, dims, n, vectors);
  for (int r = 0; r < n; r++) memcpy(origin[r], vectors[r].at, sizeof origin[r]);
  const md_momenta moving = md_momenta_of(&o->momenta);
  MD_TRY(mean_of(context, run, run->of.x, (const int(*)[MD_DIMS])origin, room, found->pion,
                 found->pion_error));
  /* One sum for the three colours, as ever. */
  if (on_one_slice(&o->source) && !md_source_is_random(&o->source))
    MD_TRY(md_pion_correlator(context, run->of.x, found->pion));
  MD_TRY(observe_walls(context, run, (const int(*)[MD_DIMS])origin, room));
  if (!found->momentum) return MD_OK;
  MD_TRY(md_pion_correlators(context, run->of.x, (const int(*)[MD_DIMS])origin, &moving, room));
  const int length = moving.count * times;
  md_source_mean(&o->source, n, room, length, length, found->momentum, found->momentum_error);
  return MD_OK;
}

md_status md_solve_observe(md_context *context, md_solve_run *run) {
  const md_solve_options *o = &run->options;
  md_solve_observables *found = &run->observed;
  const size_t times = (size_t)run->links.geometry->global[MD_T], rhs = (size_t)o->rhs;
  const size_t length = times * (size_t)md_momenta_of(&o->momenta).count;
  const bool noise = md_source_is_noise(&o->source);
  const size_t count = noise ? rhs : 4 * times + (2 + rhs) * length;
  free(found->all);
  *found = (md_solve_observables){.all = calloc(count, sizeof(double))};
  MD_TRY(md_agree(context, found->all ? MD_OK : md_fail_memory(context, count * 8, "observables")));
  if (noise) {
    found->condensate = found->all;
    return md_chiral_condensate(context, run->of.b, run->of.x, found->condensate);
  }
  found->pion = found->all;
  found->pion_error = found->pion + times;
  if (o->momenta.count) {
    found->momentum = found->pion_error + 3 * times;
    found->momentum_error = found->momentum + length;
  }
  if (run->midpoint[0].components) {
    found->midpoint = found->pion_error + times;
    found->midpoint_error = found->midpoint + times;
  }
  return correlate(context, run, found->pion + 4 * times + 2 * length);
}

static bool has_copies(const md_solve_options *o) {
  return o->rhs > md_source_width(&o->source);
}

/* Mean over noise vectors and its standard error (0 for one vector). */
static void mean_condensate(const md_solve_run *run, double *mean, double *error) {
  md_source_mean(&run->options.source, (int)run->options.rhs, run->observed.condensate, 1, 1, mean,
                 error);
}

static void report_momenta(cJSON *object, const md_solve_run *run) {
  const md_momenta momenta = md_momenta_of(&run->options.momenta);
  const int times = run->links.geometry->global[MD_T];
  cJSON *rows = cJSON_AddArrayToObject(object, "pion_momenta");
  for (int q = 0; q < momenta.count; q++) {
    cJSON *row = cJSON_CreateObject();
    cJSON_AddItemToArray(rows, row);
    md_report_integers(row, "momentum", momenta.n[q], 3);
    md_report_reals(row, "correlator", run->observed.momentum + q * times, times);
    if (has_copies(&run->options))
      md_report_reals(row, "error", run->observed.momentum_error + q * times, times);
  }
}

void md_solve_report_observables(cJSON *object, const md_solve_run *run) {
  const md_solve_observables *found = &run->observed;
  const int times = run->links.geometry->global[MD_T];
  double mean, error;
  if (found->pion) {
    md_report_reals(object, "pion_correlator", found->pion, times);
    if (has_copies(&run->options))
      md_report_reals(object, "pion_correlator_error", found->pion_error, times);
    cJSON_AddStringToObject(object, "pion_correlator_from",
                            on_one_slice(&run->options.source) ? "lattice" : "source");
  }
  if (found->midpoint) {
    md_report_reals(object, "midpoint_correlator", found->midpoint, times);
    if (!isnan(found->residual_mass))
      md_report_add(object, "residual_mass=%g", found->residual_mass);
    md_report_add(object, "ward_deviation=%g", found->ward);
  }
  if (found->momentum) report_momenta(object, run);
  if (!found->condensate) return;
  mean_condensate(run, &mean, &error);
  if (run->options.rhs == 1) error = NAN; /* one estimate has no error that is known */
  md_report_add(object, "chiral_condensate=%g chiral_condensate_error=%g", mean, error);
  md_report_reals(object, "chiral_condensate_estimates", found->condensate, (int)run->options.rhs);
}

void md_solve_print_observables(const md_context *context, const md_solve_run *run) {
  const md_solve_observables *found = &run->observed;
  const md_momenta momenta = md_momenta_of(&run->options.momenta);
  const int times = run->links.geometry->global[MD_T];
  const bool copies = has_copies(&run->options);
  char text[MD_ERROR_TEXT];
  double mean, error;
  if (found->pion)
    md_say(context, "pion correlator, t%s and C(t)%s\n",
           on_one_slice(&run->options.source) ? "" : " from the source",
           copies ? " with its error over sources" : "");
  for (int t = 0; found->pion && t < times; t++)
    if (copies)
      md_say(context, "%3d  %s\n", t, md_format_error(found->pion[t], found->pion_error[t], text));
    else
      md_say(context, "%3d  %.16g\n", t, found->pion[t]);
  if (found->midpoint && isnan(found->residual_mass))
    md_say(context, "residual m   Ward identity within %.1e\n", fabs(found->ward));
  else if (found->midpoint)
    md_say(context, "residual m   m_res = %.12g, Ward identity within %.1e\n", found->residual_mass,
           fabs(found->ward));
  for (int q = 0; found->momentum && q < momenta.count; q++) {
    md_say(context, "momentum %d %d %d, t from the source and C(t)\n", momenta.n[q][0],
           momenta.n[q][1], momenta.n[q][2]);
    for (int t = 0; t < times; t++)
      md_say(context, "%3d  %.16g\n", t, found->momentum[q * times + t]);
  }
  if (!found->condensate) return;
  mean_condensate(run, &mean, &error);
  md_say(context, "condensate   tr M^-1 / V = %s over %lld source%s\n",
         md_format_error(mean, copies ? error : NAN, text), run->options.rhs,
         md_plural(run->options.rhs));
}

void md_solve_print_head(const md_context *context, const md_solve_run *run) {
  const md_solve_options *o = &run->options;
  const md_dirac *d = md_solve_operator(run);
  md_run_say_head(context, &o->run, &run->links, md_halo_bytes(d->halo));
  md_say(context, "transport    %s: %s\n", md_halo_transport(d->halo), md_halo_reason(d->halo));
  md_say(context, "operator     %s, packing %s, %s, inner %s, %s reals per link; mass %g, %s\n",
         d->backend->name, md_packing_name(d->request.packing), o->run.precision, o->run.inner,
         o->run.reconstruct, o->mass, o->run.boundary);
  if (d->request.packing != MD_PACKING_NONE)
    md_say(context, "packing      %s\n", d->packing_reason);
  md_run_say(context, &o->run, &run->links);
  if (o->run.request.action == MD_ACTION_WILSON)
    md_say(context, "kappa        %.15g\n", md_physics_kappa(MD_ACTION_WILSON, o->mass));
  md_say(context, "source       %s, %d right-hand side%s%s\n", o->source.text, (int)o->rhs,
         md_plural(o->rhs), o->shifts.count > 0 ? ", even sites" : "");
  if (o->run.inner_reason[0])
    md_say(context, "inner        %s: %s\n", o->run.inner, o->run.inner_reason);
  if (o->guess) md_say(context, "guess        %s\n", o->guess);
}

void md_solve_print(const md_context *context, const md_solve_run *run) {
  const md_solve_options *o = &run->options;
  const md_solver_result *r = &run->result;
  md_say(context, "solver       %d iteration%s, %.3f s, %.2f GFLOP/s\n", r->iterations,
         md_plural(r->iterations), r->seconds, r->gflops);
  if (o->how.before == MD_PRECONDITION_CHEBYSHEV)
    md_say(context, "polynomial   of degree %lld, in %s\n", o->how.degree,
           o->run.mixed ? o->run.inner : o->run.precision);
  if (o->deflate)
    md_say(context, "deflated     %d mode%s of %s in %s, %d projection%s\n", run->modes.count,
           md_plural(run->modes.count), o->deflate, md_modes_store_name(run->modes_info.store),
           r->projections, md_plural(r->projections));
  if (r->choice.reason[0])
    md_say(context, "chosen       %s: %s\n", r->choice.block ? "block" : "cg", r->choice.reason);
  if (r->block_rank > 0 && r->block_rank < r->n_rhs)
    md_say(context, "block        shrunk: of %d right-hand sides %d were independent at least\n",
           r->n_rhs, r->block_rank);
  if (o->run.mixed && o->how.before == MD_PRECONDITION_NONE)
    md_say(context, "updates      %d of the solution in double, %d restart%s\n", r->updates,
           r->restarts, md_plural(r->restarts));
  md_say(context, "residual     %.3e (true, double), asked %g: %s\n", r->relative_residual,
         o->tolerance,
         r->converged              ? "converged"
         : md_solve_cut_short(run) ? "interrupted"
                                   : "NOT converged");
  md_solve_print_observables(context, run);
}

static void report_result(cJSON *root, const md_solve_run *run) {
  const md_solver_result *r = &run->result;
  md_report_add(root,
                "iterations=%d converged=%hhd interrupted=%hhd relative_residual=%g "
                "reliable_updates=%d inner_restarts=%d",
                r->iterations, r->converged, md_solve_cut_short(run), r->relative_residual,
                r->updates, r->restarts);
  if (r->choice.reason[0])
    md_report_add(root, "solver_chosen=%s solver_reason=%s", r->choice.block ? "block" : "cg",
                  r->choice.reason);
  /* What was known when one of the two ways was chosen, and when it was given up. */
  if (r->choice.reason[0] && r->choice.steps_expected > 0.0)
    md_report_add(cJSON_AddObjectToObject(root, "solver_criterion"),
                  "cg_iterations_expected=%g block_iterations_expected=%g changed_at_iteration=%d",
                  r->choice.steps_expected, r->choice.block_expected, r->choice.changed_at);
  if (r->block_rank > 0) cJSON_AddNumberToObject(root, "block_rank", r->block_rank);
  if (run->options.guess) cJSON_AddStringToObject(root, "guess", run->options.guess);
  if (run->options.deflate)
    md_report_add(root, "deflate=%s deflated_modes=%d mode_projections=%d", run->options.deflate,
                  run->modes.count, r->projections);
  if (run->options.checkpoint_every > 0)
    cJSON_AddNumberToObject(root, "checkpoint_failures", run->checkpoint_failures);
  md_report_reals(root, "residuals", r->residuals, r->n_rhs);
  md_report_integers(root, "rhs_iterations", r->rhs_iterations, r->n_rhs);
  md_report_reals(root, "residual_history", r->history, r->iterations + 1);
  md_report_add(root, "solver_seconds=%g load_seconds=%g gflops=%g", r->seconds,
                md_solve_operator(run)->load_s, r->gflops);
  md_solve_report_observables(root, run);
}

void md_solve_report_common(md_report *report, const md_solve_run *run) {
  const md_solve_options *o = &run->options;
  const md_dirac *d = md_solve_operator(run);
  md_run_report(report, &o->run, &run->links);
  md_report_add(report->root,
                "mass=%g backend=%s transport=%s transport_reason=%s packing=%s packing_reason=%s "
                "precision=%s inner=%s reconstruct=%s solver=%s source=%s rhs=%d rhs_block=%d "
                "tolerance=%g halo_bytes=%g",
                o->mass, d->backend->name, md_halo_transport(d->halo), md_halo_reason(d->halo),
                md_packing_name(d->request.packing), d->packing_reason, o->run.precision,
                o->run.inner, o->run.reconstruct, o->how.solver, o->source.text,
                o->run.request.n_rhs, md_solver_at_once(d, o->run.request.n_rhs), o->tolerance,
                (double)md_halo_bytes(d->halo));
  md_kappa_report(report->root, o->run.request.action, o->mass);
  md_solver_options_report(report->root, &o->how);
  if (o->run.inner_reason[0])
    cJSON_AddStringToObject(report->root, "inner_reason", o->run.inner_reason);
}

md_status md_solve_report(md_context *context, const md_solve_run *run, md_status written) {
  md_report report;
  MD_TRY(md_report_open(context, "solve", &report));
  md_solve_report_common(&report, run);
  report_result(report.root, run);
  if (run->options.output)
    md_report_add(report.root, "output=%s output_written=%hhd", run->options.output,
                  (bool)(written == MD_OK && !md_solve_cut_short(run)));
  return md_report_close_after(context, &report, run->options.run.common.json, written);
}
