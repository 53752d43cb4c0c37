#pragma once

#include "base/memory_need.h"
#include "base/options.h"
#include "lattice/gauge/gauge.h"
#include "lattice/gauge/project.h"

/* Fat and long links of improved staggered actions, and other smeared links, from thin links.
 *
 * Thin links are bare SU(3) without phases and boundary signs, halos exchanged. The results are
 * bare too (phases and the boundary sign belong to the operator), in double on the host wherever
 * they were made, halos exchanged; fat and long links are not unitary. Formulas and coefficients:
 * docs/actions.md.
 *
 *   asqtad  X: 1, 3, 5, 7 links and Lepage term with u0; L = -(1/24) u0^-2 UUU
 *           G. P. Lepage, Phys. Rev. D59, 074502 (1999); K. Orginos, D. Toussaint, R. L. Sugar,
 *           Phys. Rev. D60, 054503 (1999)
 *   hisq    V = fat7(U), W = V (V^dag V)^(-1/2) in U(3), X = asqtad-like sum over W with twice the
 *           Lepage term and (1 + eps/8) W, L = -((1 + eps)/24) WWW
 *           E. Follana et al., Phys. Rev. D75, 054502 (2007); A. Bazavov et al., D82, 074501 (2010)
 *   fat7    1, 3, 5, 7 links with u0, one step, no projection
 *   ape     steps times: (1 - alpha) U + alpha/6 sum of 3-staples, projected to SU(3)
 *           M. Albanese et al., Phys. Lett. B192, 163 (1987)
 *   stout   steps times: exp(i Q) U, Q from rho times the sum of 3-staples
 *           C. Morningstar, M. Peardon, Phys. Rev. D69, 054501 (2004)
 *
 * Every result is the same to the last bit for every rank grid and thread count; those of a GPU
 * differ from those of the host by rounding. */
typedef struct md_recipe md_recipe; /* one line of the table in recipes.c */

/* The recipe of a name, NULL when there is none; and the names "asqtad|hisq|...". */
const md_recipe *md_recipe_find(const char *name);
const char *md_recipe_name(const md_recipe *recipe);
extern const char md_recipe_names[];
/* True when the recipe makes long links; when it looks at the parameter of that name: u0,
 * naik-epsilon, alpha, rho, steps. */
bool md_recipe_has_long(const md_recipe *recipe);
bool md_recipe_takes(const md_recipe *recipe, const char *parameter);

typedef struct md_smear_request {
  const md_recipe *recipe;
  md_space space;      /* where they are made; MD_DEVICE needs a build with CUDA and a GPU */
  double u0;           /* tadpole factor of asqtad and fat7, > 0; others do not look at it */
  double alpha, rho;   /* of ape, of stout */
  int steps;           /* of ape, stout */
  double naik_epsilon; /* of hisq */
  bool unmeasured;     /* the report has counts and times, no means */
} md_smear_request;

/* A request with the usual values: u0 = 1, alpha = 0.5, rho = 0.1, steps = 1, eps = 0. */
md_smear_request md_smear_defaults(const md_recipe *recipe);
/* The i-th parameter, by the name that md_recipe_takes knows; NULL behind the last one. */
const char *md_smear_parameter(const md_smear_request *r, int i, double *value);

/* Means over a kind of link of all directions and sites. */
typedef struct md_link_means {
  char name;         /* 'V': a sum of paths that is then projected, or fat7; 'W': projected or
                        stout links, after the last step; 'X': fat; 'L': long */
  double plaquette;  /* Re tr / 3 of the plaquette, mean of six planes; NaN of long links */
  double link_trace; /* Re tr / 3 */
  double norm2;      /* sum of the nine |elements|^2, / 3 */
} md_link_means;

enum { MD_LINK_KINDS_MOST = 4 }; /* V, W, X and L of hisq */

typedef struct md_smear_report {
  md_link_means kinds[MD_LINK_KINDS_MOST];
  int kind_count;
  double make_s; /* time to make the links where they are made: without checks, means, transfers */
  md_projection_counts projection; /* summed over steps */
} md_smear_report;

/* Makes the links. fat, long_links: created here on the geometry of `thin`, destroyed by the
 * caller. long_links may be NULL, and must be NULL where the recipe has none. report may be NULL
 * (measuring costs a little). Errors, after which nothing is left to destroy: MD_INPUT for
 * parameters out of range, thin links that are not in SU(3) (largest deviation above
 * MD_THIN_TOLERANCE), thin links with staggered phases or a boundary sign in them, a smeared matrix
 * that is singular; MD_ENVIRONMENT for memory. Collective; shows progress. */
md_status md_smear(md_context *context, const md_gauge *thin, const md_smear_request *request,
                   md_gauge *fat, md_gauge *long_links, md_smear_report *report);

/* Adds what md_smear allocates on a rank beside the thin links, the links that it makes included.
 * Needs no tables of the geometry. Local. */
void md_smear_need(const md_geometry *geometry, const md_smear_request *request,
                   md_memory_need *need);

/* Single precision rounds links to 1e-7; files of other codes are seen with a few times that. */
#define MD_THIN_TOLERANCE 1e-4

/* MD_INPUT for links that are not finite, or not in SU(3) within MD_THIN_TOLERANCE, naming
 * staggered phases and a boundary sign where these are it. Halos exchanged. Collective. */
md_status md_gauge_check_thin(md_context *context, const md_gauge *thin);

/* Means of `gauge`, halos exchanged. Collective; same bits for every rank grid. */
md_status md_link_measure(md_context *context, const md_gauge *gauge, char name,
                          md_link_means *means);

/* The parameters of improved actions, of every command that makes their links: rows for its table,
 * into two doubles. u0_of: the actions of the command that have a tadpole factor, a literal. */
/* clang-format off */
#define MD_SMEAR_OPTIONS(u0_target, u0_of, naik_epsilon_target)                                    \
  MD_OPTION(REAL, "u0", &(u0_target), "U", "tadpole factor of " u0_of " [1]",                      \
            .low = 1e-3, .high = 10.0, .group = MD_GROUP_PHYSICS),                                 \
  MD_OPTION(REAL, "naik-epsilon", &(naik_epsilon_target), "E",                                     \
            "of hisq: its links of charm and other heavy quarks [0]", .low = -10.0, .high = 10.0)
/* Of commands that load thin links: md_gauge_reunitarize, into a bool. */
#define MD_REUNITARIZE_OPTION(flag)                                                                \
  MD_OPTION(FLAG, "reunitarize", &(flag), NULL,                                                    \
            "project the links onto SU(3) once they are read, in double",                         \
            .group = MD_GROUP_INPUT)
/* clang-format on */
