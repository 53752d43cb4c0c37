#pragma once

#include "base/context.h"

#include <math.h>

/* *largest <- the larger of the two; NaN counts as largest and stays. Local. */
static inline void md_raise(double *largest, double value) {
  if (!isnan(*largest) && !(value <= *largest)) *largest = value;
}

/* Mean of a Markov chain's measurements, and its standard error with autocorrelation seen:
 * neighbours are averaged into blocks of 1, 2, 4, ... values while 16 blocks remain, and the
 * largest of their standard errors is taken (H. Flyvbjerg and H. Petersen, J. Chem. Phys. 91
 * (1989) 461). error is infinite for fewer than 2 values. count >= 1. Local. */
md_status md_blocked_mean(md_context *context, const double *values, int count, double *mean,
                          double *error);

/* Errors of means and of functions of means, of measurements that follow one another in a Markov
 * chain. The jackknife leaves out one bin after the other (R. G. Miller, Biometrika 61 (1974) 1):
 * with the function's value f_b on the means without bin b, its error is
 * sqrt((B - 1) / B sum_b (f_b - mean f)^2). Bins that are longer than the autocorrelation time make
 * it that of correlated measurements. All functions are local. */

/* Bins of at least `width` measurements: count / width of them, at least 1, all measurements in
 * one, lengths equal to within one. */
int md_jackknife_bins(int count, int width);
/* means[i] of all, and samples[b * length + i], b < bins, without bin b, of the measurements
 * values[k * length + i], k < count. bins >= 2 for the samples; with one bin there are none. */
void md_jackknife_means(const double *values, int count, int length, int bins, double *means,
                        double *samples);
/* The error of a function from its values on the samples, f[b * stride]; NaN for fewer than 2 bins.
 */
double md_jackknife_error(const double *f, int stride, int bins);

/* Integrated autocorrelation time in measurements, 1/2 where they are independent: 1/2 + the sum of
 * the normalised autocorrelations up to the first window W with W >= 5 tau(W) (N. Madras and
 * A. D. Sokal, J. Stat. Phys. 50 (1988) 109), and its error tau sqrt(2 (2 W + 1) / count). The
 * variance of the mean is 2 tau times that of independent measurements. NaN for fewer than 4
 * measurements, and where all are equal. */
void md_autocorrelation_time(const double *values, int count, double *tau, double *error);

/* mass[t] of a correlator that falls as cosh(m (t - T/2)), T = times: arcosh of
 * (C(t-1) + C(t+1)) / (2 C(t)) with C periodic; NaN where that is below 1, and at t = 0. */
void md_effective_mass(const double *correlator, int times, double *mass);

/* Of samples, times most of all. */
typedef struct md_statistics {
  double mean, std, median, min, max; /* std: of the sample, 0 for one value */
} md_statistics;
/* Of count >= 1 values, which it sorts. */
md_statistics md_statistics_of(double *values, int count);
