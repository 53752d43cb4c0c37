/* The index maps alone: every number of every matrix and vector enters its tile, and the products
 * of the tiles, formed in double, are the products of the matrices. */
#include "dirac/tensor/packing.h"
#include "support.h"

#include <complex.h>
#include <math.h>

static double number(int seed, int item, int row, int column, int part) {
  return sin(1.0 + 3.1 * seed + 0.7 * item + 1.9 * row + 2.3 * column + 0.4 * part);
}

/* Part `part` of (U v)[row] of one item. */
static double expected(int item, int row, int part) {
  double sum = 0.0;
  for (int c = 0; c < 3; c++) {
    const double re = number(0, item, row, c, 0), im = number(0, item, row, c, 1);
    const double v[2] = {number(1, item, c, 0, 0), number(1, item, c, 0, 1)};
    sum += part ? re * v[1] + im * v[0] : re * v[0] - im * v[1];
  }
  return sum;
}

static double entry_a(md_tile_entry e) {
  return e.sign * number(0, e.item, e.row, e.column, e.part);
}
static double entry_b(md_tile_entry e) {
  return e.sign * number(1, e.item, e.row, 0, e.part);
}

static void check_tile(md_packing packing) {
  int results = 0;
  for (int accumulator = 0; accumulator < md_tile_accumulators(packing); accumulator++)
    for (int i = 0; i < MD_TILE; i++)
      for (int j = 0; j < MD_TILE; j++) {
        const md_tile_entry result = md_tile_c(packing, accumulator, i, j);
        double sum = 0.0;
        for (int product = 0; product < md_tile_products(packing); product++) {
          if (md_tile_accumulators(packing) > 1 && md_tile_accumulator(product) != accumulator)
            continue;
          for (int k = 0; k < MD_TILE; k++)
            sum += entry_a(md_tile_a(packing, product, i, k)) *
                   entry_b(md_tile_b(packing, product, k, j));
        }
        if (!result.sign) continue;
        results++;
        md_require_at_most(fabs(sum - expected(result.item, result.row, result.part)), 1e-14,
                           md_packing_name(packing));
      }
  assert_int_equal(results, md_tile_items(packing) * MD_FERMION_REALS);
}

static void tiles_hold_all_products(void **state) {
  (void)state;
  check_tile(MD_PACKING_SINGLE);
  check_tile(MD_PACKING_DIAGONAL);
  check_tile(MD_PACKING_BLOCK8);
}

/* stacked: the eight directions are the items. */
static void check_stacked(md_precision precision) {
  bool seen[MD_DIRECTIONS][3][2] = {0};
  for (int k = 0; k < MD_STACKED_K; k++) {
    const md_stacked_k s = md_stacked_row(precision, k);
    assert_false(seen[s.direction][s.colour][s.part]);
    seen[s.direction][s.colour][s.part] = true;
  }
  for (int column = 0; column < MD_STACKED_COLUMNS; column++) {
    double sum = 0.0, all = 0.0;
    for (int k = 0; k < MD_STACKED_K; k++) {
      const md_stacked_k s = md_stacked_row(precision, k);
      sum +=
          number(1, s.direction, s.colour, 0, s.part) * entry_a(md_stacked_b(precision, k, column));
    }
    for (int d = 0; d < MD_DIRECTIONS && column < MD_STACKED_RESULTS; d++)
      all += expected(d, column / 2, column % 2);
    md_require_at_most(fabs(sum - all), 1e-13, "stacked");
  }
}

/* Rows are a permutation of right-hand sides, link places one of a site's 72 complex numbers. */
static void check_orders(md_precision precision) {
  unsigned rows = 0;
  bool used[72] = {0};
  for (int row = 0; row < MD_TILE; row++) rows |= 1u << md_stacked_rhs(precision, MD_TILE, row);
  assert_int_equal(rows, 0xffff);
  for (int n = 0; n < 72; n++) {
    const int at = md_stacked_link_at(precision, n / 9, n / 3 % 3, n % 3);
    assert_in_range(at, 0, 71);
    assert_false(used[at]);
    used[at] = true;
  }
}

static void stacked_sums_all_directions(void **state) {
  (void)state;
  check_stacked(MD_HALF);
  check_stacked(MD_DOUBLE);
  check_orders(MD_HALF);
  check_orders(MD_DOUBLE);
}

/* m = 1 -+ gamma_mu of a direction, [row][column]. */
static void projector(int direction, double complex m[4][4]) {
  static const double complex power[] = {1.0, I, -1.0, -I};
  for (int i = 0; i < 4; i++) {
    const md_spin_partner p = md_spin_partner_of(direction, i);
    for (int j = 0; j < 4; j++) m[i][j] = (i == j) + (j == p.spin ? power[p.turn] : 0.0);
  }
}

/* gamma_mu, Hermitian, square to 1 and anticommute; both ways along an axis have the same; they
 * leave no spin in its half. The rows of a tile are all spins of its columns, once each, those of
 * a lane in one half of one column. */
static void spins_are_projected(void **state) {
  double complex gamma[4][4][4], back[4][4];
  (void)state;
  for (int mu = 0; mu < 4; mu++) {
    projector(mu, gamma[mu]);
    projector(mu + 4, back);
    for (int i = 0; i < 4; i++)
      for (int j = 0; j < 4; j++) {
        gamma[mu][i][j] = (i == j) - gamma[mu][i][j];
        assert_true(back[i][j] == (i == j) + gamma[mu][i][j]);
        if (i / 2 == j / 2) assert_true(gamma[mu][i][j] == 0.0);
      }
  }
  for (int n = 0; n < 16 * 16; n++) {
    const int mu = n % 4, nu = n / 4 % 4, i = n / 16 % 4, j = n / 64;
    double complex sum = 0.0;
    for (int k = 0; k < 4; k++)
      sum += gamma[mu][i][k] * gamma[nu][k][j] + gamma[nu][i][k] * gamma[mu][k][j];
    assert_true(sum == (mu == nu && i == j ? 2.0 : 0.0));
    assert_true(gamma[mu][i][j] == conj(gamma[mu][j][i]));
  }
  for (int columns = MD_SPIN_FOUR; columns <= MD_SPIN_TILE; columns += MD_SPIN_FOUR) {
    int seen[MD_SPIN_TILE][4] = {{0}};
    for (int at = 0; at < 4 * columns; at++) {
      const md_spin_place row = md_spin_place_of(columns, at / MD_TILE, at % MD_TILE);
      assert_in_range(row.column, 0, columns - 1);
      assert_in_range(row.spin, 0, 3);
      assert_int_equal(seen[row.column][row.spin]++, 0);
      const md_spin_place low = md_spin_place_of(columns, at / MD_TILE, at % MD_SPIN_TILE);
      assert_int_equal(row.column, low.column);
      assert_int_equal(row.spin / 2, low.spin / 2);
      assert_int_equal(row.spin % 2, at % MD_TILE / MD_SPIN_TILE);
    }
  }
}

static const struct CMUnitTest const_tests[] = {cmocka_unit_test(tiles_hold_all_products),
                                                cmocka_unit_test(stacked_sums_all_directions),
                                                cmocka_unit_test(spins_are_projected)};

int main(void) {
  return cmocka_run_group_tests(const_tests, NULL, NULL);
}
