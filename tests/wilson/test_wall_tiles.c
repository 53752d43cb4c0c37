/* The matrix of the fifth dimension in the fragments of `stacked`, without a GPU: what 32 lanes
 * hold of A, and of B after the transposition, multiplied as the instruction m16n8k16 does, is the
 * matrix in each row, and its transpose for the upper half of the spins. */
#include "dirac/tensor/tensor.h"
#include "dirac/wilson/wilson.h"
#include "lattice/fields/reals.h"
#include "support.h"

#include <math.h>
#include <string.h>

enum { LANES = 32, K = 16, ROWS = 16 };

/* Where spin s or s + 2 of a slice stands in B and C of one half of the spins: in a tile of four
 * slices both halves stand in the same rows. */
static int slice_of(int fours, int half, int row, int *of_half) {
  const int in_four = row - MD_SPIN_TILE * (fours / 2);
  *of_half = half;
  if (fours % 2 == 0 || in_four < 0) return row;
  const md_spin_place at = md_spin_place_of(MD_SPIN_FOUR, 0, in_four % MD_SPIN_TILE);
  *of_half = at.spin / 2;
  return row - in_four + at.column;
}

/* c += A B with registers n to n+3 of A. v[half][slice][part]: what the lanes have of B comes from
 * lane 4g+t with part 2t+e of row g, transposed: lane 4g+t then has row 2t+e of part g. */
static void multiply(const md_tensor_walls *w, md_precision precision, int half, int fours, int n,
                     double v[2][MD_TENSOR_SLICES][8], double c[ROWS][8]) {
  double a[ROWS][K] = {{0.0}};
  for (int lane = 0; lane < LANES; lane++)
    for (int i = 0; i < 4; i++)
      for (int e = 0; e < 2; e++) {
        const md_wall_entry entry = md_wall_entry_of(fours, half, lane, n + i, e);
        const bool none = entry.to < 0 || entry.from < 0;
        const double m = none ? 0.0 : (double)md_tensor_wall(w, half, entry.to, entry.from);
        /* Where the instruction has register i of A, by the PTX manual. */
        const int row = lane / 4 + 8 * (i % 2), k = 2 * (lane % 4) + e + 8 * (i / 2);
        a[row][k] = md_stored(precision, entry.piece ? m - md_stored(precision, m) : m);
      }
  for (int k = 0; k < K; k++) {
    int of_half;
    const int slice = slice_of(fours, half, fours <= 2 ? k % MD_SPIN_TILE : k, &of_half);
    for (int row = 0; row < ROWS; row++)
      for (int part = 0; part < 8; part++) c[row][part] += a[row][k] * v[of_half][slice][part];
  }
}

static void compare_row(const md_wall_matrix *matrix, int half, int to, md_precision precision,
                        double v[2][MD_TENSOR_SLICES][8], const double c[8]) {
  const int slices = matrix->slices;
  const double unit = md_precision_roundoff(precision);
  for (int part = 0; part < 8; part++) {
    double expected = 0.0;
    for (int from = 0; to < slices && from < slices; from++)
      expected += matrix->m[half ? to * slices + from : from * slices + to] * v[half][from][part];
    md_require_at_most(fabs(c[part] - expected), 16.0 * (unit * unit + 1e-7),
                       "a row of the matrix");
  }
}

static void compare(md_context *context, int slices, double mass, md_precision precision) {
  const md_backend_request request = {.action = MD_ACTION_MOBIUS, .walls = {slices, 1.8, 1.5, 0.5}};
  const int fours = (slices + MD_SPIN_FOUR - 1) / MD_SPIN_FOUR, tiles = (fours + 1) / 2;
  const int whole = MD_SPIN_TILE * (fours / 2), rows = MD_SPIN_TILE * tiles;
  md_wall_matrices m;
  MD_REQUIRE(context, md_wall_matrices_make(context, &request, mass, &m));
  for (int which = 0; which < 2; which++) {
    const md_wall_matrix *matrix = which ? &m.site : &m.k;
    md_tensor_walls w = {.slices = slices, .mass = (float)mass};
    double v[2][MD_TENSOR_SLICES][8], c[ROWS][8] = {{0.0}};
    for (int k = 0; k < slices; k++) w.c[k] = (float)matrix->m[k];
    for (int i = 0; i < 2 * MD_TENSOR_SLICES * 8; i++)
      v[i / 128][i / 8 % 16][i % 8] = (i * 37 % 101 - 50) / 64.0;
    for (int half = 0; half < 2; half++) {
      memset(c, 0, (size_t)whole * sizeof c[0]);
      for (int n = 0; n < 4 * tiles; n += 4) multiply(&w, precision, half, fours, n, v, c);
      for (int row = 0; row < whole; row++) compare_row(matrix, half, row, precision, v, c[row]);
    }
    for (int row = whole; row < rows; row++) {
      int half;
      const int to = slice_of(fours, 0, row, &half);
      compare_row(matrix, half, to, precision, v, c[row]);
    }
  }
}

static void fragments_are_the_matrix(void **state) {
  for (int slices = 2; slices <= MD_TENSOR_SLICES; slices++)
    for (int k = 0; k < 4; k++)
      compare(*state, slices, k % 2 ? -0.3 : 0.1, k / 2 ? MD_HALF : MD_BF16);
}

static struct CMUnitTest tests[] = {cmocka_unit_test(fragments_are_the_matrix)};
MD_RUN_TESTS(tests)
