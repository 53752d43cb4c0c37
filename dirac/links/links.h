#pragma once

#include "dirac/request.h"
#include "lattice/gauge/gauge.h"

/* Links are folded here and nowhere else: phases eta, boundary sign, twist, adjoint and the minus
 * of backward terms. A backend repacks what md_links_fold hands out. (cpu_ref, the oracle, does not
 * use this file: it takes bare links and computes phases on the spot, so that it can judge it.)
 *
 * The terms of D at an output site x, in the canonical order of all backends: term = 8 field +
 * direction, direction = mu forward, 4 + mu backward, mu = x,y,z,t. With h the field's hop and u
 * the folded matrix,
 *
 *   (D v)(x) = MD_HOP_FACTOR * sum over terms of u v(neighbour),
 *   forward  u =  phase F_mu(x),                 neighbour x + h mu,
 *   backward u = -phase F_mu(x - h mu)^dag,      neighbour x - h mu,
 *
 * With spin there is neither MD_HOP_FACTOR nor eta nor the minus of backward terms: u is what H
 * multiplies (1 -+ gamma_mu) v with.
 *
 * phase = eta_mu(x) times the boundary sign, when the hop leaves the last time slice an odd number
 * of times, times the twist; backward it is the conjugate of what the forward term has at x - h mu
 * (eta does not depend on the coordinate along its own direction). D stays antihermitian. */
#define MD_HOP_FACTOR 0.5

/* What D is made of. */
typedef struct md_links {
  md_action action;
  const md_gauge *field; /* of the action, one behind the other, bare, halos exchanged; borrowed */
  bool antiperiodic;     /* sign -1 on t-links that leave the last time slice */
  md_twist twist;
  /* Of each field, on all ranks: the largest |re + i im| of a number of a link, 1 in SU(3). What
   * formats of fixed range scale by; a twist does not change it. Of long links of 13 and 9 reals it
   * is the number s of which they are multiples: the largest sqrt(tr L^dag L / 3), with the sign
   * that most of det L have, so that phases are small (the long links of asqtad and HISQ carry a
   * negative coefficient). */
  double largest[MD_MOST_LINK_FIELDS];
  /* With 13 and 9 reals: the most that a real number of L^dag L / s^2 of a long link differs from
   * that of 1, on all ranks; what is kept is unitary. Else 0. */
  double unitary_error;
} md_links;

/* The links of a request: `field` points to the link fields of its action. MD_INPUT: 13 or 9 reals
 * are asked for and a long link is not s times a matrix in U(3), that is a real number of
 * L^dag L / s^2 - 1 is larger than MD_UNITARY_WITHIN; single precision of a file stays below.
 * Collective, and the same status on all ranks. */
#define MD_UNITARY_WITHIN 4e-6
md_status md_request_links(md_context *context, const md_backend_request *request,
                           const md_gauge *field, md_links *links);

typedef struct md_link_term {
  int field, hop, mu, direction;
  bool backward;
} md_link_term;

static inline md_link_term md_links_term(md_action action, int term) {
  const int field = term / MD_DIRECTIONS, direction = term % MD_DIRECTIONS;
  return (md_link_term){field, md_action_get(action)->field[field].hop, direction % MD_DIMS,
                        direction, direction >= MD_DIMS};
}

/* Neighbours of the sites of output parity p through a term, as md_geometry.neighbour. */
static inline const int32_t *md_links_neighbours(const md_links *links, int p, int term) {
  const md_link_term t = md_links_term(links->action, term);
  return md_neighbours(links->field->geometry, t.hop, p, t.direction);
}
/* True when a neighbour of the site lies in the halo. */
bool md_links_reach_halo(const md_links *links, int parity, int64_t site);

static inline bool md_links_twisted(const md_twist *twist) {
  return twist->imaginary_mu != 0.0 || twist->flux != 0;
}

/* What multiplies the bare matrix, or its adjoint, of a term at an output site, as (re, im). */
void md_links_phase(const md_links *links, int parity, int term, int64_t site, double phase[2]);
/* Whether it is -1, for links without a twist. */
bool md_links_minus(const md_links *links, int parity, int term, int64_t site);

/* Folded matrices of one term for the output sites first .. first+count-1 of a parity, as 18 planes
 * of doubles: real c of site first+i at planes[c*count + i]. `apart`: without the phase, F or
 * F^dag, so that links in SU(3) stay there. Local. */
void md_links_fold(const md_links *links, int parity, int term, int64_t first, int count,
                   bool apart, double *planes);

/* A bound on |D|, or |H| <= 8: 4 for links in SU(3), else half the largest sum of the norms of a
 * site's links. Collective. */
double md_links_norm(const md_context *context, const md_links *links);
