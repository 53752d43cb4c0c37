#pragma once

#include "dirac/backend.h"

/* A Tensor Core instruction (MMA) multiplies small dense tiles, C <- A B + C, and a hop multiplies
 * 3x3 complex matrices U (links) with vectors v (one per site and right-hand side). A packing says
 * which number of which matrix or vector stands where in A, B and C. The four packings are index
 * maps here, plain functions without state: the kernels, the emulation on the host, the tests and
 * the figures of docs/packings.md all read these and nothing else. */
#ifdef __CUDACC__
#define MD_TILE_MAP static __host__ __device__ inline
#else
#define MD_TILE_MAP static inline
#endif

enum { MD_TILE = 16 }; /* C <- A B + C with 16x16 tiles */

/* What one entry of a tile holds: sign * part of U[row][column] of matrix `item` (tile A), of
 * v[row] of vector `item` (tile B), or where an entry of C belongs: part of colour `row` of result
 * `item`. sign 0: padding in A and B, not a result in C. */
typedef struct md_tile_entry {
  int item, row, column;
  int part; /* 0 real, 1 imaginary */
  int sign;
} md_tile_entry;

/* Products U v that one tile takes, products of tiles (MMA) that they cost, tiles C that they fill.
 */
MD_TILE_MAP int md_tile_items(md_packing packing) {
  return packing == MD_PACKING_BLOCK8 ? 8 : packing == MD_PACKING_DIAGONAL ? 5 : 1;
}
MD_TILE_MAP int md_tile_products(md_packing packing) {
  return packing == MD_PACKING_BLOCK8 ? 1 : 4;
}
MD_TILE_MAP int md_tile_accumulators(md_packing packing) {
  return packing == MD_PACKING_BLOCK8 ? 1 : 2;
}

/* `single` and `diagonal` have tiles of their own for real and imaginary parts. Re U Re v and
 * Im U Im v (number 1, whose sign is in B) go into C 0, Re U Im v and Im U Re v into C 1. */
MD_TILE_MAP int md_tile_accumulator(int product) {
  return product >> 1;
}
MD_TILE_MAP int md_tile_part_a(int product) {
  return product & 1;
}
MD_TILE_MAP int md_tile_part_b(int product) {
  return (product & 1) ^ (product >> 1);
}

/* What stands in row i and column k of tile A. */
MD_TILE_MAP md_tile_entry md_tile_a(md_packing packing, int product, int i, int k) {
  md_tile_entry e = {0, 0, 0, 0, 0};
  if (packing == MD_PACKING_BLOCK8) { /* 4x4 blocks of 4x4: block row b is [Re Im Re Im] */
    e.item = 2 * (i / 4) + k / 8, e.row = i % 4, e.column = k % 4, e.part = k / 4 % 2;
    e.sign = e.row < 3 && e.column < 3;
    return e;
  }
  e.item = packing == MD_PACKING_DIAGONAL ? i / 3 : 0;
  e.row = i - 3 * e.item, e.column = k - 3 * e.item, e.part = md_tile_part_a(product);
  e.sign = e.item < md_tile_items(packing) && e.row < 3 && e.column >= 0 && e.column < 3;
  return e;
}

/* What stands in row k and column j of tile B. */
MD_TILE_MAP md_tile_entry md_tile_b(md_packing packing, int product, int k, int j) {
  md_tile_entry e = {0, 0, 0, 0, 0};
  if (packing == MD_PACKING_BLOCK8) { /* block column b: the two vectors of block row b */
    const int second = k / 8, imaginary_link = k / 4 % 2, imaginary_result = j % 2;
    e.item = 2 * (j / 4) + second, e.row = k % 4;
    e.part = imaginary_link ^ imaginary_result;
    e.sign = imaginary_link && !imaginary_result ? -1 : 1;
    if (e.row > 2 || j / 2 % 2 != second) e.sign = 0;
    return e;
  }
  e.item = packing == MD_PACKING_DIAGONAL ? k / 3 : 0;
  e.row = k - 3 * e.item, e.part = md_tile_part_b(product);
  if (e.item < md_tile_items(packing) && e.row < 3 && j == e.item) e.sign = product == 1 ? -1 : 1;
  return e;
}

