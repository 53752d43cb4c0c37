#ifndef MD_LATTICE_FIELDS_SOURCE_H
#define MD_LATTICE_FIELDS_SOURCE_H

#include "lattice/fields/field.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sources b of M x = b on both parities: host fields, MD_DOUBLE, [even, odd]; all sites are
 * assigned, halos are not. The same for every rank grid. Local. */

/* Right-hand side c (n_rhs = 3): 1 in colour c at global coordinates `point`. */
void md_source_point(md_field b[MD_PARITIES], const int point[MD_DIMS]);
/* Right-hand side c (n_rhs = 3): 1 in colour c at every site of the time slice t. */
void md_source_wall(md_field b[MD_PARITIES], int t);
/* Every component (+-1 +- i)/sqrt(2) by (seed, rhs, site): Z2 x Z2 noise (S.-J. Dong and K.-F.
 * Liu, Phys. Lett. B 328, 130, 1994), <|b_i|^2> = 1. */
void md_source_random(md_field b[MD_PARITIES], uint64_t seed);
/* Complex normal deviates with <|b_i|^2> = 1. For tests and benchmarks. */
void md_source_gaussian(md_field b[MD_PARITIES], uint64_t seed);

#ifdef __cplusplus
}
#endif

#endif
