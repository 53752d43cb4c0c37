#include "base/interrupt.h"
#include "base/timer.h"
#include "bench/suite/suite.h"
#include "io/lattice_file.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

/* The part that writes and reads: the links of the class in double precision. Each format is
 * written and read up to SAMPLES times, but not again once that has taken ENOUGH_S. */
enum { SAMPLES = 3, FORMATS = 2 };
static const char *const formats[FORMATS] = {"hdf5", "ildg"};
#define ENOUGH_S 5.0

#define COLUMNS                                                                                    \
  "work=%-6s format=%-6s |MB=%11.2f ranks=%d bytes=%g seconds_median|seconds=%11.4f "              \
  "seconds_min=%g seconds_max=%g repetitions=%d gbytes_per_s|GB/s=%9.2f"

static void add_times(md_suite *suite, const char *work, const char *format, double times_s[],
                      int count) {
  const double bytes = (double)suite->links.geometry->volume * MD_DIMS * MD_LINK_REALS * 8;
  const double median_s = md_median(times_s, count);
  md_rows_add(suite->context, suite->rows, COLUMNS, work, format, 1e-6 * bytes,
              suite->context->ranks, bytes, median_s, times_s[0], times_s[count - 1], count,
              1e-9 * bytes / median_s);
}

static md_status write_once(md_suite *suite, const char *path, const md_lattice_format *format,
                            double *time_s) {
  const bool thin = suite->links.action == MD_ACTION_NAIVE;
  const md_link_label label = {.kind = thin ? MD_LINKS_THIN : MD_LINKS_FAT, .bare = true};
  md_barrier(suite->context);
  const double start_s = md_time_s();
  MD_TRY(md_lattice_save_links(suite->context, path, format, MD_DOUBLE, &label,
                               &suite->links.field[0]));
  *time_s = md_time_s() - start_s;
  md_maximum(suite->context, time_s, 1);
  return MD_OK;
}

static md_status read_once(md_suite *suite, const char *path, double *time_s, double *plaquette) {
  md_geometry *geometry = NULL;
  md_gauge gauge;
  md_lattice_info info = {0};
  const md_status status = md_lattice_load_links(suite->context, path, NULL, suite->grid, false,
                                                 &geometry, &gauge, &info);
  *time_s = info.read_s;
  *plaquette = info.observables.plaquette;
  md_maximum(suite->context, time_s, 1);
  md_lattice_info_destroy(&info);
  if (status != MD_OK) return status;
  md_gauge_destroy(&gauge);
  md_geometry_destroy(geometry);
  return md_interrupt_check(suite->context, "bench suite");
}

static md_status time_format(md_suite *suite, const char *path, const char *name) {
  const md_lattice_format *format;
  double write_s[SAMPLES], read_s[SAMPLES], all_s = 0.0, plaquette = 0.0;
  int count = 0;
  char check[64];
  md_gauge_observables here;
  MD_TRY(md_lattice_format_find(suite->context, path, name, &format));
  for (; count < SAMPLES && all_s < ENOUGH_S; count++) {
    MD_TRY(write_once(suite, path, format, &write_s[count]));
    MD_TRY(read_once(suite, path, &read_s[count], &plaquette));
    all_s += write_s[count] + read_s[count]; /* of the slowest rank: the same on all */
  }
  add_times(suite, "write", name, write_s, count);
  add_times(suite, "read", name, read_s, count);
  MD_TRY(md_gauge_observe(suite->context, &suite->links.field[0], &here));
  snprintf(check, sizeof check, "plaquette read back, %s", name);
  md_suite_check(suite, check, plaquette, here.plaquette, 1e-13);
  return MD_OK;
}

static void name_of(const md_suite *suite, const char *format, char path[PATH_MAX]) {
  snprintf(path, PATH_MAX, "%.3800s/minidirac-suite-%lld.%s", suite->scratch, suite->owner, format);
}

md_status md_suite_files_list(const md_suite *suite, md_made_files *files) {
  char path[PATH_MAX];
  for (int f = 0; f < FORMATS; f++) {
    name_of(suite, formats[f], path);
    MD_TRY(md_made_files_add(suite->context, files, "--scratch", path, MD_FILE_RESULT));
  }
  return MD_OK;
}

md_status md_suite_files(md_suite *suite) {
  md_rows_head(suite->context, COLUMNS);
  for (int f = 0; f < FORMATS; f++) {
    char path[PATH_MAX];
    name_of(suite, formats[f], path);
    const md_status status = time_format(suite, path, formats[f]);
    if (suite->context->rank == 0) unlink(path);
    MD_TRY(status);
  }
  return MD_OK;
}
