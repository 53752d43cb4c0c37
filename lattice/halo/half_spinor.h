#pragma once

#include "lattice/geometry/conventions.h"

#include <stdbool.h>

/* What H reads of a neighbour with four spins (dirac/action.h): (1 - gamma_mu) psi of the forward
 * ones, then (1 + gamma_mu) psi of the others, gamma_mu = [[0, S], [S^dag, 0]]. S has its entries
 * beside the diagonal where `swap`; with q the powers of i in -+ S, row by row, the upper spins of
 * that are h_k = psi_k + i^q_k psi_(2 + k ^ swap), and the lower ones follow from h. */
typedef struct md_half_spinor {
  bool swap;
  int q[2];
} md_half_spinor;
static const md_half_spinor md_half_spinors[MD_DIRECTIONS] = {
    {true, {3, 3}}, {true, {0, 2}}, {false, {3, 1}}, {false, {2, 2}},
    {true, {1, 1}}, {true, {2, 0}}, {false, {1, 3}}, {false, {0, 0}}};
