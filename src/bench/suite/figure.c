#include "base/energy.h"
#include "base/sensors.h"
#include "base/text.h"
#include "base/waiting.h"
#include "bench/suite/suite.h"

#include <math.h>
#include <string.h>

/* The figure of merit, what compares across classes and machines beside it, and the verdict. */

/* Of an official figure: seconds that its solve is timed, and the spread of its repetitions. */
#define OFFICIAL_S 60.0
#define OFFICIAL_SPREAD 0.05
/* A host is busy where others take this share of its cores, or a whole one. */
#define BUSY_SHARE 0.05

double md_suite_real(const cJSON *row, const char *key) {
  const cJSON *item = cJSON_GetObjectItem(row, key);
  return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

/* GPUs of the run, or cores that have a thread of it. Collective. */
static double count_devices(const md_suite *suite, bool gpus) {
  md_context *context = suite->context;
  const int threads = context->local_ranks * context->threads;
  md_cores cores;
  md_cores_look("", &cores);
  long long count = gpus                       ? md_counts_gpu(context)
                    : context->local_rank != 0 ? 0
                    : threads < cores.online   ? threads
                                               : cores.online;
  md_sum_integers(context, &count, 1);
  return (double)count;
}

/* Whether processors and GPUs tell their energy, and the reason where one does not. */
static void report_energy(md_report *report, md_suite *suite) {
  md_energy now;
  md_energy_read(suite->context, &now);
  cJSON *energy = cJSON_AddObjectToObject(report->root, "energy");
  md_report_add(energy, "processors=%s gpus=%s has_processors=%hhd has_gpus=%hhd",
                now.has_cpu ? "RAPL" : now.cpu_reason, now.has_gpu ? "NVML" : now.gpu_reason,
                now.has_cpu, now.has_gpu);
  if (!now.has_cpu) MD_SUITE_LACKS(suite, "no energy of CPUs (%s)", now.cpu_reason);
  if (!now.has_gpu && count_devices(suite, true) > 0.0)
    MD_SUITE_LACKS(suite, "no energy of GPUs (%s)", now.gpu_reason);
}

/* Clocks, power and temperatures while the figure's solve was timed; null without one. */
static void add_sensors(cJSON *root, md_suite *suite, const cJSON *row) {
  const cJSON *sensors = cJSON_GetObjectItem(suite->merit_row, "sensors");
  const char *missing = sensors ? cJSON_GetObjectItem(sensors, "not_told")->valuestring : "";
  if (*missing) MD_SUITE_LACKS(suite, "no sensors of %s", missing);
  cJSON_AddItemToObject(root, "sensors", row ? cJSON_Duplicate(sensors, true) : cJSON_CreateNull());
}

/* The figure by the median of its solve's repetitions, and by the longest and the shortest; sites
 * and flops beside it. `row` NULL: there is none. */
static void add_figures(cJSON *root, md_suite *suite, const cJSON *row) {
  const double rhs = md_suite_real(row, "rhs"), joules = md_suite_real(row, "joules");
  const double median_s = md_suite_real(row, "seconds_median"), merit = rhs / median_s;
  const double sites = (double)suite->links.geometry->volume, gflops = md_suite_real(row, "gflops");
  const bool gpus =
      row && md_action_links_space(suite->context, cJSON_GetObjectItem(row, "backend")->valuestring,
                                   &suite->physics) == MD_DEVICE;
  const double devices = row ? count_devices(suite, gpus) : NAN;
  md_report_add(
      root,
      "figure_of_merit=%g figure_of_merit_min=%g figure_of_merit_max=%g "
      "figure_of_merit_repetitions=%g figure_of_merit_seconds=%g figure_of_merit_per_joule=%g "
      "sites_rhs_per_second=%g figure_gflops=%g devices=%g devices_are=%s "
      "sites_rhs_per_second_per_device=%g figure_gflops_per_device=%g sites_rhs_per_joule=%g "
      "figure_gflop_per_joule=%g",
      merit, rhs / md_suite_real(row, "seconds_max"), rhs / md_suite_real(row, "seconds_min"),
      md_suite_real(row, "repetitions"), md_suite_real(row, "seconds_timed"), rhs / joules,
      sites * merit, gflops, devices, row ? gpus ? "GPUs" : "cores" : NULL, sites * merit / devices,
      gflops / devices, sites * rhs / joules, gflops * median_s / joules);
}

static void say_figures(md_suite *suite, const cJSON *root) {
  const double devices = md_suite_real(root, "devices");
  char words[MD_SENSORS_WORDS];
  const bool gpus = strcmp(cJSON_GetObjectItem(root, "devices_are")->valuestring, "GPUs") == 0;
  md_say(
      suite->context,
      "      %.4g sites x right-hand sides per second, %.4g GFLOP/s; each of %g %s%s: %.4g, %.4g",
      md_suite_real(root, "sites_rhs_per_second"), md_suite_real(root, "figure_gflops"), devices,
      gpus ? "GPU" : "core", md_plural((long long)devices),
      md_suite_real(root, "sites_rhs_per_second_per_device"),
      md_suite_real(root, "figure_gflops_per_device"));
  if (!isnan(md_suite_real(root, "figure_of_merit_per_joule")))
    md_say(suite->context, "; per joule: %.4g, %.4g, %.4g right-hand sides",
           md_suite_real(root, "sites_rhs_per_joule"),
           md_suite_real(root, "figure_gflop_per_joule"),
           md_suite_real(root, "figure_of_merit_per_joule"));
  md_say(suite->context, "\n");
  md_sensors_words(cJSON_GetObjectItem(root, "sensors"), words);
  if (*words) md_say(suite->context, "      %s\n", words);
}

enum { WHY_BYTES = 256 };

static const char *without_mark(const char *why) {
  return *why ? why + 2 : why;
}

/* What speaks against the times of this run, into the report and, each with "; " in front, `why`.
 * Collective. */
static void judge_run(cJSON *root, md_suite *suite, const cJSON *row, char *why) {
  md_load now;
  md_cores cores;
  const double timed_s = md_suite_real(row, "seconds_timed");
  const double spread =
      md_suite_real(row, "repetitions") > 1.0
          ? (md_suite_real(row, "seconds_max") - md_suite_real(row, "seconds_min")) /
                md_suite_real(row, "seconds_median")
          : NAN;
  md_cores_look("", &cores);
  md_load_read("", &now);
  const double busy = md_load_others(suite->context, &suite->load, &now);
  if (row && suite->failed) md_append(why, WHY_BYTES, "; a check failed");
  if (timed_s < OFFICIAL_S)
    md_append(why, WHY_BYTES, "; %.3g s timed, %g needed", timed_s, OFFICIAL_S);
  if (row && isnan(spread)) md_append(why, WHY_BYTES, "; no spread of one repetition");
  if (spread > OFFICIAL_SPREAD)
    md_append(why, WHY_BYTES, "; repetitions spread by %.3g %%", 100.0 * spread);
  if (row && isnan(busy)) md_append(why, WHY_BYTES, "; load of others not told");
  if (busy > fmin(1.0, BUSY_SHARE * cores.online))
    md_append(why, WHY_BYTES, "; machine busy: others took %.2g of %d cores", busy, cores.online);
  const cJSON *slowed = cJSON_GetObjectItem(cJSON_GetObjectItem(row, "sensors"), "slowed_by");
  if (slowed && *slowed->valuestring)
    md_append(why, WHY_BYTES, "; slowed by %s", slowed->valuestring);
  const char *commit = cJSON_GetObjectItem(root, "commit")->valuestring;
  if (row && (strstr(commit, "-dirty") || strcmp(commit, "unknown") == 0))
    md_append(why, WHY_BYTES, "; code without commit");
  md_report_add(root, "busy_cores=%g figure_of_merit_spread=%g official=%hhd not_official=%s", busy,
                spread, (bool)(row && !*why), row ? without_mark(why) : "no figure");
}

void md_suite_report_figure(md_suite *suite, md_report *report, bool whole, bool solves) {
  cJSON *root = report->root;
  const cJSON *row = whole ? suite->merit_row : NULL;
  char best[128] = "", why[WHY_BYTES] = "";
  if (suite->merit_row)
    md_append(best, sizeof best, "%s, packing %s, inner %s, %d right-hand side%s at once",
              cJSON_GetObjectItem(suite->merit_row, "backend")->valuestring,
              cJSON_GetObjectItem(suite->merit_row, "packing")->valuestring,
              cJSON_GetObjectItem(suite->merit_row, "inner")->valuestring,
              cJSON_GetObjectItem(suite->merit_row, "rhs")->valueint,
              md_plural(cJSON_GetObjectItem(suite->merit_row, "rhs")->valueint));
  suite->unsolved = solves && !suite->merit_row;
  report_energy(report, suite);
  md_report_add(root, "whole=%hhd pass=%hhd", whole, (bool)(!suite->failed && !suite->unsolved));
  add_sensors(root, suite, row);
  add_figures(root, suite, row);
  md_report_add(root, "figure_of_merit_unit=%s figure_of_merit_of=%s",
                "right-hand sides solved to a true residual of 1e-10 per second", row ? best : "");
  judge_run(root, suite, row, why);
  if (*suite->absent) md_say(suite->context, "\nabsent: %s\n", suite->absent);
  md_say(suite->context, "\n%s", suite->failed || suite->unsolved ? "FAIL" : "PASS");
  if (row)
    md_say(suite->context,
           "  class %s, %s, mass %g: %.4g right-hand sides to %g per second (%s)%s%s\n",
           suite->class->name, suite->physics.action, suite->class->mass,
           md_suite_real(root, "figure_of_merit"), MD_SUITE_TOLERANCE, best,
           *why ? "; not official: " : "", without_mark(why));
  else
    md_say(suite->context, "  no figure of merit: %s%s%s\n",
           suite->unsolved ? "no solve passed" : "some parts were left out", *why ? "; " : "",
           without_mark(why));
  if (row) say_figures(suite, root);
}
