/* The matrix of the fifth dimension in the fragments of `stacked`, without a GPU: what 32 lanes
 * hold of A, and of B after the transposition, multiplied as the instruction m16n8k16 does, is the
 * matrix in each row and each of its transposes. */
#include "dirac/tensor/tensor.h"
#include "dirac/wilson/wilson.h"
#include "lattice/fields/reals.h"
#include "support.h"

#include <math.h>

enum { LANES = 32, PARTS = 8, K = 16, ROWS = 16 };

static double stored(md_precision precision, double v) {
  double rounded;
  md_store_reals(precision, &rounded, 0, 1, &v);
  md_load_reals(precision, &rounded, 0, 1, &v);
  return v;
}

/* c += A B with registers n to n+3 of A. b[tile][slice][part]: what the lanes have of B comes from
 * lane 4g+t with part 2t+e of slice g, transposed: lane 4g+t then has slice 2t+e of part g. */
static void multiply(const md_tensor_walls *w, md_precision precision, bool lower, int tiles, int n,
                     double b[2][8][8], double c[ROWS][8]) {
  double a[ROWS][K] = {{0.0}};
  for (int lane = 0; lane < LANES; lane++)
    for (int i = 0; i < 4; i++)
      for (int e = 0; e < 2; e++) {
        const md_wall_entry entry = md_wall_entry_of(tiles, lane, n + i, e);
        const double v = (double)md_tensor_wall(w, lower, entry.to, entry.from);
        /* Where the instruction has register i of A, by the PTX manual. */
        const int row = lane / 4 + 8 * (i % 2), k = 2 * (lane % 4) + e + 8 * (i / 2);
        a[row][k] = stored(precision, entry.piece ? v - stored(precision, v) : v);
      }
  for (int row = 0; row < ROWS; row++)
    for (int column = 0; column < 8; column++)
      for (int k = 0; k < K; k++)
        c[row][column] += a[row][k] * b[tiles == 1 ? 0 : k / 8][k % 8][column];
}

static void compare(md_context *context, int slices, double mass, md_precision precision) {
  const md_backend_request request = {.action = MD_ACTION_MOBIUS, .walls = {slices, 1.8, 1.5, 0.5}};
  const int tiles = slices > MD_SPIN_TILE ? 2 : 1;
  md_wall_matrices m;
  MD_REQUIRE(context, md_wall_matrices_make(context, &request, mass, &m));
  const md_wall_matrix *of[] = {&m.k, &m.site};
  for (int which = 0; which < 4; which++) {
    const md_wall_matrix *matrix = of[which / 2];
    const bool lower = which % 2;
    md_tensor_walls w = {.slices = slices, .mass = (float)mass};
    double b[2][8][8], c[ROWS][8] = {{0.0}};
    for (int k = 0; k < slices; k++) w.c[k] = (float)matrix->m[k];
    for (int i = 0; i < 2 * 8 * 8; i++) b[i / 64][i / 8 % 8][i % 8] = (i * 37 % 101 - 50) / 64.0;
    for (int n = 0; n < 4 * tiles; n += 4) multiply(&w, precision, lower, tiles, n, b, c);
    for (int row = 0; row < 8 * tiles; row++)
      for (int column = 0; column < 8; column++) {
        double expected = 0.0;
        for (int from = 0; row < slices && from < slices; from++)
          expected += matrix->m[lower ? row * slices + from : from * slices + row] *
                      b[from / 8][from % 8][column];
        const double unit = md_precision_roundoff(precision);
        md_require_at_most(fabs(c[row][column] - expected), 16.0 * (unit * unit + 1e-7),
                           "a row of the matrix");
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
