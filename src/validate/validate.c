#include "validate/validate.h"
#include "base/interrupt.h"
#include "base/memory_need.h"
#include "commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Right-hand sides to try, in this order: some packings need a whole tile of them. */
static const int rhs_counts[] = {1, 8, 16};
enum { RHS_COUNTS = sizeof rhs_counts / sizeof *rhs_counts };

static md_status read_options(md_context *context, md_validate_options *o, int argc, char **argv) {
  *o =
      (md_validate_options){.run = MD_RUN_DEFAULTS, .mass = 0.1, .seed = 1, .max_iterations = 3000};
  o->run.backend = o->run.packing = o->run.precision = o->run.reconstruct = "all";
  char backends[MD_BACKEND_WORDS_BYTES];
  md_option options[] = {
      MD_LATTICE_OR_FAT_OPTION(o->run.lattice),
      MD_OPTION(CHOICE, "backend", &o->run.backend, NULL,
                "see docs/backends.md; all that are available [all]",
                .choices = md_backend_words("all", backends), .group = MD_GROUP_MACHINE),
      MD_OPTION(CHOICE, "packing", &o->run.packing, NULL, "of Tensor Core backends [all]",
                .choices = "all" MD_PACKING_WORDS),
      MD_OPTION(CHOICE, "precision", &o->run.precision, NULL, "storage of links and fermions [all]",
                .choices = "all" MD_PRECISION_WORDS),
      MD_OPTION(CHOICE, "reconstruct", &o->run.reconstruct, NULL, "reals a link is stored in [all]",
                .choices = "all" MD_RECONSTRUCT_WORDS),
      MD_OPTION(REAL, "mass", &o->mass, "M", "quark mass of MdagM and the solver [0.1]",
                .group = MD_GROUP_PHYSICS),
      MD_BOUNDARY_OPTION(o->run.boundary),
      MD_OPTION(INTEGER, "seed", &o->seed, "N", "of the random fields [1]", .low = 0, .high = 1e15,
                .group = MD_GROUP_SOLVER),
      MD_OPTION(INTEGER, "max-iter", &o->max_iterations, "N",
                "iterations of each solver at most [3000]", .low = 1, .high = 10000000),
      MD_HALO_OPTIONS(o->run.halo, o->run.common),
      MD_PHYSICS_OPTIONS(o->run.physics),
      MD_REUNITARIZE_OPTION(o->run.physics.reunitarize),
      MD_OPTION(TEXT, "csv", &o->csv, "FILE", "the rows of the operators as CSV",
                .file = MD_FILE_REPORT, .group = MD_GROUP_OUTPUT),
      MD_OPTION(TEXT, "solver-csv", &o->solver_csv, "FILE", "the rows of the solvers as CSV",
                .file = MD_FILE_REPORT),
      MD_IGNORE_CHECKSUM_OPTION(o->run.ignore_checksum),
      MD_COMMON_OPTIONS(o->run.common)};
  const md_command_text text = {
      "validate", "Hold every backend, packing and precision to double cpu_ref.",
      "Errors of Deo, Doe and MdagM with their a-priori bounds, links in 16 bits, broken "
      "symmetry,\n"
      "and what the solver reaches in each precision. Exit 1 when a bound is broken.",
      "minidirac validate inputs/beta5.7_4x4x4x8.lime --backend cpu_simd --json validate.json"};
  MD_TRY(md_options_read(context, &text, options, sizeof options / sizeof *options, &o->run.common,
                         argc, argv));
  if (o->run.common.help) return MD_OK;
  MD_TRY(md_run_check(context, "validate", &o->run));
  return md_physics_check_mass(context, "mass", o->run.request.action, o->mass);
}

static bool wanted(const char *asked, const char *name) {
  return strcmp(asked, "all") == 0 || strcmp(asked, name) == 0;
}

/* The request with the first number of right-hand sides that the backend serves. */
static md_status find_request(md_context *context, const char *backend, md_backend_request *request,
                              int least) {
  const md_backend *found;
  md_status status = MD_INPUT;
  for (int i = 0; i < RHS_COUNTS && status != MD_OK; i++) {
    request->n_rhs = rhs_counts[i] > least ? rhs_counts[i] : least;
    status = md_backend_find(context, backend, request, &found);
    if (status == MD_ENVIRONMENT) return status;
  }
  return status;
}

/* Adds the transport of an operator to those of the report. */
static void note_transport(md_validate_run *run, const md_dirac *dirac) {
  const char *name = md_halo_transport(dirac->halo);
  const size_t used = strlen(run->transport);
  if (strstr(run->transport, name)) return;
  snprintf(run->transport + used, sizeof run->transport - used, "%s%s", used ? "," : "", name);
}

