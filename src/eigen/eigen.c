/* minidirac eigen: the lowest modes of the Dirac operator on a lattice. */
#include "dirac/eigen/eigen.h"
#include "base/interrupt.h"
#include "base/memory_need.h"
#include "base/progress.h"
#include "base/statistics.h"
#include "base/text.h"
#include "commands.h"
#include "io/lattice_format.h"
#include "io/vectors.h"
#include "links/run.h"

#include <math.h>
#include <string.h>

typedef struct search {
  md_run_options run;
  const char *output, *store, *start;
  long long modes, block, max_restarts, seed;
  double tolerance, mass; /* mass NaN: not given */
  bool force;
  md_action_links links;
  md_dirac dirac;
  md_eigen_result result;
  md_modes_info start_info; /* where --start is given */
  md_modes begun;           /* its vectors, on the host */
} search;

static bool has_spin(const search *r) {
  return md_action_has_spin(r->run.request.action);
}

static const char *operator_of(const search *r) {
  return has_spin(r) ? "S S^dag" : "-Deo Doe";
}

static md_modes_label label_of(const search *r) {
  return md_deflation_label(&r->run.physics, r->mass, &r->run.request, r->run.boundary,
                            r->links.checksum);
}

/* Without --block: what the backend that will be taken serves best. */
static void choose_block(md_context *context, search *r) {
  enum { MANY = 16 };
  const md_backend *found;
  md_backend_request many = r->run.request, one = many;
  many.n_rhs = MANY;
  one.n_rhs = 1;
  const bool device =
      md_backend_find(context, r->run.backend, &many, &found) == MD_OK && found->space == MD_DEVICE;
  const bool alone = !device && md_backend_find(context, r->run.backend, &one, &found) == MD_OK;
  r->run.request.pads = false; /* every vector of a block is one of the search */
  r->run.request.n_rhs = r->block > 0 ? (int)r->block : alone ? 1 : MANY;
}

static md_status set_up(md_context *context, search *r) {
  const md_backend *backend;
  choose_block(context, r);
  MD_TRY(md_backend_find(context, r->run.backend, &r->run.request, &backend));
  if (r->start) MD_TRY(md_modes_describe(context, r->start, &r->start_info));
  MD_TRY(md_run_load(context, &r->run, backend->space, r->output || r->start, &r->links));
  const int reals = md_request_reals(&r->run.request);
  const long long unknowns = (long long)md_eigen_unknowns(r->links.geometry, reals);
  if (r->modes > unknowns)
    return md_fail(context, MD_INPUT,
                   "--modes must lie in 1 to %lld on this lattice, three for each even site%s, got "
                   "%lld",
                   unknowns, has_spin(r) ? ", spin and slice" : "", r->modes);
  if (r->start) {
    const md_modes_label wanted = label_of(r);
    MD_TRY(md_modes_read(context, r->start, r->links.geometry, &wanted, &r->start_info,
                         r->start_info.count, MD_HOST, &r->begun));
  }
  return md_dirac_create_over(context, r->links.field, r->run.backend, &r->run.request,
                              &r->run.halo, &r->dirac);
}

/* What is shown as the search goes on. */
typedef struct watcher {
  md_context *context;
  const char *operator; /* of the values */
  md_progress progress;
  int modes, shown;
  double tolerance;
  double values[MD_EIGEN_MOST]; /* of the modes that have been shown */
  bool changed;                 /* others have come between them since */
} watcher;

static void show(watcher *w, const md_eigen_result *found) {
  if (w->shown == 0 && found->below > 0)
    md_say(w->context, "mode  eigenvalue of %-8s   residual\n", w->operator);
  for (; w->shown < found->below; w->shown++) {
    w->values[w->shown] = found->values[w->shown];
    md_say(w->context, "%4d  %22.15e  %9.2e\n", w->shown, found->values[w->shown],
           found->residuals[w->shown]);
  }
}

static void observe(void *user, const md_eigen_result *found, double residual) {
  watcher *w = user;
  for (int i = 0; i < w->shown; i++)
    w->changed =
        w->changed || i >= found->modes || !(fabs(found->values[i] - w->values[i]) <= w->tolerance);
  if (found->below > w->shown) {
    md_progress_stop(&w->progress);
    show(w, found);
  }
  md_progress_update(&w->progress, -1.0, "restart %d, %d of %d modes, largest residual %.2e",
                     found->restarts, found->below, w->modes, residual);
}

