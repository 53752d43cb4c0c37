#ifndef MD_BENCH_STATISTICS_H
#define MD_BENCH_STATISTICS_H

#include "base/timer.h"
#include <math.h>

typedef struct md_bench_statistics {
  double mean, std, median, min, max; /* std: of the sample, 0 for one value */
} md_bench_statistics;

/* Of count >= 1 values, which it sorts. */
static inline md_bench_statistics md_bench_statistics_of(double *values, int count) {
  md_bench_statistics s = {0.0, 0.0, md_median(values, count), values[0], values[count - 1]};
  for (int i = 0; i < count; i++) s.mean += values[i] / count;
  for (int i = 0; i < count && count > 1; i++)
    s.std += (values[i] - s.mean) * (values[i] - s.mean) / (count - 1);
  s.std = sqrt(s.std);
  return s;
}

#endif
