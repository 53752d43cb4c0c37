#pragma once

#include "lattice/fields/field.h"

/* Sources b of M x = b on both parities: host fields, MD_DOUBLE, [even, odd]; all sites are
 * assigned, halos are not. The same for every rank grid. Local. */

typedef enum md_source_kind {
  MD_SOURCE_POINT,     /* 1 in one colour at one site */
  MD_SOURCE_WALL,      /* 1 in one colour at every site of a time slice */
  MD_SOURCE_CORNER,    /* the same at its sites with x, y and z even: a corner of every 2^3 cube */
  MD_SOURCE_EVEN_WALL, /* the same where x + y + z is even */
  MD_SOURCE_ODD_WALL,  /* the same where x + y + z is odd */
  MD_SOURCE_COLOUR_WALL, /* on a time slice, at every site, a colour vector of squared length 3 of
                            uniform direction: <b_i(x)^* b_j(y)> = delta_ij delta_xy */
  MD_SOURCE_Z2,      /* every component (+-1 +- i)/sqrt(2): Z2 x Z2 noise (S.-J. Dong and K.-F. Liu,
                        Phys. Lett. B 328, 130, 1994) */
  MD_SOURCE_U1,      /* every component exp(i a), a uniform: U(1) noise */
  MD_SOURCE_GAUSSIAN /* complex normal deviates with <|b_i|^2> = 1 */
} md_source_kind;

/* One right-hand side. Random ones are drawn by (seed, number, site), so that they do not depend on
 * what else is in the field. */
typedef struct md_source_vector {
  md_source_kind kind;
  int at[MD_DIMS]; /* point: the site; walls: the time slice in at[MD_T] */
  int colour;      /* of points and walls without random numbers; with spin colour + 3 spin */
  uint64_t seed;
  int number; /* of the vector among those of its seed */
} md_source_vector;

/* Right-hand side r becomes vectors[r], r < n_rhs. */
void md_source_fill(md_field b[MD_PARITIES], const md_source_vector *vectors);

/* Right-hand side c (n_rhs = 3): 1 in colour c at global coordinates `point`. */
void md_source_point(md_field b[MD_PARITIES], const int point[MD_DIMS]);
/* MD_SOURCE_Z2, right-hand sides numbered from 0. */
void md_source_random(md_field b[MD_PARITIES], uint64_t seed);
/* MD_SOURCE_GAUSSIAN, numbered likewise. For tests and benchmarks. */
void md_source_gaussian(md_field b[MD_PARITIES], uint64_t seed);