/* Rows of the table come as the modes do. */
static md_status find(md_context *context, search *r) {
  watcher watch = {.context = context,
                   .operator= operator_of(r),
                   .progress = md_progress_start(context, "eigen"),
                   .modes = (int)r->modes,
                   .tolerance = r->tolerance};
  const md_eigen_request request = {.mass = has_spin(r) ? r->mass : 0.0,
                                    .modes = (int)r->modes,
                                    .tolerance = r->tolerance,
                                    .max_restarts = (int)r->max_restarts,
                                    .seed = (uint64_t)r->seed,
                                    .start = r->start ? &r->begun : NULL,
                                    .observe = observe,
                                    .user = &watch};
  const md_status status = md_eigen_lowest(context, &r->dirac, &request, &r->result);
  md_progress_stop(&watch.progress);
  if (status == MD_OK && watch.changed) {
    md_say(context, "others came between these; the lowest ones:\n");
    watch.shown = 0;
  }
  if (status == MD_OK) show(&watch, &r->result);
  return status;
}

/* All that were found, also when the search ended early: --start goes on from them. */
static md_status write_modes(md_context *context, const search *r) {
  const md_eigen_result *found = &r->result;
  const md_modes modes = {.count = found->modes,
                          .values = found->values,
                          .residuals = found->residuals,
                          .vectors = found->vectors};
  const md_modes_info info = {.converged = found->below,
                              .tolerance = r->tolerance,
                              .store = md_modes_store_of(r->store),
                              .label = label_of(r),
                              .keep_old = !r->force};
  return r->output && modes.count > 0
             ? md_modes_write(context, r->output, md_vectors_format_of(r->output, NULL), &modes,
                              &info)
             : MD_OK;
}

static void print_head(const md_context *context, const search *r) {
  const md_run_options *o = &r->run;
  md_run_say_head(context, o, &r->links, -1);
  md_say(context, "operator     %s, packing %s, double, blocks of %d; %s\n", r->dirac.backend->name,
         md_packing_name(r->dirac.request.packing), o->request.n_rhs, o->boundary);
  md_run_say(context, o, &r->links);
  if (has_spin(r)) md_say(context, "mass         %.15g\n", r->mass);
  if (r->start)
    md_say(context, "start        %s, %d mode%s\n", r->start, r->start_info.count,
           md_plural(r->start_info.count));
}

static void print_end(const md_context *context, const search *r) {
  const md_eigen_result *found = &r->result;
  md_say(context, "filter       degree %d, damps %.4g to %.4g\n", found->filter_degree,
         found->window_low, found->window_high);
  md_say(context, "search       %d filtered vectors, %d restart%s, %.3f s: %s\n", found->iterations,
         found->restarts, md_plural(found->restarts), found->seconds,
         found->converged     ? "converged"
         : found->interrupted ? "interrupted"
                              : "NOT converged");
}

#define SIGN_COLUMNS                                                                               \
  "|mode=%4d eigenvalue|eigenvalue~of~gamma_5~S=%22.15e residual=%9.2e chirality=%9.6f"

/* A residual of S S^dag at the tolerance leaves about its root at most to gamma_5 S; only where
 * modes of the same eigenvalue are missing it is larger. */
static void report_signs(const md_context *context, cJSON *root, const search *r) {
  const md_eigen_result *found = &r->result;
  cJSON *rows = cJSON_AddArrayToObject(root, "gamma5_modes");
  int parts = 0;
  md_rows_head(context, SIGN_COLUMNS);
  for (int i = 0; i < found->below; i++) {
    const bool converged = found->signs[i].residual <= sqrt(r->tolerance);
    cJSON *row = md_rows_add(context, rows, SIGN_COLUMNS, i, found->signs[i].value,
                             found->signs[i].residual, found->signs[i].chirality);
    cJSON_AddBoolToObject(row, "converged", converged);
    parts += !converged;
  }
  if (parts > 0)
    md_warn(context,
            "%d row%s of gamma_5 S belong%s to an eigenvalue of which --modes has only a part; "
            "raise --modes",
            parts, md_plural(parts), parts == 1 ? "s" : "");
}

/* `written`: how the search or writing its modes ended; its message stands before one of the
 * report.
 */
