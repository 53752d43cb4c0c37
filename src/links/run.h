#pragma once

#include "base/progress.h"
#include "dirac/solvers/auto.h"
#include "links/action_links.h"

/* What the commands that apply D to a lattice have in common. */

enum { MD_INNER_REASON_BYTES = 160 };

/* Their options. Rows for tables are in dirac/physics_options.h and base/options.h; a
 * command without one of them keeps the default. */
typedef struct md_run_options {
  md_common_options common;
  const char *lattice, *backend, *packing, *precision, *inner, *reconstruct, *boundary;
  bool ignore_checksum;
  md_halo_request halo;
  md_physics_options physics;
  /* Of the iterations, from the words above; `mixed`: it is the inner operator's, the outer one is
   * double. Set by the checks below. */
  md_backend_request request;
  bool mixed, parts; /* parts: right-hand sides may be solved in parts, see md_solve_cg */
  char inner_reason[MD_INNER_REASON_BYTES]; /* of --inner auto, once it has become a precision or
                                               none; else "" */
} md_run_options;

/* clang-format off */
#define MD_RUN_DEFAULTS                                                                            \
  {                                                                                                \
    .backend = "auto", .packing = "auto", .precision = "double", .inner = "none",                  \
    .reconstruct = "18", .boundary = "antiperiodic", .halo = {.transport = "auto"},                \
    .physics = MD_PHYSICS_DEFAULTS                                                                 \
  }
/* clang-format on */

/* Sets the request but for action and twist, with one right-hand side. MD_INPUT for an --inner
 * precision below another one than double. Local. */
md_status md_run_set_request(md_context *context, md_run_options *o);
/* The same with action and twist, and MD_INPUT where neither a lattice nor files of links were
 * given or md_physics_check refuses. Local. */
md_status md_run_check(md_context *context, const char *command, md_run_options *o);

/* Sets precision and `reason` of a request in double, of a backend by name, as --inner auto would
 * have it: half, single, or double where neither pays or is served. Collective. */
md_status md_inner_choose(md_context *context, const char *backend, const md_auto_inner *facts,
                          md_backend_request *request, char reason[MD_INNER_REASON_BYTES]);
/* Puts what that chooses in the place of --inner auto, and has nothing to do without. Collective.
 */
md_status md_run_choose_inner(md_context *context, md_run_options *o, const md_auto_inner *facts,
                              md_backend_request *request);

/* md_action_links_load for these options. Collective. */
md_status md_run_load(md_context *context, const md_run_options *o, md_space space, bool identify,
                      md_action_links *links);
/* Keys of a report: those of md_report_geometry, lattice, boundary, and those of md_physics_report
 * and md_action_links_report. */
void md_run_report(md_report *report, const md_run_options *o, const md_action_links *links);
/* The head of what is printed: what is read, ranks, memory; with halo_bytes >= 0 those of a hop. */
void md_run_say_head(const md_context *context, const md_run_options *o,
                     const md_action_links *links, int64_t halo_bytes);
/* The lines of it about ranks and memory. */
void md_say_ranks(const md_context *context, const md_geometry *geometry, int64_t halo_bytes);
/* The lines about the action and its links. */
void md_run_say(const md_context *context, const md_run_options *o, const md_action_links *links);

/* How far a solve is, behind the words `what`, that began at the iteration `from` with the residual
 * `first`, which falls about exponentially: its logarithm measures the way to the tolerance. */
void md_run_progress(md_progress *progress, const char *what, int from, int iteration, double first,
                     double residual, double tolerance);

/* Keys of a report: grid, grid_chosen_by, grid_reason, dims. */
void md_report_geometry(md_report *report, const md_geometry *geometry);

/* M x = b for some right-hand sides. */
typedef struct md_equation {
  md_dirac dirac, exact, inner;            /* of md_solver_operators */
  md_field b[MD_PARITIES], x[MD_PARITIES]; /* host, double */
} md_equation;

/* Operators by these options and the request, which may be another than theirs, and fields for its
 * right-hand sides. Destroy it also after a failure. Collective. */
md_status md_equation_create(md_context *context, const md_run_options *o,
                             const md_backend_request *request, const md_gauge *links,
                             md_equation *e);
void md_equation_destroy(md_equation *e);
/* The operator that decides, in double. */
md_dirac *md_equation_exact(md_equation *e);

/* Creates fields of both parities on the host, in double: quarks of the request's action, with its
 * right-hand sides. Collective. */
md_status md_host_fields(md_context *context, const md_geometry *geometry,
                         const md_backend_request *request, md_field field[MD_PARITIES]);
