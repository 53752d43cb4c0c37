#include "base/load.h"
#include "base/timer.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static double seconds_of(struct timeval time) {
  return (double)time.tv_sec + 1e-6 * (double)time.tv_usec;
}

/* Of the first line of /proc/stat, user nice system idle iowait irq softirq steal, in ticks, all
 * but the two that are idle. A container may show zeros. */
static double all_seconds(const char *root) {
  char name[PATH_MAX];
  double t[8] = {0.0}, busy = 0.0;
  snprintf(name, sizeof name, "%s/proc/stat", root);
  FILE *file = fopen(name, "r");
  if (file && fscanf(file, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &t[0], &t[1], &t[2], &t[3], &t[4],
                     &t[5], &t[6], &t[7]) == 8)
    busy = t[0] + t[1] + t[2] + t[5] + t[6] + t[7];
  if (file) fclose(file);
  return busy > 0.0 ? busy / (double)sysconf(_SC_CLK_TCK) : NAN;
}

void md_load_read(const char *root, md_load *now) {
  struct rusage own;
  getrusage(RUSAGE_SELF, &own);
  *now = (md_load){md_time_s(), all_seconds(root),
                   seconds_of(own.ru_utime) + seconds_of(own.ru_stime)};
}

double md_load_others(const md_context *context, const md_load *before, const md_load *after) {
  int ranks;
  const double own_s =
      1e-6 * (double)md_sum_on_host(context, llround(1e6 * (after->own_s - before->own_s)), &ranks);
  const double others_s = after->all_s - before->all_s - own_s;
  double cores = isnan(others_s) ? NAN : fmax(others_s, 0.0) / (after->time_s - before->time_s);
  md_maximum(context, &cores, 1);
  return cores;
}
