#include "base/statistics.h"
#include "base/timer.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FEWEST_BLOCKS = 16 };

static double standard_error(const double *values, int count, double mean) {
  double sum = 0.0;
  for (int i = 0; i < count; i++) sum += (values[i] - mean) * (values[i] - mean);
  return count < 2 ? INFINITY : sqrt(sum / count / (count - 1));
}

md_status md_blocked_mean(md_context *context, const double *values, int count, double *mean,
                          double *error) {
  double *blocks = malloc((size_t)count * sizeof *blocks);
  if (!blocks) return md_fail_memory(context, (size_t)count * sizeof *blocks, "block averages");
  memcpy(blocks, values, (size_t)count * sizeof *blocks);
  *mean = 0.0;
  for (int i = 0; i < count; i++) *mean += values[i] / count;
  *error = standard_error(blocks, count, *mean);
  for (int left = count / 2; left >= FEWEST_BLOCKS; left /= 2) {
    for (int i = 0; i < left; i++) blocks[i] = 0.5 * (blocks[2 * i] + blocks[2 * i + 1]);
    *error = fmax(*error, standard_error(blocks, left, *mean));
  }
  free(blocks);
  return MD_OK;
}

int md_jackknife_bins(int count, int width) {
  const int bins = count / (width < 1 ? 1 : width);
  return bins < 1 ? 1 : bins;
}

/* The first measurement of bin b. */
static int bin_start(int count, int bins, int b) {
  return (int)((long long)b * count / bins);
}

void md_jackknife_means(const double *values, int count, int length, int bins, double *means,
                        double *samples) {
  for (int i = 0; i < length; i++) {
    double sum = 0.0;
    for (int k = 0; k < count; k++) sum += values[(size_t)k * (size_t)length + (size_t)i];
    means[i] = sum / count;
    for (int b = 0; b < bins && bins > 1; b++) {
      const int first = bin_start(count, bins, b), last = bin_start(count, bins, b + 1);
      double rest = 0.0; /* summed anew: a difference would lose what is small */
      for (int k = 0; k < count; k++)
        if (k < first || k >= last) rest += values[(size_t)k * (size_t)length + (size_t)i];
      samples[(size_t)b * (size_t)length + (size_t)i] = rest / (count - (last - first));
    }
  }
}

double md_jackknife_error(const double *f, int stride, int bins) {
  double mean = 0.0, squares = 0.0;
  if (bins < 2) return NAN;
  for (int b = 0; b < bins; b++) mean += f[(size_t)b * (size_t)stride] / bins;
  for (int b = 0; b < bins; b++) {
    const double off = f[(size_t)b * (size_t)stride] - mean;
    squares += off * off;
  }
  return sqrt(squares * (bins - 1) / bins);
}

void md_autocorrelation_time(const double *values, int count, double *tau, double *error) {
  double mean = 0.0, variance = 0.0;
  *tau = *error = NAN;
  if (count < 4) return;
  for (int k = 0; k < count; k++) mean += values[k] / count;
  for (int k = 0; k < count; k++) variance += (values[k] - mean) * (values[k] - mean) / count;
  /* Equal values differ from their mean by its rounding alone. */
  if (!(variance > pow(count * DBL_EPSILON * mean, 2.0))) return;
  double sum = 0.5;
  int window = 0;
  while (window < count / 2 && !(window >= 5.0 * sum && window > 0)) {
    double product = 0.0;
    window++;
    for (int k = 0; k + window < count; k++)
      product += (values[k] - mean) * (values[k + window] - mean);
    sum += product / (count - window) / variance;
  }
  *tau = sum;
  *error = fabs(sum) * sqrt(2.0 * (2.0 * window + 1.0) / count);
}

void md_effective_mass(const double *correlator, int times, double *mass) {
  mass[0] = NAN;
  for (int t = 1; t < times; t++) {
    const double ratio = (correlator[t - 1] + correlator[(t + 1) % times]) / (2.0 * correlator[t]);
    mass[t] = ratio >= 1.0 ? acosh(ratio) : NAN;
  }
}

md_statistics md_statistics_of(double *values, int count) {
  const double median = md_median(values, count); /* sorts them */
  md_statistics s = {0.0, 0.0, median, values[0], values[count - 1]};
  for (int i = 0; i < count; i++) s.mean += values[i] / count;
  for (int i = 0; i < count && count > 1; i++)
    s.std += (values[i] - s.mean) * (values[i] - s.mean) / (count - 1);
  s.std = sqrt(s.std);
  return s;
}
