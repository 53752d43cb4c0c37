#pragma once

#include "lattice/gauge/gauge.h"

/* Staggered phases and the antiperiodic sign that other codes leave in their links: found and
 * taken off.
 *
 * The determinant of a link is gauge invariant under SU(3), and a sign s on the link changes it by
 * s^3 = s. It is near 1 for thin links, mostly positive for fat links, mostly negative for long
 * links (the Naik coefficient is negative). So the sign of each link can be read where the sum
 *   score = sum_links s(x,mu) Re det U_mu(x) / sum_links |Re det U_mu(x)|   (negated: long links)
 * over the convention s that is in the links is near 1; at most a quarter of that for another. Of
 * uniformly random thin links fat links of asqtad have 1.0, of hisq 0.8, long links of hisq 0.3. */
typedef enum md_link_kind { MD_LINKS_THIN, MD_LINKS_FAT, MD_LINKS_LONG } md_link_kind;
/* "thin", "fat", "long" */
const char *md_link_kind_name(md_link_kind kind);

typedef enum md_phase_convention {
  MD_PHASES_NONE,
  MD_PHASES_XYZT, /* ours: eta_x = 1, eta_y = (-1)^x, eta_z = (-1)^(x+y), eta_t = (-1)^(x+y+z) */
  MD_PHASES_TXYZ, /* MILC: eta_t = 1, eta_x = (-1)^t, eta_y = (-1)^(t+x), eta_z = (-1)^(t+x+y) */
  MD_PHASE_CONVENTIONS
} md_phase_convention;
/* "none", "xyzt", "txyz (MILC)" */
const char *md_phase_name(md_phase_convention convention);

typedef struct md_phases {
  md_phase_convention convention;
  bool antiperiodic; /* t-links that cross the boundary an odd number of times have a
                       minus sign: thin, fat at t = T-1; long at T-3, T-2, T-1 (T > 2) */
  double score;      /* of the convention found, over the links that no boundary crosses */
  double scores[MD_PHASE_CONVENTIONS]; /* of all */
  double boundary_score;               /* of the sign found, over the t-links that cross it */
  bool clear; /* both are MD_PHASE_SCORE or more, those of other conventions half of that */
} md_phases;

/* Finds what is in the links. MD_INPUT, naming the scores, when the best answer is not clear,
 * except where it is, with both scores at MD_PHASE_DOUBT or more, that nothing is in the links:
 * then a warning says so and they are taken as bare. Reads no halo. Collective, same on all rank
 * grids. */
md_status md_phases_find(md_context *context, const md_gauge *gauge, md_link_kind kind,
                         const char *name, md_phases *phases);
#define MD_PHASE_SCORE 0.25
#define MD_PHASE_DOUBT 0.1

/* The best answer, without judgement. Collective. */
md_status md_phases_score(md_context *context, const md_gauge *gauge, md_link_kind kind,
                          md_phases *phases);

/* Multiplies the links by the signs: puts them in, and, done again, takes them off. Exchanges
 * halos. Collective. */
md_status md_phases_apply(md_context *context, md_gauge *gauge, md_link_kind kind,
                          const md_phases *phases);
