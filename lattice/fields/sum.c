#include "lattice/fields/sum.h"
#include "base/ranks_mpi.h"

#include <math.h>
#include <string.h>

enum { LIMB_BITS = 32, LOWEST_BIT = -1074, MOST_TERMS = 1 << 30 };

/* Moves what exceeds 32 bits of each limb into the next; limbs end in [0, 2^32) but the last,
 * which keeps the sign. */
static void carry(md_sum *sum) {
  for (int i = 0; i + 1 < MD_SUM_LIMBS; i++) {
    const int64_t over = sum->limb[i] >> LIMB_BITS; /* arithmetic: rounds down */
    sum->limb[i] -= over * ((int64_t)1 << LIMB_BITS);
    sum->limb[i + 1] += over;
  }
  sum->terms = 1;
}

void md_sum_add(md_sum *sum, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  const int exponent = (int)(bits >> 52 & 0x7ff);
  if (exponent == 0x7ff) {
    sum->not_finite++;
    return;
  }
  const uint64_t fraction = bits & 0xfffffffffffffull;
  const uint64_t mantissa = exponent ? fraction | 1ull << 52 : fraction;
  const int position = exponent ? exponent - 1 : 0; /* of the lowest bit, from 2^-1074 */
  const unsigned __int128 wide = (unsigned __int128)mantissa << position % LIMB_BITS;
  int64_t *limb = sum->limb + position / LIMB_BITS;
  const int64_t sign = bits >> 63 ? -1 : 1;
  limb[0] += sign * (int64_t)(uint32_t)wide;
  limb[1] += sign * (int64_t)(uint32_t)(wide >> LIMB_BITS);
  limb[2] += sign * (int64_t)(uint32_t)(wide >> 2 * LIMB_BITS);
  if (++sum->terms >= MOST_TERMS) carry(sum);
}

void md_sum_merge(md_sum *sum, const md_sum *other) {
  md_sum one = *other;
  carry(&one);
  for (int i = 0; i < MD_SUM_LIMBS; i++) sum->limb[i] += one.limb[i];
  sum->not_finite += one.not_finite;
  if (++sum->terms >= MOST_TERMS) carry(sum);
}

/* The carried value: limbs are added as scaled doubles, each of which may round, in the same way on
 * every rank grid because the limbs are the same integers. */
double md_sum_rounded(md_sum *sum) {
  if (sum->not_finite) return NAN;
  carry(sum);
  int sign = 1;
  if (sum->limb[MD_SUM_LIMBS - 1] < 0) {
    for (int i = 0; i < MD_SUM_LIMBS; i++) sum->limb[i] = -sum->limb[i];
    carry(sum);
    sign = -1;
  }
  double value = 0.0;
  for (int i = 0; i < MD_SUM_LIMBS; i++) /* smallest first: nothing small is lost early */
    if (sum->limb[i] != 0) value += ldexp((double)sum->limb[i], LOWEST_BIT + LIMB_BITS * i);
  return sign * value;
}

md_status md_sum_finish(md_context *context, md_sum *sums, int count, double *values) {
  for (int i = 0; i < count; i++) carry(&sums[i]);
  sums[0].failed = context->deferred.status != MD_OK;
  if (context->ranks > 1) {
    _Static_assert(sizeof(md_sum) == (MD_SUM_LIMBS + 3) * sizeof(int64_t), "sent as integers");
    MPI_Allreduce(MPI_IN_PLACE, sums, count * (MD_SUM_LIMBS + 3), MPI_INT64_T, MPI_SUM,
                  md_mpi(context));
  }
  for (int i = 0; i < count; i++) values[i] = md_sum_rounded(&sums[i]);
  return sums[0].failed ? md_agree(context, MD_OK) : MD_OK;
}

md_status md_sum_whole(md_context *context, double *values, int count) {
  values[count] = context->deferred.status != MD_OK;
  if (context->ranks > 1)
    MPI_Allreduce(MPI_IN_PLACE, values, count + 1, MPI_DOUBLE, MPI_SUM, md_mpi(context));
  return values[count] != 0.0 ? md_agree(context, MD_OK) : MD_OK;
}

/* The bits of such numbers are in their order. */
void md_sum_largest(const md_context *context, double *values, int count) {
  _Static_assert(sizeof(double) == sizeof(int64_t), "compared as integers");
  if (context->ranks > 1)
    MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_INT64_T, MPI_MAX, md_mpi(context));
}
