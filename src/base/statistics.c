#include "base/statistics.h"

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
