#pragma once

#include "links/run.h"

/* The parts of `minidirac validate`: every backend, packing and precision against cpu_ref in
 * double. docs/precision.md derives the bounds. */

typedef struct md_validate_options {
  md_run_options run; /* its words may be "all" */
  const char *csv, *solver_csv;
  double mass;
  long long seed, max_iterations;
} md_validate_options;

typedef struct md_validate_run {
  md_validate_options options;
  md_action_links links;
  cJSON *rows, *stored, *solver, *skipped; /* arrays of the report */
  long long broken;                        /* bounds that were broken */
  char transport[64];                      /* of the operators' halos: names a,b */
} md_validate_run;

/* Reals of a site of all right-hand sides. */
enum { MD_VALIDATE_MOST_REALS = MD_MAX_COMPONENTS * MD_MAX_RHS };

/* Errors of one operation over several fields. The histogram counts components by log10 of their
 * error relative to the largest component of their site, half decades from -18. */
enum { MD_ERROR_BINS = 40 };
#define MD_ERROR_LOWEST (-18.0)
typedef struct md_errors {
  double rel_l2_error;  /* |error| / |reference|, largest of the fields */
  double max_rel_error; /* of a site: |error| / |reference| there */
  double max_percent;   /* of a component that is at least 1 % of its site's largest */
  double bound;         /* a-priori bound on the rel_l2_error above */
  double bound_used;    /* largest |error| / bound of a component; more than 1 breaks the bound */
  long long histogram[MD_ERROR_BINS];
} md_errors;

/* Adds what `got` shows against `reference` with componentwise bounds `bound`: host fields of one
 * shape, reference and bound in double. Collective. */
md_status md_errors_add(md_context *context, md_errors *errors, const md_field *got,
                        const md_field *reference, const md_field *bound);

/* Rounding of a field to storage: bound += u |value| + floor; value is what was to be stored,
 * `bound` its componentwise error so far. Host, double. Local. */
void md_bound_store(const md_backend_request *request, const md_field *value, md_field *bound);
/* Assigns the error bound of D in, without that of storing the result; in_error bounds the error
 * that `in` carries. in and in_error: host, double, halos filled. Local. */
void md_bound_hop(const md_links *links, const md_backend_request *request, const md_field *in,
                  const md_field *in_error, md_field *bound);

/* The tables of the two, as md_rows_head takes them. */
#define MD_VALIDATE_OPERATOR_COLUMNS                                                               \
  "backend=%-10s packing=%-8s precision|prec=%-6s reconstruct|U=%3d rhs=%d operation=%-13s "       \
  "action=%s "                                                                                     \
  "rel_l2_error|rel~L2=%9.2e max_rel_error|site~max=%9.2e max_percent|percent=%9.2e "              \
  "bound|L2~bound=%9.2e bound_used|used=%5.2f |verdict=%2s pass=%hhd"
#define MD_VALIDATE_SOLVER_COLUMNS                                                                 \
  "backend=%-10s packing=%-8s precision=%-9s inner=%-6s iterations=%10d "                          \
  "reachable_residual|residual=%10.2e |correlator=%10.2e"

/* One backend, packing, precision and reconstruction: rows for Deo, Doe, and of staggered
 * actions MdagM and the broken antisymmetry. `reference` is cpu_ref in double for the same
 * right-hand sides. Collective. */
md_status md_validate_operator(md_context *context, md_validate_run *run, md_dirac *dirac,
                               md_dirac *reference);
/* What storing in each precision does to plaquette and unitarity of links, or to plaquette and
 * trace of fat and long links. Collective. */
md_status md_validate_links(md_context *context, md_validate_run *run);
/* The solver in one precision alone, or with it as the inner one of double: iterations, the true
 * residual that it reaches, deviation of the pion correlator from `exact` (NULL: this is the exact
 * one, stored into *correlator), and of walls with a middle that of m_res. exact, correlator:
 * global[T] numbers of the pion, then as many of the midpoint. Collective. */
md_status md_validate_solver(md_context *context, md_validate_run *run, const char *backend,
                             const md_backend_request *request, bool inner, const double *exact,
                             double *correlator);
/* The deviations of all solver rows on each time slice and of m_res, as a table. */
void md_validate_print_correlators(const md_context *context, const md_validate_run *run);

/* What storing changes of a link: docs/precision.md, section 2. Links are 18 reals in double,
 * [row][column][re, im]. All functions are local. */

/* Storing changes a real r by at most unit |r| + floor, the floor of a fermion relative to the
 * largest component near it; and a link takes what is beyond `most`. */
typedef struct md_rounding {
  double unit, link_floor, field_floor, most;
} md_rounding;
md_rounding md_rounding_of(md_precision precision);

/* Relative error of a component of D v, a sum of 6 products for each term of the action, in the
 * arithmetic of the request, whatever its order. */
double md_bound_gamma(const md_backend_request *request);

/* error[c] <- what may change of component c of the link u, which enters a hop as U or, `adjoint`,
 * as U^dag: a backend may keep either, and where not all 18 reals are kept it matters which.
 * largest: of md_links for the field of u: what fixed stores as MD_FIXED_STEPS, 1 for links in
 * SU(3); for 13 and 9 reals the number s of which u is a multiple. The reconstruct of the request
 * is that of the field (md_reconstruct_of_field). */
void md_bound_link(const md_backend_request *request, double largest, const double u[18],
                   bool adjoint, double error[18]);

/* The coordinates of a link of 8 reals. U = (1 + S) H diag(e^{i theta}, 1, 1), where the first row
 * is (c e^{i theta}, y, z) with c >= 0, theta = 2 phi; p = y / (1 + c), q = z / (1 + c); H is the
 * reflection along the first row with that row negated,
 *   H v = (s - v0, v1 - p* s, v2 - q* s),  s = k (v0 + p v1 + q v2),  k = 2 / (1 + |p|^2 + |q|^2);
 * S = e^{-i phi} (a b; -b* a*) in rows 2 and 3 with g = (Im a, Re b, Im b) / (1 + Re a).
 * phi and phi + pi make the same link: the one with Re a >= 0 is kept. */
typedef struct md_eight {
  double pq[4]; /* re, im of p and of q */
  double phi;
  double g[3];
} md_eight;

/* The coordinates of u; other_branch: those of the other phi, |g| > 1. Returns Re a. */
double md_eight_of(const double u[18], bool other_branch, md_eight *e);
/* Finds g anew, so that the link of e is as near to u as pq and phi allow. Returns Re a. */
double md_eight_settle(const double u[18], md_eight *e);
/* The link of the coordinates. */
void md_link_of_eight(const md_eight *e, double u[18]);