static md_status check_case(md_context *context, md_validate_run *run, const md_backend *backend,
                            const md_backend_request *request) {
  md_backend_request exact = *request;
  md_dirac dirac, reference;
  const md_memory_need mark = md_memory_mark(context);
  exact.precision = MD_DOUBLE;
  exact.reconstruct = MD_RECONSTRUCT_18;
  exact.packing = MD_PACKING_NONE;
  MD_TRY(md_dirac_create_over(context, run->links.field, backend->name, request,
                              &run->options.run.halo, &dirac));
  note_transport(run, &dirac);
  md_status status = md_dirac_create(context, run->links.field, "cpu_ref", &exact, &reference);
  if (status == MD_OK) {
    status = md_validate_operator(context, run, &dirac, &reference);
    md_dirac_destroy(&reference);
  }
  md_dirac_destroy(&dirac);
  md_memory_return_to(context, mark);
  return status;
}

/* True when it is the action or the twist that keeps the backend from serving the request; then the
 * message says why. */
static bool physics_is_why(md_context *context, const md_backend *backend,
                           md_backend_request *request) {
  md_backend_request plain = *request;
  const bool has_phase = md_reconstruct_has_phase(request->reconstruct);
  if (has_phase && md_action_get(request->action)->fields < 2) return true;
  if (!has_phase) plain.action = MD_ACTION_NAIVE;
  plain.twist = (md_twist){0};
  return find_request(context, backend->name, &plain, 1) == MD_OK &&
         find_request(context, backend->name, request, 1) != MD_OK;
}

/* Notes why a request is not served, with the message of the context; says it once for each backend
 * and reason. */
static void skip(md_context *context, md_validate_run *run, const md_backend *backend,
                 const md_backend_request *r) {
  if (md_counts(context)) return;
  cJSON *row = cJSON_CreateObject();
  md_report_add(row, "backend=%s packing=%s precision=%s reconstruct=%s", backend->name,
                md_packing_name(r->packing), md_precision_name(r->precision),
                md_reconstruct_name(r->reconstruct));
  if (md_rows_skip(run->skipped, row, "backend", context->message))
    md_say(context, "%-10s not checked: %s\n", backend->name, context->message);
}

/* Whether the options want a request; all reconstructs are those that the action has links for. */
static bool is_wanted(const md_validate_options *o, const md_backend_request *r) {
  const bool lacks_links =
      md_reconstruct_has_phase(r->reconstruct) && md_action_get(r->action)->fields < 2;
  return wanted(o->run.packing, md_packing_name(r->packing)) &&
         wanted(o->run.precision, md_precision_name(r->precision)) &&
         wanted(o->run.reconstruct, md_reconstruct_name(r->reconstruct)) &&
         !(lacks_links && strcmp(o->run.reconstruct, "all") == 0);
}

/* Every request of one backend that the options want and the backend serves. Of all reconstructs
 * those are left out with the reason that the links themselves do not allow. */
static md_status check_backend(md_context *context, md_validate_run *run,
                               const md_backend *backend) {
  const md_validate_options *o = &run->options;
  md_progress progress = md_progress_of_run(context, "validate");
  for (int packing = MD_PACKING_NONE; packing < MD_PACKINGS; packing++)
    for (int precision = 0; precision < MD_PRECISIONS; precision++)
      for (int reconstruct = 0; reconstruct < MD_RECONSTRUCTS; reconstruct++) {
        md_backend_request request = o->run.request;
        request.precision = (md_precision)precision;
        request.reconstruct = (md_reconstruct)reconstruct;
        request.packing = (md_packing)packing;
        if (!is_wanted(o, &request)) continue;
        if (find_request(context, backend->name, &request, 1) != MD_OK) {
          if (physics_is_why(context, backend, &request)) skip(context, run, backend, &request);
          continue;
        }
        md_progress_update(&progress, -1.0, "%s, packing %s, %s, %s reals per link", backend->name,
                           md_packing_name(request.packing), md_precision_name(request.precision),
                           md_reconstruct_name(request.reconstruct));
        const md_status status = check_case(context, run, backend, &request);
        if (status == MD_INPUT && md_reconstruct_has_phase(request.reconstruct) &&
            strcmp(o->run.reconstruct, "all") == 0)
          skip(context, run, backend, &request);
        else
          MD_TRY(status);
        MD_TRY(md_interrupt_check(context, "validate"));
      }
  return MD_OK;
}

