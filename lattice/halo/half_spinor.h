#pragma once

#include "lattice/geometry/conventions.h"

#include <stdbool.h>

/* What H reads of a neighbour with four spins (dirac/action.h): (1 - gamma_mu) psi of the forward
 * ones, then (1 + gamma_mu) psi of the others, gamma_mu = [[0, S], [S^dag, 0]]. S has its entries
 * beside the diagonal where `swap`; with q the powers of i in -+ S, row by row, the upper spins of
 * that are h_k = psi_k + i^q_k psi_(2 + k ^ swap), and the lower ones follow from h. H^dag reads
 * those of the opposite direction, q ^ 2. */
typedef struct md_half_spinor {
  bool swap;
  int q[2];
} md_half_spinor;
/* X(direction, swap, q_0, q_1), for kernels to which these must be constants. */
#define MD_EACH_HALF_SPINOR(X)                                                                     \
  X(0, true, 3, 3)                                                                                 \
  X(1, true, 0, 2)                                                                                 \
  X(2, false, 3, 1)                                                                                \
  X(3, false, 2, 2)                                                                                \
  X(4, true, 1, 1) X(5, true, 2, 0) X(6, false, 1, 3) X(7, false, 0, 0)
#define MD_HALF_SPINOR(direction, swap, q_0, q_1) {swap, {q_0, q_1}},
static const md_half_spinor md_half_spinors[MD_DIRECTIONS] = {MD_EACH_HALF_SPINOR(MD_HALF_SPINOR)};
#undef MD_HALF_SPINOR
