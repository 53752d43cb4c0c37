#pragma once

#include "base/precision.h"
#include "dirac/action.h"

MD_C_BEGIN

/* What is asked of an operator: how a backend stores links and fermions and how it multiplies. */

/* How links are stored in a backend's own copy: X(id, reals per link). 12 and 8 are for links in
 * SU(3). 13 and 9 are for actions with long links: those are one number s times matrices in U(3)
 * and are kept as 12 or 8 reals and a phase, s apart; the fat links are kept whole. */
#define MD_RECONSTRUCT_TABLE(X)                                                                    \
  X(MD_RECONSTRUCT_18, "18")                                                                       \
  X(MD_RECONSTRUCT_12, "12")                                                                       \
  X(MD_RECONSTRUCT_8, "8")                                                                         \
  X(MD_RECONSTRUCT_13, "13")                                                                       \
  X(MD_RECONSTRUCT_9, "9")
/* How products are fed to 16x16 tiles; MD_PACKING_NONE for backends without tiles: X(id, name). */
#define MD_PACKING_TABLE(X)                                                                        \
  X(MD_PACKING_NONE, "none")                                                                       \
  X(MD_PACKING_SINGLE, "single")                                                                   \
  X(MD_PACKING_DIAGONAL, "diagonal")                                                               \
  X(MD_PACKING_BLOCK8, "block8")                                                                   \
  X(MD_PACKING_STACKED, "stacked")
#define MD_ROW(id, name) id,
typedef enum md_reconstruct { MD_RECONSTRUCT_TABLE(MD_ROW) MD_RECONSTRUCTS } md_reconstruct;
/* MD_PACKING_AUTO, of a request alone: md_backend_choose puts the fastest in its place. */
typedef enum md_packing {
  MD_PACKING_TABLE(MD_ROW) MD_PACKINGS,
  MD_PACKING_AUTO = MD_PACKINGS
} md_packing;
#undef MD_ROW
/* As words of a choice, see base/precision.h: "|18|12|8|13|9". */
#define MD_RECONSTRUCT_WORDS MD_RECONSTRUCT_TABLE(MD_WORD)
#define MD_PACKING_WORDS MD_PACKING_TABLE(MD_WORD)
#define MD_PACKING_OR_AUTO_WORDS "auto" MD_PACKING_WORDS

/* U(1) phases on the links. All zero: none. */
typedef struct md_twist {
  double imaginary_mu; /* M in radians per link: exp(i M) on the t-links, exp(i M h) over a hop h */
  /* Constant field along z: flux quanta through the xy plane that the quark sees, 3 charge N for N
   * quanta of eB = 6 pi N / (Lx Ly) (D'Elia, Mukherjee, Sanfilippo, PRD 82, 051501, 2010).
   * y-links carry exp(i b x), b = 2 pi flux / (Lx Ly), x-links that leave x = Lx-1 carry
   * exp(-i b Lx y): every plaquette of the torus has the phase exp(i b). */
  int flux;
} md_twist;

/* The fifth dimension of a domain-wall action; Shamir's has b5 = 1, c5 = 0. */
typedef struct md_walls {
  int slices;            /* Ls; 0 for other actions */
  double height, b5, c5; /* M5 > 0 */
} md_walls;
enum { MD_LEAST_SLICES = 2, MD_MOST_SLICES = 32 };

/* Whether it is 13 or 9, for long links with a phase. */
static inline bool md_reconstruct_has_phase(md_reconstruct reconstruct) {
  return reconstruct == MD_RECONSTRUCT_13 || reconstruct == MD_RECONSTRUCT_9;
}
/* What it means for the links of an action's field 0 or 1: 13 and 9 leave fat links whole. */
static inline md_reconstruct md_reconstruct_of_field(md_reconstruct reconstruct, int field) {
  return md_reconstruct_has_phase(reconstruct) && field == 0 ? MD_RECONSTRUCT_18 : reconstruct;
}

typedef struct md_backend_request {
  md_precision precision; /* of links and fermions in storage */
  md_reconstruct reconstruct;
  md_packing packing;
  int n_rhs;
  bool pads; /* n_rhs may be raised to what fills tiles, the rest being zero: md_backend_choose */
  bool antiperiodic; /* sign -1 on t-links that leave the last time slice */
  md_action action;
  md_twist twist; /* with one, links of 18 reals only */
  md_walls walls; /* of an action that has a fifth dimension */
} md_backend_request;

static inline int md_request_slices(const md_backend_request *r) {
  return md_action_get(r->action)->walls ? r->walls.slices : 1;
}
/* Reals of a site and right-hand side of the fields that the operator works on. */
static inline int md_request_reals(const md_backend_request *r) {
  return md_action_reals(r->action) * md_request_slices(r);
}
/* Flops of a hop per output site and right-hand side, for every backend. Deo or Doe: products of
 * 66 and sums of 6; 570 for one link field, 1146 for two. H costs 1320 per slice: 8 projections of
 * 12, 16 products and 7 sums of 24. */
static inline int md_request_flops(const md_backend_request *r) {
  const int terms = md_action_terms(r->action);
  if (md_action_has_spin(r->action)) return (8 * (12 + 2 * 66) + 7 * 24) * md_request_slices(r);
  return terms * 66 + (terms - 1) * 6;
}

const char *md_reconstruct_name(md_reconstruct reconstruct); /* "18", "12", "8", "13", "9" */
const char *md_packing_name(md_packing packing);             /* "none", ..., "auto" */
int md_reconstruct_of(const char *name);                     /* -1: unknown */
int md_packing_of(const char *name);

MD_C_END
