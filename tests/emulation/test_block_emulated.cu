/* The kernels of block operations on narrow fields, run on the host (emulated.h): products, sums
 * and scales against plain loops over what is stored, in every precision, for numbers of right-hand
 * sides that fill rows and that do not, with fewer and more sites than a block has warps for. */
#include "emulated.h"

#include <vector>

#include "lattice/fields/cuda/block_device.cuh"
#include "lattice/fields/cuda/block_narrow.cuh"

extern "C" {
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
}

namespace md_block_rows {
alignas(16) double shared[32 * 1024]; /* what the kernels declare as their block's */
}

namespace {

using namespace md_block_rows;

/* NaN fails. */
void at_most(double value, double limit, const char *what) {
  if (!(value <= limit)) print_error("%s: %g is more than %g\n", what, value, limit);
  assert_true(value <= limit);
}

/* Between -1 and 1, without symmetry. */
double number(int k) {
  return sin(1.7 * k + 0.3 * sin(0.1 * k));
}

/* A kernel over a field by one block, whose shared memory holds nothing in the beginning. */
void run(int y, const std::function<void()> &kernel) {
  std::fill(shared, shared + sizeof shared / sizeof *shared, NAN);
  assert_true(emulate_block(THREADS, 1, 0, y, kernel));
}

struct complex {
  double re, im;
};
void add_product(complex &sum, complex a, complex b) {
  sum.re += a.re * b.re - a.im * b.im;
  sum.im += a.re * b.im + a.im * b.re;
}

template <class S> struct narrow_field {
  std::vector<S> numbers;
  std::vector<float> scales;
  int sites, n;
  narrow_field(int sites_, int n_, int seed)
      : numbers(sites_ * COLOURS * n_ * 2), scales(sites_, 1.0f), sites(sites_), n(n_) {
    const int reals = COLOURS * n * 2;
    for (int site = 0; site < sites; site++) {
      float largest = 0.0f;
      for (int e = 0; e < reals; e++)
        largest = larger(largest, (float)number(seed + site * 131 + e * 7));
      if (is_scaled<S>) scales[site] = scale_of<S>(largest);
      for (int e = 0; e < reals; e++)
        numbers[site * reals + e] =
            store_real<S>((float)number(seed + site * 131 + e * 7) / scales[site]);
    }
  }
  int rows() const { return sites * COLOURS; }
  complex at(int row, int i) const {
    const S *z = &numbers[(row * n + i) * 2];
    const double scale = scales[row / COLOURS];
    return {scale * load_real(z[0]), scale * load_real(z[1])};
  }
  template <int N> narrow_view<S, N> view() {
    return {numbers.data(), scales.data(), sites, rows(), n};
  }
};

/* n x n matrices, and in lanes as the kernels take them (stage in block_device.cu). */
struct matrices {
  int n;
  std::vector<complex> of;
  std::vector<double2> in_lanes;
  matrices(int n_, int groups, int count) : n(n_) {
    for (int e = 0; e < count * n * n; e++)
      of.push_back({number(2 * e) / n, number(2 * e + 1) / n});
    for (int k = 0; k < count; k++)
      for (int e = 0; e < 2 * groups * groups * 32; e++) {
        const int lane = e % 32, s = e / 32 % (2 * groups), q = e / (64 * groups);
        const int i = 2 * groups * (lane % 4) + s, j = 8 * q + lane / 4;
        const complex z = i < n && j < n ? at(k, i, j) : complex{0.0, 0.0};
        in_lanes.push_back(make_double2(z.re, z.im));
      }
  }
  complex at(int k, int i, int j) const { return of[(k * n + i) * n + j]; }
};

/* Of what a kernel made of rows to what it should be, relative to the size of all. */
struct difference {
  double error2 = 0.0, size2 = 0.0;
  void add(complex is, complex should) {
    error2 += (is.re - should.re) * (is.re - should.re) + (is.im - should.im) * (is.im - should.im);
    size2 += should.re * should.re + should.im * should.im;
  }
  double relative() const { return sqrt(error2 / size2); }
};

/* Tile (row, column) of the Gram matrix of what is stored, for i <= j. */
template <class S>
void check_tile(const narrow_field<S> &x, int row, int column, const double *tile) {
  for (int i = row * SIDE; i < x.n && i < (row + 1) * SIDE; i++)
    for (int j = std::max(i, column * SIDE); j < x.n && j < (column + 1) * SIDE; j++) {
      const double *is = tile + 2 * ((i - row * SIDE) * SIDE + j - column * SIDE);
      complex sum = {0.0, 0.0};
      double size = 0.0;
      for (int r = 0; r < x.rows(); r++) {
        const complex a = x.at(r, i), b = x.at(r, j);
        add_product(sum, {a.re, -a.im}, b);
        size += (a.re * a.re + a.im * a.im + b.re * b.re + b.im * b.im) / 2;
      }
      at_most(fabs(is[0] - sum.re), 0x1p-20 * size, "real part of a sum");
      at_most(fabs(is[1] - sum.im), 0x1p-20 * size, "imaginary part of a sum");
    }
}

/* A rounding of the result, and those of its products. */
template <class S> double rounding() {
  return std::is_same<S, float>::value           ? 0x1p-20
         : is_fixed<S>                           ? 0x1p-15
         : std::is_same<S, __nv_bfloat16>::value ? 0x1p-8
                                                 : 0x1p-11;
}

template <class S, int Q, int N, bool HAS_X> void check_update(int sites, int n, bool backwards) {
  constexpr bool GRAM = Q <= 2;
  narrow_field<S> y(sites, n, 1), x(sites, n, 77);
  const narrow_field<S> before = y;
  const matrices m(n, Q, 2);
  const auto of_y = y.template view<N>(), of_x = x.template view<N>();
  double tile[TILE];
  difference d;
  run(0,
      [&] { update_sites<Q, S, N, HAS_X, GRAM>(of_y, of_x, m.in_lanes.data(), backwards, tile); });
  for (int row = 0; row < y.rows(); row++)
    for (int j = 0; j < n; j++) {
      complex sum = {0.0, 0.0};
      for (int i = 0; i < n; i++) {
        add_product(sum, before.at(row, i), m.at(0, i, j));
        if (HAS_X) add_product(sum, x.at(row, i), m.at(1, i, j));
      }
      d.add(y.at(row, j), sum);
    }
  at_most(d.relative(), rounding<S>(), "y b + x a");
  if (GRAM) check_tile(y, 0, 0, tile);
}

template <class S, int Q, int N> void check_add(int sites, int n, int count) {
  narrow_field<float> z(sites, n, 5);
  const narrow_field<float> before = z;
  const matrices m(n, Q, count);
  const auto of_z = z.template view<N>();
  std::vector<narrow_field<S>> x;
  narrow_views<S, N> views = {};
  difference d;
  for (int k = 0; k < count; k++) x.emplace_back(sites, n, 9 + 2 * k);
  for (int k = 0; k < count; k++) views.of[k] = x[k].template view<N>();
  run(0, [&] { add_sites<Q, S, N>(of_z, views, count, m.in_lanes.data()); });
  for (int row = 0; row < z.rows(); row++)
    for (int j = 0; j < n; j++) {
      complex sum = before.at(row, j);
      for (int e = 0; e < count * n; e++)
        add_product(sum, x[e / n].at(row, e % n), m.at(e / n, e % n, j));
      d.add(z.at(row, j), sum);
    }
  at_most(d.relative(), 0x1p-20, "z + sum of x c");
}

template <class S, int N> void check_gram(int sites, int n) {
  constexpr int COLUMNS = N % SIDE == 0 ? N : 0;
  const int side = (n + SIDE - 1) / SIDE;
  narrow_field<S> x(sites, n, 13);
  const auto of_x = x.template view<COLUMNS>();
  std::vector<double> tiles(side * (side + 1) / 2 * TILE);
  for (int column = 0, tile = 0; column < side; column++)
    for (int row = 0; row <= column; row++, tile++) {
      run(tile, [&] { multiply_narrow<S, COLUMNS>(of_x, tiles.data()); });
      check_tile(x, row, column, &tiles[tile * TILE]);
    }
}

template <class S, int Q, int N> void check(int n) {
  for (const int sites : {8, 8 * (2 * WARPS + 3)}) {
    check_update<S, Q, N, true>(sites, n, false);
    check_update<S, Q, N, false>(sites, n, true);
    check_add<S, Q, N>(sites, n, 1);
    check_add<S, Q, N>(sites, n, 3);
    if (!std::is_same<S, float>::value) check_gram<S, N>(sites, n);
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
