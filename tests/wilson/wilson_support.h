#pragma once

#include "dirac/wilson/wilson.h"
#include "support.h"

/* M of one action and mass with what it works on. */
typedef struct wilson_problem {
  md_geometry *g;
  md_gauge gauge;
  md_dirac dirac;
  md_operator full;
} wilson_problem;

/* Wilson; domain walls of Shamir and Moebius, with an odd number of slices, two of them, and masses
 * of both signs: at least those that the properties below differ for. */
typedef struct wilson_kind {
  md_action action;
  md_walls walls;
  double mass;
} wilson_kind;
extern const wilson_kind wilson_kinds[];
enum { WILSON_KINDS = 8 };

/* One right-hand side, antiperiodic, in double on the host, random links. Collective. */
void wilson_make(md_context *context, const int dims[MD_DIMS], const wilson_kind *kind,
                 wilson_problem *p);
void wilson_drop(wilson_problem *p);
/* Fields of its shape on both parities, normal deviates by seed; zeros with seed 0. */
void wilson_fields(md_context *context, const wilson_problem *p, uint64_t seed,
                   md_field f[MD_PARITIES]);
void wilson_destroy(md_field f[MD_PARITIES]);
/* <a, b> over `count` parities, (re, im). */
void wilson_dot(md_context *context, int count, const md_field *a, const md_field *b,
                double value[2]);