/* What belongs in row i and column j of tile C number `accumulator`. */
MD_TILE_MAP md_tile_entry md_tile_c(md_packing packing, int accumulator, int i, int j) {
  md_tile_entry e = {0, 0, 0, 0, 0};
  if (packing == MD_PACKING_BLOCK8) { /* diagonal blocks: columns are re, im, re, im */
    e.item = 2 * (i / 4) + j / 2 % 2, e.row = i % 4, e.part = j % 2;
    e.sign = e.row < 3 && i / 4 == j / 4;
    return e;
  }
  e.item = packing == MD_PACKING_DIAGONAL ? i / 3 : 0;
  e.row = i - 3 * e.item, e.part = accumulator;
  e.sign = e.item < md_tile_items(packing) && e.row < 3 && j == e.item;
  return e;
}

/* `stacked`: C[rhs][6] += A[rhs][48] B[48][6] for one output site and link field; an action of two
 * fields has K = 96. A row of A is one right-hand side, its 48 columns are the eight source
 * vectors; column 2*colour + part of B is one real of the result. Three steps of k = 16, one for
 * each source colour. Inside a step the order follows the register layout of the instruction, so
 * that lane 4g+t of a warp's 32, g = 0..7, t = 0..3, holds the directions t and t+4, both ways
 * along one axis, of row g, and reads them as whole complex numbers. Of m16n8k16 a lane holds the
 * columns
 *
 *   k = 2t, 2t+1, 2t+8, 2t+9    in 16 bits,
 *   k = t, t+4, t+8, t+12       in double. */
enum { MD_STACKED_K = 48, MD_STACKED_COLUMNS = 8, MD_STACKED_RESULTS = 6 };

typedef struct md_stacked_k {
  int direction, colour, part;
} md_stacked_k;

MD_TILE_MAP md_stacked_k md_stacked_row(md_precision precision, int k) {
  const int slot = k % 16;
  md_stacked_k s = {slot / 2, k / 16, slot % 2};
  if (precision == MD_DOUBLE) s.direction = slot % 4 + 4 * (slot / 8), s.part = slot / 4 % 2;
  return s;
}

/* What stands in row k of B: sign * part of U[row][colour], of the direction and the colour that k
 * stands for. */
MD_TILE_MAP md_tile_entry md_stacked_b(md_precision precision, int k, int column) {
  const md_stacked_k s = md_stacked_row(precision, k);
  const int imaginary_result = column % 2;
  md_tile_entry e = {s.direction, column / 2, s.colour, s.part ^ imaginary_result, 1};
  if (s.part && !imaginary_result) e.sign = -1;
  if (column >= MD_STACKED_RESULTS) e.sign = 0;
  return e;
}

/* Which right-hand side stands in row 0..15 of A. In 16 bits the rows g and g+8, which one lane
 * holds, are neighbours in memory, so that it reads 8 bytes at once; in double each number is 16
 * bytes by itself, and eight lanes read 128 bytes. A tile of 8 right-hand sides uses the rows 0..7
 * in order and leaves the others zero. */
MD_TILE_MAP int md_stacked_rhs(md_precision precision, int tile_rhs, int row) {
  return tile_rhs == 16 && precision != MD_DOUBLE ? 2 * (row % 8) + row / 8 : row;
}

/* Links for `stacked` lie in the order in which lanes take them. There are 12 slots of a lane,
 * lane_slot = 4 * (result row) + t, and each holds six complex numbers U[row][colour]: the colours
 * 0..2 of direction t, then those of direction t+4. Pieces of 16 bytes of all lanes follow each
 * other: in 16-bit precisions one with four complex numbers, and then one of 8 bytes with the last
 * two. The function gives the index of a complex number inside a site's 72: */
MD_TILE_MAP int md_stacked_link_at(md_precision precision, int direction, int row, int colour) {
  const int lane = 4 * row + direction % 4, n = colour + 3 * (direction / 4);
  if (precision == MD_DOUBLE) return 12 * n + lane;
  return n < 4 ? 4 * lane + n : 48 + 2 * lane + n - 4;
}

