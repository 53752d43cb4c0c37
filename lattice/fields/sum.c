#include "lattice/fields/sum.h"
#include "base/ranks_mpi.h"

#include <math.h>
#include <string.h>

enum { LIMB_BITS = 32, LOWEST_BIT = -1074, MOST_TERMS = 1 << 30 };

/* Moves what exceeds 32 bits of limbs from `first` on into the next; they end in [0, 2^32) but
 * `last`, which keeps the sign. */
static void carry_between(md_sum *sum, int first, int last) {
  for (int i = first; i < last; i++) {
    const int64_t over = sum->limb[i] >> LIMB_BITS; /* arithmetic: rounds down */
    sum->limb[i] -= over * ((int64_t)1 << LIMB_BITS);
    sum->limb[i + 1] += over;
  }
  sum->terms = 1;
}
static void carry(md_sum *sum) {
  carry_between(sum, 0, MD_SUM_LIMBS - 1);
}

/* Of the lowest bit of a number, from 2^-1074. */
static int position_of(uint64_t bits) {
  const int exponent = (int)(bits >> 52 & 0x7ff);
  return exponent ? exponent - 1 : 0;
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
  const int position = position_of(bits);
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

/* limb 2^exponent, faster than ldexp where that power is a normal number. */
static double scaled(int64_t limb, int exponent) {
  if (exponent < -1022 || exponent > 1023) return ldexp((double)limb, exponent);
  const uint64_t bits = (uint64_t)(exponent + 1023) << 52;
  double power;
  memcpy(&power, &bits, sizeof power);
  return (double)limb * power;
}

/* The value of carried limbs, added as scaled doubles: each addition may round, in the same way on
 * every rank grid because the limbs are the same integers. */
static double value_between(const md_sum *sum, int first, int last) {
  double value = 0.0;
  for (int i = first; i <= last; i++) /* smallest first: nothing small is lost early */
    if (sum->limb[i] != 0) value += scaled(sum->limb[i], LOWEST_BIT + LIMB_BITS * i);
  return value;
}

static double rounded(md_sum *sum) {
  if (sum->not_finite) return NAN;
  carry(sum);
  int sign = 1;
  if (sum->limb[MD_SUM_LIMBS - 1] < 0) {
    for (int i = 0; i < MD_SUM_LIMBS; i++) sum->limb[i] = -sum->limb[i];
    carry(sum);
    sign = -1;
  }
  return sign * value_between(sum, 0, MD_SUM_LIMBS - 1);
}

double md_sum_of_two(double high, double low) {
  const double about = high + low;
  if (low == 0.0 || !isfinite(about)) return about;
  if (about < 0.0) return -md_sum_of_two(-high, -low);
  int first = MD_SUM_LIMBS, last = 0;
  for (int k = 0; k < 2; k++) {
    uint64_t bits;
    memcpy(&bits, k ? &low : &high, sizeof bits);
    const int limb = position_of(bits) / LIMB_BITS;
    if (limb < first) first = limb;
    if (limb + 3 > last) last = limb + 3;
  }
  if (last > MD_SUM_LIMBS - 1) last = MD_SUM_LIMBS - 1;
  md_sum sum; /* but for these limbs not looked at */
  memset(sum.limb + first, 0, (size_t)(last - first + 1) * sizeof *sum.limb);
  sum.terms = 0;
  md_sum_add(&sum, high);
  md_sum_add(&sum, low);
  carry_between(&sum, first, last);
  return value_between(&sum, first, last);
}

md_status md_sum_finish(md_context *context, md_sum *sums, int count, double *values) {
  for (int i = 0; i < count; i++) carry(&sums[i]);
  sums[0].failed = context->deferred.status != MD_OK;
  if (context->ranks > 1) {
    _Static_assert(sizeof(md_sum) == (MD_SUM_LIMBS + 3) * sizeof(int64_t), "sent as integers");
    MPI_Allreduce(MPI_IN_PLACE, sums, count * (MD_SUM_LIMBS + 3), MPI_INT64_T, MPI_SUM,
                  md_mpi(context));
  }
  for (int i = 0; i < count; i++) values[i] = rounded(&sums[i]);
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