/* Names the operations that four spins have no rows of. */
static void skip_operations(const md_context *context, const md_validate_run *run) {
  static const char *const names[] = {"MdagM", "antisymmetry"};
  const char *reason = "MdagM and the antisymmetry of D are of quarks without spin; the solver's "
                       "true residuals judge S S^dag of four spins";
  if (!md_action_has_spin(run->options.run.request.action)) return;
  for (int i = 0; i < 2; i++) {
    cJSON *row = cJSON_CreateObject();
    md_report_add(row, "operation=%s action=%s", names[i], run->options.run.physics.action);
    if (md_rows_skip(run->skipped, row, NULL, reason)) md_say(context, "not checked: %s\n", reason);
  }
}

static md_status check_operators(md_context *context, md_validate_run *run) {
  const md_validate_options *o = &run->options;
  const bool all = strcmp(o->run.backend, "all") == 0;
  const char *transport = NULL;              /* that left a backend out */
  char absent[sizeof context->message] = ""; /* what the first one without its device says */
  md_rows_head(context, MD_VALIDATE_OPERATOR_COLUMNS);
  for (const md_backend *const *b = md_backends(); *b; b++) {
    if (!wanted(o->run.backend, (*b)->name)) continue;
    if ((*b)->unavailable && all) continue;
    if (all && !md_halo_request_serves(&o->run.halo, (*b)->space)) {
      transport = o->run.halo.transport;
      continue;
    }
    const md_status status =
        (*b)->unavailable ? md_fail(context, MD_ENVIRONMENT, "backend %s is not available: %s",
                                    (*b)->name, (*b)->unavailable)
                          : check_backend(context, run, *b);
    const bool passed_over = status == MD_ENVIRONMENT && all && !md_interrupt_name(context);
    if (!passed_over) MD_TRY(status);
    if (passed_over && !*absent) memcpy(absent, context->message, sizeof absent);
    if (passed_over && !md_counts(context))
      md_warn(context, "backend %s is passed over: %s", (*b)->name, context->message);
  }
  if (md_counts(context)) return MD_OK;
  if (run->rows->child) {
    skip_operations(context, run);
    return MD_OK;
  }
  const char *why = md_rows_skipped(run->skipped);
  if (*absent) return md_fail(context, MD_ENVIRONMENT, "%s", absent);
  return md_fail(context, MD_INPUT,
                 "no backend of this build serves --backend %s --packing %s --precision %s "
                 "--reconstruct %s%s%s%s%s%s%s",
                 o->run.backend, o->run.packing, o->run.precision, o->run.reconstruct,
                 why ? ": " : "", why ? why : "", transport ? "; transport " : "",
                 transport ? transport : "",
                 transport ? " carries no fields of the others, leave --transport out" : "",
                 why || transport ? "" : "; leave one of them out");
}

/* The packing for solves: the one of --packing, or the first that serves. */
static bool find_packing(md_context *context, const md_validate_options *o, const char *backend,
                         int columns, md_backend_request *request) {
  const bool all = strcmp(o->run.packing, "all") == 0;
  for (int k = 0; k < MD_PACKINGS; k++) {
    request->packing = (md_packing)k;
    if (!all && k != md_packing_of(o->run.packing)) continue;
    if (find_request(context, backend, request, columns) == MD_OK ||
        find_request(context, backend, request, 1) == MD_OK)
      return true;
  }
  return false;
}

/* Each precision alone, then inside double; double alone first, it is what the others are
 * compared with. */
static md_status check_solvers(md_context *context, md_validate_run *run) {
  const md_validate_options *o = &run->options;
  const size_t times = (size_t)run->links.geometry->global[MD_T];
  const char *backend = strcmp(o->run.backend, "all") == 0 ? "auto" : o->run.backend;
  double *exact = calloc(4 * times, sizeof *exact); /* and what is compared with it */
  md_backend_request request = o->run.request;
  request.precision = MD_DOUBLE;
  request.reconstruct = MD_RECONSTRUCT_18;
  request.packing = MD_PACKING_NONE;
  const int columns = md_action_reals(request.action) / 2; /* of a point */
  request.n_rhs = columns;
  md_status status = md_agree(
      context, exact ? MD_OK : md_fail_memory(context, 4 * times * sizeof *exact, "correlator"));
  md_say(context, "\n");
  md_rows_head(context, MD_VALIDATE_SOLVER_COLUMNS);
  if (status == MD_OK)
    status = md_validate_solver(context, run, "auto", &request, false, NULL, exact);
  for (int inner = 0; inner < 2; inner++)
    for (int p = MD_SINGLE; p < MD_PRECISIONS && status == MD_OK; p++) {
      request.precision = (md_precision)p;
      if (!wanted(o->run.precision, md_precision_name(request.precision)) ||
          !find_packing(context, o, backend, columns, &request))
        continue;
      status =
          md_validate_solver(context, run, backend, &request, inner == 1, exact, exact + 2 * times);
    }
  if (status == MD_OK && !md_counts(context)) md_validate_print_correlators(context, run);
  free(exact);
  return status;
}