static md_status report(md_context *context, const search *r, md_status written) {
  const md_eigen_result *found = &r->result;
  md_report report;
  MD_TRY(md_report_open(context, "eigen", &report));
  cJSON *root = report.root;
  md_run_report(&report, &r->run, &r->links);
  md_report_add(root,
                "backend=%s packing=%s packing_reason=%s transport=%s precision=%s modes=%g "
                "block=%d tolerance=%g converged=%hhd converged_modes=%d",
                r->dirac.backend->name, md_packing_name(r->dirac.request.packing),
                r->dirac.packing_reason, md_halo_transport(r->dirac.halo), "double",
                (double)r->modes, r->run.request.n_rhs, r->tolerance, found->converged,
                found->below);
  if (has_spin(r)) md_report_add(root, "mass=%g operator=%s", r->mass, operator_of(r));
  md_kappa_report(root, r->run.request.action, r->mass);
  md_report_reals(root, "eigenvalues", found->values, found->below);
  md_report_reals(root, "residuals", found->residuals, found->below);
  if (found->signs) report_signs(context, root, r);
  md_report_add(root, "iterations=%d restarts=%d filter_degree=%d", found->iterations,
                found->restarts, found->filter_degree);
  const double window[] = {found->window_low, found->window_high};
  md_report_reals(root, "filter_window", window, 2);
  md_report_add(root, "stencil_calls=%g solver_seconds=%g load_seconds=%g", (double)r->dirac.hops,
                found->seconds, r->dirac.load_s);
  if (r->start) cJSON_AddStringToObject(root, "start", r->start);
  if (r->output)
    md_report_add(root, "output=%s store=%s output_written=%hhd", r->output, r->store,
                  (bool)(written == MD_OK && found->modes > 0));
  return md_report_close_after(context, &report, r->run.common.json, written);
}

/* Exit 3 after a signal, 1 otherwise. */
static md_status unreached(md_context *context, const search *r) {
  const md_eigen_result *found = &r->result;
  const double rounding = 0x1p-46 * found->window_high; /* about: restarts leave so much */
  double worst = 0.0;
  if (found->interrupted)
    return md_fail(
        context, MD_ENVIRONMENT,
        "%s ended the search for modes after %d restart%s; %d of %lld had converged, the "
        "report has them%s%s",
        md_interrupt_name(context), found->restarts, md_plural(found->restarts), found->below,
        r->modes, r->output && found->modes > 0 ? ", go on with --start " : "",
        r->output && found->modes > 0 ? r->output : "");
  for (int i = 0; i < found->modes; i++) md_raise(&worst, found->residuals[i]);
  if (found->below == r->modes)
    return md_fail(
        context, MD_UNREACHED,
        "all modes (%lld) converged, but %d restart%s left none to look for others below "
        "them; raise --max-restarts",
        r->modes, found->restarts, md_plural(found->restarts));
  return md_fail(context, MD_UNREACHED,
                 "residuals of modes must be at most %g, got %.3e after %d restart%s; %d of %lld "
                 "modes converged; raise %s--tol",
                 r->tolerance, worst, found->restarts, md_plural(found->restarts), found->below,
                 r->modes, r->tolerance < rounding ? "" : "--max-restarts or ");
}

/* What modes of quarks with four spins need and go without. */
static md_status check_spins(md_context *context, const search *r) {
  const char *action = r->run.physics.action;
  if (has_spin(r) == isnan(r->mass))
    return md_fail(context, MD_INPUT,
                   has_spin(r) ? "--action %s needs --mass, on which its modes depend"
                               : "--action %s takes no --mass: its modes are those of all masses",
                   action);
  if (!has_spin(r)) return MD_OK;
  MD_TRY(md_physics_check_mass(context, "mass", r->run.request.action, r->mass));
  if (strcmp(r->store, "fixed8") == 0)
    return md_fail(context, MD_INPUT,
                   "--store fixed8 is for colour vectors, got --action %s; take half", action);
  if (r->output && md_vectors_format_of(r->output, NULL)->compose)
    return md_fail(context, MD_INPUT, "modes of action %s go to HDF5 alone, got %.300s", action,
                   r->output);
  return MD_OK;
}

