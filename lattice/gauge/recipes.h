#pragma once

#include "lattice/gauge/smear.h"
#include "lattice/gauge/staples.h"

/* Inside of smearing: what each action's links are made of, as data. */

typedef enum md_level_end { /* what is done with a sum of paths */
                            MD_END_NONE,
                            MD_END_U3,   /* projected to U(3) */
                            MD_END_SU3,  /* and divided by the cube root of its determinant */
                            MD_END_STOUT /* exp of its traceless anti-Hermitian part, times the link
                                          */
} md_level_end;

/* Each level smears the links that the one before made. */
typedef struct md_level {
  md_path_weights weights; /* u0 divides: three by u0^2, five and Lepage by u0^4, seven by u0^6 */
  md_path_weights slope;   /* the weights are weights + slope * (rho if taken, else alpha) */
  md_level_end end;
  char sum_name, end_name; /* in reports, see md_link_means; 0: not reported */
} md_level;

struct md_recipe {
  const char *name;
  const char *takes; /* parameters that it looks at, with blanks around each */
  int level_count;
  md_level levels[2];
  double naik;         /* weight of the product of three links, divided by u0^2; 0: no long links */
  double epsilon_one;  /* the last level's weight of one link grows by this times epsilon, */
  double epsilon_naik; /* that of three links by a factor of 1 + this times epsilon */
};

/* How many levels are made one after another, and the weights of one with all its parameters. */
int md_smear_steps(const md_smear_request *request);
md_path_weights md_smear_weights(const md_smear_request *request, const md_level *level);
double md_smear_naik_weight(const md_smear_request *request);
