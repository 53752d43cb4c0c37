/* The load of other processes, from a made-up /proc/stat. */
#include "base/load.h"

#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void load_of(const char *stat, md_load *now) {
  char root[] = "/tmp/minidirac-load-XXXXXX", name[64];
  assert_non_null(mkdtemp(root));
  snprintf(name, sizeof name, "%s/proc", root);
  assert_int_equal(mkdir(name, 0700), 0);
  snprintf(name, sizeof name, "%s/proc/stat", root);
  FILE *file = fopen(name, "w");
  assert_non_null(file);
  fputs(stat, file);
  fclose(file);
  md_load_read(root, now);
  unlink(name);
  *strrchr(name, '/') = '\0';
  rmdir(name);
  rmdir(root);
}

/* Idle time and waiting for disks are no load; what the ranks of a host took is not that of others.
 */
static void what_others_took(void **state) {
  md_context *context = *state;
  md_load before, after;
  const double ticks = (double)sysconf(_SC_CLK_TCK);
  load_of("cpu  100 10 20 5000 700 3 4 5 50 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n", &before);
  load_of("cpu  300 20 40 9000 900 5 8 9 90 0\n", &after);
  assert_true(fabs(before.all_s - 142.0 / ticks) < 1e-12);
  assert_true(fabs(after.all_s - 382.0 / ticks) < 1e-12);
  after.time_s = before.time_s + 2.0;
  after.own_s = before.own_s + 0.2 / context->ranks;
  const double others = (240.0 / ticks - 0.2) / 2.0;
  assert_true(fabs(md_load_others(context, &before, &after) - others) < 1e-5);
  after.own_s = before.own_s + 100.0;
  assert_true(md_load_others(context, &before, &after) == 0.0);
}

static void what_is_not_told(void **state) {
  md_load before, after;
  load_of("cpu  0 0 0 0 0 0 0 0 0 0\n", &before);
  load_of("cpu  100 10 20 5000 700 3 4 5 50 0\n", &after);
  assert_true(isnan(before.all_s));
  assert_true(isnan(md_load_others(*state, &before, &after)));
  md_load_read("/nowhere", &after);
  assert_true(isnan(after.all_s) && after.own_s > 0.0 && after.time_s > 0.0);
}

static struct CMUnitTest tests[] = {cmocka_unit_test(what_others_took),
                                    cmocka_unit_test(what_is_not_told)};
MD_RUN_TESTS(tests)