static md_status load_links(md_context *context, md_validate_run *run) {
  md_validate_options *o = &run->options;
  const char *backend = strcmp(o->run.backend, "all") == 0 ? "auto" : o->run.backend;
  const md_space space = md_action_links_space(context, backend, &o->run.physics);
  return md_run_load(context, &o->run, space, false, &run->links);
}

/* Operators and solvers without a number: see base/memory_need.h. */
static md_status dry_run(md_context *context, void *user) {
  md_validate_run run = *(const md_validate_run *)user;
  MD_TRY(load_links(context, &run));
  md_status status = check_operators(context, &run);
  if (status == MD_OK) status = check_solvers(context, &run);
  md_action_links_destroy(&run.links);
  return status;
}

static md_status check_all(md_context *context, md_validate_run *run, cJSON *root) {
  const md_validate_options *o = &run->options;
  md_memory_need need;
  MD_TRY(md_memory_foresee(context, dry_run, run, &need));
  MD_TRY(md_memory_require(context, &need, "validate"));
  MD_TRY(load_links(context, run));
  md_run_say_head(context, &o->run, &run->links, -1);
  md_say(context, "operators    backend %s, packing %s, precision %s, %s reals per link; %s\n",
         o->run.backend, o->run.packing, o->run.precision, o->run.reconstruct, o->run.boundary);
  md_run_say(context, &o->run, &run->links);
  md_say(context, "\n");
  run->rows = cJSON_AddArrayToObject(root, "rows");
  run->skipped = cJSON_AddArrayToObject(root, "skipped");
  run->stored = cJSON_AddArrayToObject(root, "links");
  run->solver = cJSON_AddArrayToObject(root, "solver");
  MD_TRY(check_operators(context, run));
  MD_TRY(md_validate_links(context, run));
  return check_solvers(context, run);
}

/* `status`: of the run, with its message kept. */
static md_status finish(md_context *context, md_validate_run *run, md_report *report,
                        md_status status) {
  const md_validate_options *o = &run->options;
  char message[sizeof context->message];
  memcpy(message, context->message, sizeof message);
  md_report_geometry(report, run->links.geometry);
  if (o->run.lattice) cJSON_AddStringToObject(report->root, "lattice", o->run.lattice);
  cJSON_AddStringToObject(report->root, "action", o->run.physics.action);
  cJSON_AddStringToObject(report->root, "boundary", o->run.boundary);
  md_action_links_report(report->root, &o->run.physics, &run->links);
  md_report_add(report->root,
                "transport=%s mass=%g histogram_lowest_log10=%g histogram_step_log10=%g "
                "broken_bounds=%g",
                run->transport, o->mass, MD_ERROR_LOWEST, 0.5, (double)run->broken);
  md_kappa_report(report->root, o->run.request.action, o->mass);
  md_status written = md_report_csv(context, run->rows, o->csv);
  if (written == MD_OK) written = md_report_csv(context, run->solver, o->solver_csv);
  const md_status closed = md_report_close(context, report, o->run.common.json);
  if (written == MD_OK) written = closed;
  if (status != MD_OK) return md_fail(context, status, "%s", message);
  if (written != MD_OK) return written;
  if (run->broken == 0) return MD_OK;
  return md_fail(
      context, MD_UNREACHED,
      "errors must stay below their a-priori bounds, %lld operations broke them; see the "
      "rows that say BROKEN",
      run->broken);
}

md_status md_command_validate(md_context *context, int argc, char **argv) {
  md_validate_run run = {0};
  md_interrupt_catch(context);
  md_report report;
  MD_TRY(read_options(context, &run.options, argc, argv));
  if (run.options.run.common.help) return MD_OK;
  MD_TRY(md_report_open(context, "validate", &report));
  md_status status = check_all(context, &run, report.root);
  if (md_report_is_due(context, status) && run.rows)
    status = finish(context, &run, &report, status);
  cJSON_Delete(report.root);
  md_action_links_destroy(&run.links);
  return status;
}
