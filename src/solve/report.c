#include "base/report.h"
#include "base/text.h"
#include "lattice/halo/halo.h"
#include "solve/solve.h"

static void print_lattice(const md_context *context, const md_solve_run *run) {
  const int *d = run->links.geometry->global;
  const char *name = run->options.lattice;
  md_say(context, "lattice      %s%s%dx%dx%dx%d", name ? name : "", name ? ", " : "", d[0], d[1],
         d[2], d[3]);
  if (name) md_say(context, ", plaquette %.12f", run->links.plaquette);
  md_say(context, "\n");
}

void md_solve_print_action(const md_context *context, const md_solve_run *run) {
  const md_solve_options *o = &run->options;
  char words[MD_PHYSICS_WORDS_BYTES];
  md_say(context, "action       %s\n",
         md_physics_words(&o->physics, &o->request, words, sizeof words));
  md_action_links_say(context, &o->physics, &run->links);
}

void md_solve_print(const md_context *context, const md_solve_run *run) {
  const md_solve_options *o = &run->options;
  const md_geometry *g = run->links.geometry;
  const md_solver_result *r = &run->result;
  print_lattice(context, run);
  md_say(context,
         "ranks        %d (grid %dx%dx%dx%d), %d thread%s each, %lld halo bytes per hop and rank\n",
         context->ranks, g->grid[0], g->grid[1], g->grid[2], g->grid[3], context->threads,
         md_plural(context->threads), (long long)md_halo_bytes(md_solve_operator(run)->halo));
  if (context->ranks > 1) md_say(context, "rank grid    %s\n", g->grid_reason);
  md_say(context, "transport    %s: %s\n", md_halo_transport(md_solve_operator(run)->halo),
         md_halo_reason(md_solve_operator(run)->halo));
  md_say(context, "operator     %s, packing %s, %s, inner %s, %s reals per link; mass %g, %s\n",
         md_solve_operator(run)->backend->name, o->packing, o->precision, o->inner, o->reconstruct,
         o->mass, o->boundary);
  md_solve_print_action(context, run);
  md_say(context, "source       %s, %d right-hand side%s\n", o->source.text, r->n_rhs,
         md_plural(r->n_rhs));
  md_say(context, "solver       %d iteration%s, %.3f s, %.2f GFLOP/s\n", r->iterations,
         md_plural(r->iterations), r->seconds, r->gflops);
  if (o->how.before == MD_PRECONDITION_CHEBYSHEV)
    md_say(context, "polynomial   of degree %lld, in %s\n", o->how.degree,
           o->mixed ? o->inner : o->precision);
  if (o->guess) md_say(context, "guess        %s\n", o->guess);
  if (o->deflate)
    md_say(context, "deflated     %d mode%s of %s in %s, %d projection%s\n", run->modes.count,
           md_plural(run->modes.count), o->deflate, md_modes_store_name(run->modes_info.store),
           r->projections, md_plural(r->projections));
  if (r->choice.reason[0])
    md_say(context, "chosen       %s: %s\n", r->choice.block ? "block" : "cg", r->choice.reason);
  if (r->block_rank > 0 && r->block_rank < r->n_rhs)
    md_say(context, "block        shrunk: of %d right-hand sides %d were independent at least\n",
           r->n_rhs, r->block_rank);
  if (o->mixed && o->how.before == MD_PRECONDITION_NONE)
    md_say(context, "updates      %d of the solution in double, %d restart%s\n", r->updates,
           r->restarts, md_plural(r->restarts));
  md_say(context, "residual     %.3e (true, double), asked %g: %s\n", r->relative_residual,
         o->tolerance,
         r->converged              ? "converged"
         : md_solve_cut_short(run) ? "interrupted"
                                   : "NOT converged");
  md_solve_print_observables(context, run);
}

/* What was known when one of the two ways was chosen, and when it was given up. */
static void report_choice(cJSON *root, const md_solver_choice *choice) {
  cJSON *known = cJSON_AddObjectToObject(root, "solver_criterion");
  md_report_add(known,
                "cg_iterations_expected=%g block_iterations_expected=%g changed_at_iteration=%d",
                choice->steps_expected, choice->block_expected, choice->changed_at);
}

static void report_result(cJSON *root, const md_solve_run *run) {
  const md_solver_result *r = &run->result;
  md_report_add(root,
                "iterations=%d converged=%hhd interrupted=%hhd relative_residual=%g "
                "reliable_updates=%d inner_restarts=%d",
                r->iterations, r->converged, md_solve_cut_short(run), r->relative_residual,
                r->updates, r->restarts);
  if (r->choice.reason[0]) {
    md_report_add(root, "solver_chosen=%s solver_reason=%s", r->choice.block ? "block" : "cg",
                  r->choice.reason);
    if (r->choice.steps_expected > 0.0) report_choice(root, &r->choice);
  }
  if (r->block_rank > 0) cJSON_AddNumberToObject(root, "block_rank", r->block_rank);
  if (run->options.guess) cJSON_AddStringToObject(root, "guess", run->options.guess);
  if (run->options.deflate) {
    md_report_add(root, "deflate=%s deflated_modes=%d projections=%d", run->options.deflate,
                  run->modes.count, r->projections);
  }
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
  cJSON *root = report->root;
  if (o->lattice) cJSON_AddStringToObject(root, "lattice", o->lattice);
  md_report_integers(root, "dims", run->links.geometry->global, MD_DIMS);
  md_report_add(root, "mass=%g boundary=%s", o->mass, o->boundary);
  md_physics_report(root, &o->request);
  md_action_links_report(report, &o->physics, &run->links);
  md_report_add(root,
                "backend=%s transport=%s transport_reason=%s packing=%s precision=%s inner=%s "
                "reconstruct=%s solver=%s source=%s rhs=%d tolerance=%g halo_bytes=%g",
                md_solve_operator(run)->backend->name,
                md_halo_transport(md_solve_operator(run)->halo),
                md_halo_reason(md_solve_operator(run)->halo), o->packing, o->precision, o->inner,
                o->reconstruct, o->how.solver, o->source.text, o->request.n_rhs, o->tolerance,
                (double)md_halo_bytes(md_solve_operator(run)->halo));
  md_solver_options_report(root, &o->how);
}

md_status md_solve_report(md_context *context, const md_solve_run *run, md_status written) {
  md_report report;
  MD_TRY(md_agree(context, md_report_open(context, "solve", &report)));
  md_solve_report_common(&report, run);
  report_result(report.root, run);
  if (run->options.output) {
    md_report_add(report.root, "output=%s output_written=%hhd", run->options.output,
                  (bool)(written == MD_OK));
  }
  return md_report_close_after(context, &report, run->options.common.json, written);
}
