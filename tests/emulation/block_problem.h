#pragma once

/* Fields, matrices and plain sums that the kernels of block operations are compared with. */
#include "emulated.h"

#include <vector>

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

namespace block_problem {

using namespace md_block_rows;

/* NaN fails. */
inline void at_most(double value, double limit, const char *what) {
  if (!(value <= limit)) print_error("%s: %g is more than %g\n", what, value, limit);
  assert_true(value <= limit);
}

/* Between -1 and 1, without symmetry. */
inline double number(int k) {
  return sin(1.7 * k + 0.3 * sin(0.1 * k));
}

/* A kernel over a field by one block, whose shared memory holds nothing in the beginning. */
inline void run(int y, const std::function<void()> &kernel) {
  std::fill(shared, shared + sizeof shared / sizeof *shared, NAN);
  assert_true(emulate_block(THREADS, 1, 0, y, kernel));
}

struct complex {
  double re, im;
};
inline void add_product(complex &sum, complex a, complex b) {
  sum.re += a.re * b.re - a.im * b.im;
  sum.im += a.re * b.im + a.im * b.re;
}

template <class S> struct stored_field {
  std::vector<S> numbers;
  std::vector<float> scales;
  int sites, n;
  stored_field(int sites_, int n_, int seed)
      : numbers(sites_ * COLOURS * n_ * 2), scales(sites_, 1.0f), sites(sites_), n(n_) {
    const int reals = COLOURS * n * 2;
    for (int site = 0; site < sites; site++) {
      float largest = 0.0f;
      for (int e = 0; e < reals; e++)
        largest = larger(largest, (float)number(seed + site * 131 + e * 7));
      if (is_scaled<S>) scales[site] = scale_of<S>(largest);
      for (int e = 0; e < reals; e++)
        numbers[site * reals + e] =
            store_real<S>((real_of<S>)number(seed + site * 131 + e * 7) / scales[site]);
    }
  }
  int rows() const { return sites * COLOURS; }
  complex at(int row, int i) const {
    const S *z = &numbers[(row * n + i) * 2];
    const double scale = scales[row / COLOURS];
    return {scale * load_real(z[0]), scale * load_real(z[1])};
  }
  template <int N> narrow_view<S, N> narrow() {
    return {numbers.data(), scales.data(), sites, rows(), n};
  }
  view wide() { return {(double2 *)numbers.data(), rows(), n}; }
};

/* n x n matrices, and in lanes as the kernels of narrow or of double fields take them (`stage` in
 * block_narrow.cu and block_device.cu). */
struct matrices {
  int n;
  std::vector<complex> of;
  std::vector<double2> in_lanes;
  matrices(int n_, int groups, int count, bool narrow) : n(n_) {
    for (int e = 0; e < count * n * n; e++) /* columns of several sizes */
      of.push_back({size(e % n) * number(2 * e) / n, size(e % n) * number(2 * e + 1) / n});
    for (int k = 0; k < count; k++) {
      for (int e = 0; e < 2 * groups * groups * 32; e++) {
        const int lane = e % 32, s = e / 32 % (2 * groups), q = e / (64 * groups);
        const int i = narrow ? 2 * groups * (lane % 4) + s : 4 * s + lane % 4, j = 8 * q + lane / 4;
        const complex z = i < n && j < n ? at(k, i, j) : complex{0.0, 0.0};
        const double inverse = narrow ? 1.0 / unit(j) : 1.0;
        in_lanes.push_back(make_double2(inverse * z.re, inverse * z.im));
      }
      for (int j = 0; j < 8 * groups && narrow; j += 2)
        in_lanes.push_back(make_double2(unit(j), unit(j + 1)));
    }
  }
  complex at(int k, int i, int j) const { return of[(k * n + i) * n + j]; }
  double size(int j) const { return 1 << j % 3; }
  /* Of column j: entries are below 2^14 then. */
  double unit(int j) const { return size(j) * 0x1p-14; }
  template <int Q> const staged_matrix<Q> *staged() const {
    return (const staged_matrix<Q> *)in_lanes.data();
  }
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

/* A rounding of the result, and those of its products and sums. */
template <class S> double rounding() {
  return std::is_same<S, double>::value          ? 0x1p-48
         : std::is_same<S, float>::value         ? 0x1p-20
         : is_fixed<S>                           ? 0x1p-15
         : std::is_same<S, __nv_bfloat16>::value ? 0x1p-8
                                                 : 0x1p-11;
}

/* Tile (row, column) of the Gram matrix of what is stored, for i <= j. */
template <class S>
void check_tile(const stored_field<S> &x, int row, int column, const double *tile) {
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
      const double bound = std::min(rounding<S>(), 0x1p-20) * size;
      at_most(fabs(is[0] - sum.re), bound, "real part of a sum");
      at_most(fabs(is[1] - sum.im), bound, "imaginary part of a sum");
    }
}

/* All tiles of <x_i, y_j>, row by row, of numbers up to one. */
template <class S>
void check_pairs(const stored_field<S> &x, const stored_field<S> &y, const double *tiles,
                 double bound) {
  const int n = x.n, side = (n + SIDE - 1) / SIDE;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      const double *tile = tiles + (i / SIDE * side + j / SIDE) * TILE;
      const double *is = tile + 2 * (i % SIDE * SIDE + j % SIDE);
      complex sum = {0.0, 0.0};
      for (int row = 0; row < x.rows(); row++)
        add_product(sum, {x.at(row, i).re, -x.at(row, i).im}, y.at(row, j));
      at_most(fabs(is[0] - sum.re), bound * x.rows(), "real part of a product");
      at_most(fabs(is[1] - sum.im), bound * x.rows(), "imaginary part of a product");
    }
}

} // namespace block_problem
