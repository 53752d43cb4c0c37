#pragma once

#include "dirac/solvers/solver.h"

/* --solver auto: block CG or CG of the right-hand sides in step, by what is known before the first
 * iteration, so that the same request has the same bits. CG in step takes as many iterations as its
 * bound by the condition number, or the unknowns, say at most; block CG ends when its space has
 * resolved the lowest modes, after about MD_AUTO_RESOLVED sqrt(V / n_rhs) iterations however small
 * the mass (docs/solvers.md has the records). An iteration of block CG is the dearer one: it is
 * taken from a gain on that the device, or the host, more than makes up for. */
#define MD_AUTO_RESOLVED 9.0
#define MD_AUTO_GAIN_DEVICE 2.0
#define MD_AUTO_GAIN_HOST 5.0
/* Where rounding leads block CG astray it may creep on without a stall: it is left after so many
 * times the iterations that CG in step takes at most. */
#define MD_AUTO_PATIENCE 2.0
enum { MD_AUTO_LEAST_RHS = 8 };

typedef struct md_auto_facts {
  int n_rhs;
  double kappa;     /* bound on the condition number, above the modes of the request */
  double tolerance; /* that a residual is to be lowered to */
  double sites;     /* of the whole lattice, both parities */
  double unknowns;  /* complex numbers of a right-hand side */
  bool on_host;
} md_auto_facts;

/* The bound of CG on the iterations that lower a residual to `tolerance` of it. Local, as below. */
double md_auto_bound(double kappa, double tolerance);
/* Whether block CG is taken; *steps: iterations in step at most, *resolved: of block CG until the
 * lowest modes are there. */
bool md_auto_takes_block(const md_auto_facts *facts, double *steps, double *resolved);

/* --inner auto: iterations in half, single or, as double is left, in neither, by what is known
 * before the first one: u times the condition number of A above the modes of `eigen`. With 16
 * right-hand sides on an H200 an iteration takes 0.42 of the time of one in double in half and 0.6
 * in single. For that CG in half took 1.03 times the iterations at 20, 1.25 at 78 and, as it
 * deflates there, 1.13 at 312 and 1.08 at 2000; in single 1.3 at 0.04. A host, where an iteration
 * in half gains less, leaves half at 100, but for block CG, which keeps what it has found. Beyond
 * what was measured it is double. */
#define MD_AUTO_ROUNDING_HALF 2000.0
#define MD_AUTO_ROUNDING_HALF_HOST 100.0
#define MD_AUTO_ROUNDING_SINGLE 1.0
#define MD_AUTO_MOST 16.0 /* |D|^2 of links in SU(3), near enough for all staggered actions */

typedef struct md_auto_inner {
  double mass;      /* the lightest */
  double tolerance; /* as above */
  double above;     /* the largest eigenvalue of the modes; 0: none, or not known */
  const md_solver *solver;
  int n_rhs;
  double sites;
  bool on_host;
} md_auto_inner;
/* Whether iterations of staggered quarks in half or single pay for their rounding; *noise: u kappa,
 * *most: of that. Local. */
bool md_auto_inner_fits(const md_auto_inner *facts, md_precision precision, double *noise,
                        double *most);
