#include "base/energy.h"
#include "support.h"

#include <math.h>
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

static struct CMUnitTest tests[] = {cmocka_unit_test(counters_begin_anew),
                                    cmocka_unit_test(number_or_reason)};
MD_RUN_TESTS(tests)
