/* The kernels of block operations on narrow fields, run on the host (emulated.h): products, sums
 * and scales against plain loops over what is stored, in every precision, for numbers of right-hand
 * sides that fill rows and that do not, with fewer and more sites than a block has warps for. */
#include "block_problem.h"

namespace {

using namespace block_problem;

template <class S, int Q, int N, bool HAS_X> void check_update(int sites, int n, bool backwards) {
  constexpr summed_with SUMS = Q <= 2 ? ITSELF : NOTHING;
  stored_field<S> y(sites, n, 1), x(sites, n, 77), other(sites, n, 3);
  const stored_field<S> before = y;
  stored_field<S> &to = backwards ? other : y;
  const matrices m(n, Q, 2, true);
  const auto of_y = y.template narrow<N>(), of_x = x.template narrow<N>();
  const auto of_to = to.template narrow<N>();
  double tile[TILE];
  difference d;
  run(0, [&] {
    update_sites<Q, S, N, HAS_X, SUMS>(of_y, of_x, of_to, of_x, m.staged<Q>(), backwards, tile);
  });
  for (int row = 0; row < to.rows(); row++)
    for (int j = 0; j < n; j++) {
      complex sum = {0.0, 0.0};
      for (int i = 0; i < n; i++) {
        add_product(sum, before.at(row, i), m.at(0, i, j));
        if (HAS_X) add_product(sum, x.at(row, i), m.at(1, i, j));
      }
      d.add(to.at(row, j), sum);
    }
  at_most(d.relative(), rounding<S>(), "y b + x a");
  if (SUMS) check_tile(to, 0, 0, tile);
  if constexpr (SUMS && HAS_X) {
    y = before;
    run(0, [&] {
      update_sites<Q, S, N, true, ANOTHER>(of_y, of_x, of_to, of_x, m.staged<Q>(), backwards, tile);
    });
    check_pairs(x, to, tile, 0x1p-18); /* numbers of `to` are some 8 */
  }
}

/* In pieces `begin` to the last but `rest`, the others stay as they are. */
template <class S, int Q, int N> void check_add(int sites, int n, int count, int begin, int rest) {
  stored_field<float> z(sites, n, 5);
  const stored_field<float> before = z;
  const matrices m(n, Q, count, true);
  const auto of_z = z.template narrow<N>();
  std::vector<stored_field<S>> x;
  narrow_views<S, N> views = {};
  difference d;
  for (int k = 0; k < count; k++) x.emplace_back(sites, n, 9 + 2 * k);
  for (int k = 0; k < count; k++) views.of[k] = x[k].template narrow<N>();
  const int end = sites / ROWS - rest;
  run(0, [&] { add_sites<Q, S, N>(of_z, views, count, m.staged<Q>(), begin, end); });
  for (int row = 0; row < z.rows(); row++)
    for (int j = 0; j < n; j++) {
      const int piece = row / (ROWS * COLOURS);
      complex sum = before.at(row, j);
      for (int e = 0; e < count * n && begin <= piece && piece < end; e++)
        add_product(sum, x[e / n].at(row, e % n), m.at(e / n, e % n, j));
      d.add(z.at(row, j), sum);
    }
  at_most(d.relative(), 0x1p-20, "z + sum of x c");
}

template <class S, int N> void check_gram(int sites, int n) {
  constexpr int COLUMNS = N % SIDE == 0 ? N : 0;
  const int side = (n + SIDE - 1) / SIDE;
  stored_field<S> x(sites, n, 13);
  const auto of_x = x.template narrow<COLUMNS>();
  std::vector<double> tiles(side * (side + 1) / 2 * TILE);
  for (int column = 0, tile = 0; column < side; column++)
    for (int row = 0; row <= column; row++, tile++) {
      run(tile, [&] { multiply_narrow<true>(of_x, of_x, 0, tiles.data()); });
      check_tile(x, row, column, &tiles[tile * TILE]);
    }
}

template <class S, int N> void check_products(int sites, int n) {
  constexpr int COLUMNS = N % SIDE == 0 ? N : 0;
  const int side = (n + SIDE - 1) / SIDE;
  stored_field<S> x(sites, n, 13), y(sites, n, 29);
  const auto of_x = x.template narrow<COLUMNS>(), of_y = y.template narrow<COLUMNS>();
  std::vector<double> tiles(side * side * TILE);
  for (int tile = 0; tile < side * side; tile++)
    run(tile, [&] { multiply_narrow<false>(of_x, of_y, side, tiles.data()); });
  check_pairs(x, y, tiles.data(), 0x1p-21);
}

template <class S, int Q, int N> void check(int n) {
  for (const int sites : {8, 8 * (2 * WARPS + 3)}) {
    check_update<S, Q, N, true>(sites, n, false);
    check_update<S, Q, N, false>(sites, n, true);
    check_add<S, Q, N>(sites, n, 1, 0, 0);
    check_add<S, Q, N>(sites, n, 3, sites / 32, sites / 64);
    if (std::is_same<S, float>::value) continue;
    check_gram<S, N>(sites, n);
    check_products<S, N>(sites, n);
  }
}

template <class S> void in_precision(void **state) {
  (void)state;
  check<S, 1, 8>(8);
  check<S, 1, 0>(5);
  check<S, 2, 16>(16);
  check<S, 2, 0>(12);
  check<S, 4, 32>(32);
  check<S, 4, 0>(17);
}

/* The emulation tells a warp whose lanes do not meet. */
void lanes_that_part(void **state) {
  (void)state;
  assert_true(emulate_block(64, 1, 0, 0, [] { __syncwarp(); }));
  assert_false(emulate_block(64, 1, 0, 0, [] {
    if (threadIdx.x != 40) __syncwarp();
  }));
  assert_false(emulate_block(64, 1, 0, 0, [] {
    if (threadIdx.x % 2)
      __syncwarp();
    else
      __shfl_xor_sync(0xffffffffu, 0.0f, 1);
  }));
}

} // namespace

int main(void) {
  const CMUnitTest tests[] = {{"half", in_precision<__half>},
                              {"bf16", in_precision<__nv_bfloat16>},
                              {"fixed", in_precision<fixed16>},
                              {"single", in_precision<float>},
                              {"lanes_that_part", lanes_that_part}};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