static md_status read_options(md_context *context, search *r, int argc, char **argv) {
  char backends[MD_BACKEND_WORDS_BYTES];
  md_option options[] = {
      MD_LATTICE_OR_FAT_OPTION(r->run.lattice),
      MD_OPTION(INTEGER, "modes", &r->modes, "N", "how many, from the lowest on (required)",
                .required = true, .low = 1, .high = MD_EIGEN_MOST, .group = MD_GROUP_SOLVER),
      MD_OPTION(INTEGER, "block", &r->block, "N",
                "vectors that are filtered at once [16 on a GPU or tensor_emu, else 1]", .low = 1,
                .high = MD_MAX_RHS),
      MD_OPTION(REAL, "tol", &r->tolerance, "T", "on |A v - lambda v| / |v|, A = -Deo Doe [1e-8]",
                .low = 1e-15, .high = 0.1),
      MD_OPTION(INTEGER, "max-restarts", &r->max_restarts, "N", "restarts at most [1000]", .low = 1,
                .high = 10000000),
      MD_OPTION(INTEGER, "seed", &r->seed, "N", "of the vectors that begin a search [1]", .low = 0,
                .high = 1e18),
      MD_BACKEND_OPTIONS(r->run, backends),
      MD_BOUNDARY_OPTION(r->run.boundary),
      MD_HALO_OPTIONS(r->run.halo, r->run.common),
      MD_PHYSICS_OPTIONS(r->run.physics),
      MD_OPTION(REAL, "mass", &r->mass, "M", "of quarks with four spins, whose modes have one",
                .group = MD_GROUP_PHYSICS),
      MD_REUNITARIZE_OPTION(r->run.physics.reunitarize),
      MD_OPTION(TEXT, "output", &r->output, "MODES.h5",
                "file for the modes, HDF5, .lime or .quda, also of a search that ended early",
                .file = MD_FILE_RESULT, .group = MD_GROUP_OUTPUT),
      MD_FORCE_OPTION(r->force),
      MD_OPTION(CHOICE, "store", &r->store, NULL, "precision of the vectors in that file [double]",
                .choices = MD_MODES_STORE_WORDS),
      MD_OPTION(TEXT, "start", &r->start, "MODES.h5",
                "go on from the modes that an earlier search wrote", .file = MD_FILE_INPUT,
                .group = MD_GROUP_INPUT),
      MD_IGNORE_CHECKSUM_OPTION(r->run.ignore_checksum),
      MD_COMMON_OPTIONS(r->run.common)};
  const md_command_text text = {
      "eigen", "Find the lowest modes of the Dirac operator on a lattice.",
      "The modes are those of A = -Deo Doe on the even sites; M^dag M has the same ones, its\n"
      "eigenvalues are larger by the mass squared. With four spins they are those of S S^dag of\n"
      "a mass, S the Schur complement of M on even sites.",
      "minidirac eigen inputs/beta6.0_8x8x8x8.h5 --modes 16 --output modes.h5"};
  enum { COUNT = sizeof options / sizeof *options };
  MD_TRY(md_options_read(context, &text, options, COUNT, &r->run.common, argc, argv));
  if (r->run.common.help) return MD_OK;
  if (r->output) MD_TRY(md_vectors_check_suffix(context, r->output));
  const md_lattice_format *format = r->output ? md_vectors_format_of(r->output, NULL) : NULL;
  const bool other = format && format->compose; /* than HDF5 */
  if (format)
    MD_TRY(md_vectors_check(context, format, md_vectors_precision(format), (int)r->modes, true));
  MD_TRY(md_run_check(context, "eigen", &r->run));
  MD_TRY(check_spins(context, r));
  MD_TRY(
      md_options_need(context, options, COUNT, "force|store", format != NULL, "--output MODES.h5"));
  MD_TRY(md_options_need(context, options, COUNT, "store", !other, "an --output in HDF5"));
  if (other) r->store = md_precision_name(md_vectors_precision(format));
  return MD_OK;
}

/* All but the options. As a dry run without a number: see base/memory_need.h. */
static md_status run_eigen(md_context *context, void *user) {
  search r = *(const search *)user;
  const bool finds = !md_counts(context);
  md_status status = set_up(context, &r);
  if (status == MD_OK && finds) print_head(context, &r);
  if (status == MD_OK) status = find(context, &r);
  if (finds && (status == MD_OK || status == MD_UNREACHED)) { /* also with a number that is none */
    print_end(context, &r);
    status = report(context, &r, status == MD_OK ? write_modes(context, &r) : status);
    if (status == MD_OK && !r.result.converged) status = unreached(context, &r);
  }
  md_modes_destroy(&r.begun);
  md_eigen_result_free(&r.result);
  md_dirac_destroy(&r.dirac);
  md_action_links_destroy(&r.links);
  return status;
}

md_status md_command_eigen(md_context *context, int argc, char **argv) {
  md_memory_need need;
  search r = {.run = MD_RUN_DEFAULTS,
              .store = "double",
              .tolerance = 1e-8,
              .max_restarts = 1000,
              .mass = NAN,
              .seed = 1};
  md_interrupt_catch(context);
  MD_TRY(read_options(context, &r, argc, argv));
  if (r.run.common.help) return MD_OK;
  MD_TRY(md_memory_foresee(context, run_eigen, &r, &need));
  MD_TRY(md_memory_require(context, &need, "eigen"));
  return run_eigen(context, &r);
}
