#pragma once

#include "lattice/geometry/geometry.h"

/* Global sums that do not depend on rank grid or thread count.
 *
 * Method: an exact fixed-point accumulator over the whole range of double (U. Kulisch and
 * W. Miranker, Computer Arithmetic in Theory and Practice, 1981; the small superaccumulator of
 * R. Neal, arXiv:1505.05571): limbs of 32 bits held in 64-bit integers, so that addition is
 * integer addition, which is associative. What is added must itself be independent of the cut:
 * fields sum the eight sites of a parity in each aligned 2x2x2x2 cell in a fixed order in double
 * (local extents are even, so no cell is ever cut), then add the cell to the accumulator. */
enum { MD_SUM_LIMBS = 68 }; /* bits 2^-1074 .. 2^1101 */

typedef struct md_sum {
  int64_t limb[MD_SUM_LIMBS];
  int64_t not_finite; /* NaN or infinite values that were added */
  int64_t terms;      /* since the last carry; carried when it nears 2^30 */
  int64_t failed;     /* set by md_sum_finish: ranks that hold a deferred failure */
} md_sum;

/* Adds one double exactly. */
void md_sum_add(md_sum *sum, double value);
/* Adds another accumulator. */
void md_sum_merge(md_sum *sum, const md_sum *other);
/* high + low as md_sum_finish rounds the sum of both, without its time. Local. */
double md_sum_of_two(double high, double low);
/* Sums over ranks and rounds to the double next to each sum, or the one after that: NaN when any
 * value was not finite. sums[count] ->
 * values[count], count >= 1, the same on all ranks. The sums carry how many ranks hold a deferred
 * failure (md_defer): when any does, all ranks return it. One MPI_Allreduce. Collective. */
md_status md_sum_finish(md_context *context, md_sum *sums, int count, double *values);

/* values[i] becomes the sum over ranks of numbers that are whole multiples of a unit of which the
 * sums have no more than 2^53: exact, so that the order does not matter. Room for count + 1 values;
 * deferred failures as of md_sum_finish. One MPI_Allreduce. Collective. */
md_status md_sum_whole(md_context *context, double *values, int count);

/* values[i] becomes the largest over ranks of numbers >= 0, above which infinity and then NaN
 * stand. One MPI_Allreduce. Collective. */
void md_sum_largest(const md_context *context, double *values, int count);
