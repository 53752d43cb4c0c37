#include "base/energy.h"
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Differences of counters that began anew between two readings, summed over processors and ranks;
 * a host or GPU that tells nothing leaves no number. */
static void counters_begin_anew(void **state) {
  md_context *context = *state;
  double cpu, gpu;
  const md_energy before = {.domains = 2,
                            .joules = {100.0, 262143.0},
                            .range = {262143.5, 262143.5},
                            .gpu_joules = 7.0,
                            .has_cpu = true,
                            .has_gpu = true};
  md_energy after = before;
  after.joules[0] = 130.0;
  after.joules[1] = 4.0;
  after.gpu_joules = 19.5;
  md_energy_between(context, &before, &after, &cpu, &gpu);
  assert_true(fabs(cpu - context->ranks * 34.5) < 1e-9);
  assert_true(fabs(gpu - context->ranks * 12.5) < 1e-9);
  after.has_cpu = false;
  md_energy_between(context, &before, &after, &cpu, &gpu);
  assert_true(isnan(cpu) && !isnan(gpu));
}

/* What this machine tells is a number or a reason, the same on every rank. */
static void number_or_reason(void **state) {
  md_context *context = *state;
  md_energy now;
  double same[2], most[2];
  md_energy_read(context, &now);
  same[0] = most[0] = now.has_cpu;
  same[1] = most[1] = now.has_gpu;
  md_maximum(context, most, 2);
  assert_memory_equal(same, most, sizeof same);
  if (context->rank == 0 && !now.has_cpu) assert_true(strlen(now.cpu_reason) > 0);
  if (!now.has_gpu) assert_true(strlen(now.gpu_reason) > 0);
}

static void put_domain(const char *root, const char *domain, const char *name) {
  char path[400];
  snprintf(path, sizeof path, "mkdir -p %s/sys/class/powercap/%s", root, domain);
  assert_int_equal(system(path), 0);
  const char *const files[][2] = {
      {"name", name}, {"energy_uj", "7000000"}, {"max_energy_range_uj", "262143000000"}};
  for (int i = 0; i < 3; i++) {
    snprintf(path, sizeof path, "%s/sys/class/powercap/%s/%s", root, domain, files[i][0]);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "%s\n", files[i][1]);
    fclose(file);
  }
}

/* A processor counts once: not its parts, nor by another way to the same counter, nor with the
 * platform around it. */
static void processors_count_once(void **state) {
  md_context *context = *state;
  char root[] = "/tmp/minidirac-energy-XXXXXX", command[64];
  md_energy now = {0};
  if (context->rank > 0) return;
  assert_non_null(mkdtemp(root));
  put_domain(root, "intel-rapl:0", "package-0");
  put_domain(root, "intel-rapl:0:0", "core");
  put_domain(root, "intel-rapl:1", "psys");
  put_domain(root, "intel-rapl:2", "package-1");
  put_domain(root, "intel-rapl-mmio:0", "package-0");
  assert_true(md_energy_processors(root, &now));
  assert_int_equal(now.domains, 2);
  assert_true(fabs(now.joules[0] - 7.0) < 1e-9);
  snprintf(command, sizeof command, "rm -r %s", root);
  assert_int_equal(system(command), 0);
}

static struct CMUnitTest tests[] = {cmocka_unit_test(counters_begin_anew),
                                    cmocka_unit_test(processors_count_once),
                                    cmocka_unit_test(number_or_reason)};
MD_RUN_TESTS(tests)
