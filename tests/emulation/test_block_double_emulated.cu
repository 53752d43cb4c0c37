/* The kernels of block operations on fields in double, run on the host, and the products of two
 * fields in every precision, which are formed in double. */
#include "block_problem.h"

namespace {

using namespace block_problem;

template <int Q, bool HAS_X, bool HAS_Z> void check_update(int sites, int n, bool backwards) {
  constexpr bool GRAM = Q <= 2;
  stored_field<double> y(sites, n, 1), x(sites, n, 77), z(sites, n, 5);
  const stored_field<double> y_before = y, z_before = z;
  const matrices m(n, Q, 3, false);
  const view of_y = y.wide(), of_x = x.wide(), of_z = z.wide();
  const int of_c = HAS_X ? 2 : 1; /* the place of z's matrix */
  double tile[TILE];
  difference of_update, of_sum;
  run(0, [&] {
    update_rows<Q, HAS_X, HAS_Z, GRAM>(of_y, of_x, of_z, m.in_lanes.data(), backwards, tile);
  });
  for (int row = 0; row < y.rows(); row++)
    for (int j = 0; j < n; j++) {
      complex sum = {0.0, 0.0}, added = z_before.at(row, j);
      for (int i = 0; i < n; i++) {
        add_product(sum, y_before.at(row, i), m.at(0, i, j));
        if (HAS_X) add_product(sum, x.at(row, i), m.at(1, i, j));
        if (HAS_Z) add_product(added, y_before.at(row, i), m.at(of_c, i, j));
      }
      of_update.add(y.at(row, j), sum);
      of_sum.add(z.at(row, j), added);
    }
  at_most(of_update.relative(), rounding<double>(), "y b + x a");
  at_most(of_sum.relative(), rounding<double>(), "z + y c");
  if (GRAM) check_tile(y, 0, 0, tile);
}

void check_gram(int sites, int n) {
  const int side = (n + SIDE - 1) / SIDE;
  stored_field<double> x(sites, n, 13);
  const view of_x = x.wide();
  std::vector<double> tiles(side * (side + 1) / 2 * TILE);
  for (int column = 0, tile = 0; column < side; column++)
    for (int row = 0; row <= column; row++, tile++) {
      run(tile, [&] { multiply_self(of_x, tiles.data()); });
      check_tile(x, row, column, &tiles[tile * TILE]);
    }
}

template <int Q> void check(int n) {
  for (const int sites : {8, 8 * (WARPS + 3)}) {
    check_update<Q, false, false>(sites, n, false);
    check_update<Q, true, false>(sites, n, true);
    check_update<Q, false, true>(sites, n, true);
    check_update<Q, true, true>(sites, n, false);
    check_gram(sites, n);
  }
}

void updates(void **state) {
  (void)state;
  check<1>(8);
  check<1>(5);
  check<2>(16);
  check<2>(12);
  check<4>(17);
}

/* All tiles of <x_i, y_j>, row by row. */
void pairs(void **state) {
  (void)state;
  for (const int n : {5, 16, 20}) {
    const int side = (n + SIDE - 1) / SIDE;
    stored_field<float> x(8 * (WARPS + 3), n, 3), y(8 * (WARPS + 3), n, 17);
    const auto of_x = x.narrow<0>(), of_y = y.narrow<0>();
    std::vector<double> tiles(side * side * TILE);
    for (int tile = 0; tile < side * side; tile++)
      run(tile, [&] { multiply_pair(of_x, of_y, side, tiles.data()); });
    check_pairs(x, y, tiles.data(), rounding<double>());
  }
}

} // namespace

int main(void) {
  const CMUnitTest tests[] = {{"updates", updates}, {"pairs_single", pairs}};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
