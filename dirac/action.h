#pragma once

#include "base/status.h"
#include "lattice/geometry/conventions.h"

#include <stdbool.h>

MD_C_BEGIN

/* An action says what D is: a sum of hops, each through one of its link fields,
 *
 *   (D v)(x) = 1/2 sum over fields f and directions mu of
 *              eta_mu(x) [ F_mu(x) v(x + h mu) - F_mu(x - h mu)^dag v(x - h mu) ],  h the field's
 * hop.
 *
 * for staggered quarks, and for those of Wilson type with four spins M = A - (H/2) B
 * (dirac/wilson/wilson.h), in each slice of a fifth dimension where there is one,
 *
 *   (H v)(x) = sum over mu of (1 - gamma_mu) U_mu(x) v(x + mu)
 *                           + (1 + gamma_mu) U_mu(x - mu)^dag v(x - mu).
 *
 * Everything that depends on it, the depth of the halo, flops and bytes, the size of D, is asked
 * for here. A new action is a name in the enumeration and a line in action.c. */
typedef enum md_action {
  MD_ACTION_NAIVE,      /* one hop through the gauge links: D of lattice/geometry/conventions.h */
  MD_ACTION_ASQTAD,     /* fat links X, one hop, and long links L, three; L holds its coefficient */
  MD_ACTION_HISQ,       /* the same with other links (Follana et al., PRD 75, 054502) */
  MD_ACTION_WILSON,     /* H through the gauge links */
  MD_ACTION_DOMAINWALL, /* the same in a fifth dimension, Shamir's */
  MD_ACTION_MOBIUS,     /* and with its b5 and c5 */
  MD_ACTIONS
} md_action;

/* As a backend's flags: the actions of H, those of D. */
#define MD_SPIN_ACTIONS                                                                            \
  (1u << MD_ACTION_WILSON | 1u << MD_ACTION_DOMAINWALL | 1u << MD_ACTION_MOBIUS)
#define MD_STAGGERED_ACTIONS (((1u << MD_ACTIONS) - 1u) & ~MD_SPIN_ACTIONS)

enum { MD_MOST_LINK_FIELDS = 2, MD_MOST_TERMS = 8 * MD_MOST_LINK_FIELDS };

typedef struct md_action_data {
  const char *name;
  int fields;
  struct {
    const char *name; /* "gauge", "fat", "long" */
    int hop;          /* sites from the end of D's bracket to the source: 1 or 3 */
  } field[MD_MOST_LINK_FIELDS];
  /* Bare links are in SU(3): |D| <= 4, and 12 or 8 reals hold them. Others are any 3x3 matrices. */
  bool special_unitary;
  int spins;  /* of a quark at a site: 1 or 4 */
  bool walls; /* it has a fifth dimension */
} md_action_data;

const md_action_data *md_action_get(md_action action);
const char *md_action_name(md_action action);
int md_action_of(const char *name);  /* -1: unknown */
extern const char md_action_words[]; /* "naive|asqtad|...", as the choices of an option */

/* Whether its quarks have four spins. */
static inline bool md_action_has_spin(md_action action) {
  return md_action_get(action)->spins == 4;
}

/* Terms of D at a site: two for each direction mu and link field. Numbered by dirac/links/links.h.
 */
static inline int md_action_terms(md_action action) {
  return 8 * md_action_get(action)->fields;
}
/* Reals of a quark at a site: 3 colours and, with spin, 4 of them. Pairs (re, im) are colour +
 * 3 spin, and with a fifth dimension colour + 3 (spin + 4 slice). */
static inline int md_action_reals(md_action action) {
  return MD_FERMION_REALS * md_action_get(action)->spins;
}
/* The longest hop: what md_layout_request.depth must be. */
int md_action_depth(md_action action);

/* Compulsory bytes of an output site: `link_bytes` of stored links, the source vectors read once
 * and the results written once, vector_bytes each; with every neighbour read anew when `reuse` is
 * false. */
static inline double md_action_site_bytes(md_action action, double link_bytes, double vector_bytes,
                                          bool reuse) {
  return link_bytes + vector_bytes * (reuse ? 2 : 1 + md_action_terms(action));
}

MD_C_END