/* Quarks with four spins: each link multiplies the half spinors of all slices and right-hand sides
 * of a site, its columns slice * n_rhs + rhs, so that one right-hand side has rows enough. K and
 * the links are as above, of one link field. A neighbour enters as (1 -+ gamma_mu) psi, formed in
 * the storage type on the way into A: a lane has all four spins of a column for its two directions.
 * There are two accumulators, C[16][6] += A[16][48] B[48][6] each: number 0 of spins 0 and 1,
 * number 1 of spins 2 and 3, with the same B. Rows g and g+8, which one lane holds, are the two
 * spins of column g of the tile's eight. A tile of four columns, the last one of an odd number of
 * fours, has one accumulator: rows g and g+8 are spins 0 and 1 of column g / 2 where g is even,
 * spins 2 and 3 where it is odd. */
enum { MD_SPIN_TILE = 8, MD_SPIN_FOUR = 4, MD_SPIN_ACCUMULATORS = 2 };

typedef struct md_spin_place {
  int column, spin;
} md_spin_place;
/* columns: of the tile, eight or four. */
MD_TILE_MAP md_spin_place md_spin_place_of(int columns, int accumulator, int row) {
  const int g = row % MD_SPIN_TILE, second = row / MD_SPIN_TILE;
  const md_spin_place whole = {g, 2 * accumulator + second}, half = {g / 2, 2 * (g % 2) + second};
  return columns == MD_SPIN_FOUR ? half : whole;
}

/* Spin s of (1 -+ gamma_mu) psi is psi_s + i^turn psi_spin: forward 1 - gamma_mu, in directions
 * 4 + mu 1 + gamma_mu, gamma_mu = [[0, S], [S^dag, 0]] as in dirac/wilson. Turns of one direction
 * are all even or all odd, and those of spins s and s ^ 2 have the partners s' and s' ^ 2. */
typedef struct md_spin_partner {
  int spin, turn;
} md_spin_partner;
MD_TILE_MAP md_spin_partner md_spin_partner_of(int direction, int s) {
  /* Turns of -S, row by row, two bits each: x 3 3, y 0 2, z 3 1, t 2 2. */
  const unsigned turns = 0xa78f;
  const int mu = direction % 4, other = s ^ (mu < 2 ? 3 : 2), upper = s < 2 ? s : other;
  const int turn = (int)(turns >> (4 * mu + 2 * upper) & 3u) + (direction < 4 ? 0 : 2);
  const md_spin_partner p = {other, (s < 2 ? turn : 8 - turn) % 4};
  return p;
}

/* The matrix of the fifth dimension as the A of C[16][8] += A[16][16] B[16][8], whose columns are
 * the real and imaginary parts of the colours of one spin: half e of register n of a lane is entry
 * (to, from) of a piece of the matrix, 0 its rounded value and 1 what rounding left. With two tiles
 * of slices K are the slices, and each piece has four registers; with one K are the slices twice,
 * once for each piece, and rows 8 to 15 are not used. Row g of C is slice g, g+8 that of the second
 * tile; a lane has column pair t of both. In a tile of four slices the rows of B and C are those of
 * md_spin_place_of, so that spins s and s+2 share one: A has entries for its own half of the spins
 * alone, and C of both halves is the sum. */
typedef struct md_wall_entry {
  int to, from, piece; /* to or from -1: no entry, 0 */
} md_wall_entry;
/* The slice in row r of B or C, for spins of the lower half or of the upper one. */
MD_TILE_MAP int md_wall_slice_of(int fours, int lower, int r) {
  const int in_four = r - MD_SPIN_TILE * (fours / 2);
  if (fours % 2 == 0 || in_four < 0) return r;
  return in_four % 2 == lower ? r - in_four + in_four / 2 : -1;
}
MD_TILE_MAP md_wall_entry md_wall_entry_of(int fours, int lower, int lane, int n, int e) {
  const int k = 2 * (lane % 4) + e + 8 * (n / 2 % 2), one = fours <= 2;
  const md_wall_entry entry = {md_wall_slice_of(fours, lower, lane / 4 + 8 * (n % 2)),
                               md_wall_slice_of(fours, lower, one ? k % 8 : k),
                               one ? k / 8 : n / 4};
  return entry;
}
