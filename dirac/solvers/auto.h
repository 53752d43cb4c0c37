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
