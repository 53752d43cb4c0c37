#include "base/sensors.h"
#include "base/energy.h"
#include "base/nvml.h"
#include "base/report.h"
#include "base/statistics.h"
#include "base/text.h"
#include "base/timer.h"
#include "base/waiting.h"

#include <glob.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct {
  const char *key, *name, *unit;
} TABLE[MD_SENSORS] = {
    [MD_CPU_CLOCK_MHZ] = {"cpu_clock_mhz", "CPU clock", "MHz"},
    [MD_CPU_POWER_W] = {"cpu_power_w", "CPU power", "W"},
    [MD_CPU_TEMPERATURE_C] = {"cpu_temperature_c", "CPU temperature", "C"},
    [MD_GPU_CLOCK_MHZ] = {"gpu_clock_mhz", "GPU clock", "MHz"},
    [MD_GPU_MEMORY_CLOCK_MHZ] = {"gpu_memory_clock_mhz", "GPU memory clock", "MHz"},
    [MD_GPU_POWER_W] = {"gpu_power_w", "GPU power", "W"},
    [MD_GPU_TEMPERATURE_C] = {"gpu_temperature_c", "GPU temperature", "C"},
};

struct md_sensors {
  pthread_t thread;
  pthread_mutex_t lock; /* of `ends` */
  pthread_cond_t ended;
  bool runs, ends; /* the thread; it is to end */
  /* Of the processors of this host, on the rank that looks at them: */
  bool looks, has_energy;
  char root[PATH_MAX];
  glob_t clocks, temperatures, throttles;
  double throttled; /* times that heat had slowed a core down when it began */
  md_energy energy; /* of the last sample */
  double energy_s;  /* when that was taken */
  md_nvml *gpu;     /* NULL: none is looked at here */
  bool has_gpu;
  unsigned long long slowed; /* bits of all samples */
  double *sample[MD_SENSORS];
  int count[MD_SENSORS], samples;
};

/* Adds the files of the pattern. */
static void find(glob_t *files, const char *root, const char *pattern) {
  char path[PATH_MAX];
  if (snprintf(path, sizeof path, "%s%s", root, pattern) < (int)sizeof path)
    glob(path, GLOB_NOSORT | GLOB_APPEND, NULL, files);
}

/* What the drivers of processors' sensors call themselves, or begin their name with. */
static bool is_processor(const char *name) {
  static const char *const words[] = {"coretemp", "k10temp", "zenpower", "x86_pkg_temp", "cpu"};
  bool is = false;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    is = is || strncmp(name, words[i], strlen(words[i])) == 0;
  return is;
}

/* Adds the files of the pattern `beside` in the folders whose file `name` tells of a processor. */
static void find_beside(glob_t *files, const char *root, const char *name, const char *beside) {
  glob_t names = {0};
  char path[PATH_MAX], word[64];
  find(&names, root, name);
  for (size_t i = 0; i < names.gl_pathc; i++) {
    const char *file_name = names.gl_pathv[i];
    md_line_in(file_name, word, sizeof word);
    snprintf(path, sizeof path, "%.*s%s", (int)(strrchr(file_name, '/') - file_name), file_name,
             beside);
    if (is_processor(word)) find(files, "", path);
  }
  globfree(&names);
}

typedef struct numbers {
  double sum, most;
  int count;
} numbers;

/* The numbers in the files that can be read now. */
static numbers read_all(const glob_t *files) {
  numbers all = {.most = NAN};
  for (size_t i = 0; i < files->gl_pathc; i++) {
    const double value = (double)md_number_in(files->gl_pathv[i], NULL);
    if (value < 0.0) continue;
    all.sum += value;
    all.most = fmax(all.most, value);
    all.count++;
  }
  return all;
}

/* The mean of the clocks that the kernel tells where there is no driver for frequencies. */
static double clock_of_cpuinfo(const char *root) {
  char name[PATH_MAX + 32], line[512];
  double mhz, sum = 0.0;
  int cores = 0;
  snprintf(name, sizeof name, "%s/proc/cpuinfo", root);
  FILE *file = fopen(name, "r");
  while (file && fgets(line, sizeof line, file))
    if (sscanf(line, "cpu MHz : %lf", &mhz) == 1) {
      sum += mhz;
      cores++;
    }
  if (file) fclose(file);
  return cores > 0 ? sum / cores : NAN;
}

static void look_at_processors(md_sensors *s, double now[MD_SENSORS]) {
  const numbers clocks = read_all(&s->clocks), temperatures = read_all(&s->temperatures);
  md_energy energy = {.domains = 0};
  const bool told = s->has_energy && md_energy_processors(s->root, &energy);
  const double now_s = md_time_s();
  now[MD_CPU_CLOCK_MHZ] =
      clocks.count > 0 ? 1e-3 * clocks.sum / clocks.count : clock_of_cpuinfo(s->root);
  now[MD_CPU_TEMPERATURE_C] = 1e-3 * temperatures.most;
  if (!told) return;
  now[MD_CPU_POWER_W] = md_energy_processors_between(&s->energy, &energy) / (now_s - s->energy_s);
  s->energy = energy;
  s->energy_s = now_s;
}

static void look_at_gpu(md_sensors *s, double now[MD_SENSORS]) {
  md_nvml_state state;
  md_nvml_read(s->gpu, &state);
  now[MD_GPU_CLOCK_MHZ] = state.clock_mhz;
  now[MD_GPU_MEMORY_CLOCK_MHZ] = state.memory_clock_mhz;
  now[MD_GPU_POWER_W] = state.power_w;
  now[MD_GPU_TEMPERATURE_C] = state.temperature_c;
  s->slowed |= state.slowed;
}

static void take(md_sensors *s) {
  double now[MD_SENSORS];
  for (int k = 0; k < MD_SENSORS; k++) now[k] = NAN;
  if (s->looks) look_at_processors(s, now);
  if (s->gpu) look_at_gpu(s, now);
  for (int k = 0; k < MD_SENSORS; k++) {
    const int count = s->count[k];
    if (isnan(now[k])) continue;
    if ((count & (count - 1)) == 0) { /* the room doubles at powers of two */
      double *more = realloc(s->sample[k], 2 * ((size_t)count + 1) * sizeof *more);
      if (!more) continue;
      s->sample[k] = more;
    }
    s->sample[k][s->count[k]++] = now[k];
  }
  s->samples++;
}

static void *sample(void *user) {
  enum { PERIOD_NS = 250000000, SECOND_NS = 1000000000 };
  md_sensors *s = user;
  struct timespec next;
  pthread_mutex_lock(&s->lock);
  while (!s->ends) {
    clock_gettime(CLOCK_REALTIME, &next);
    next.tv_nsec += PERIOD_NS;
    if (next.tv_nsec >= SECOND_NS) next.tv_nsec -= SECOND_NS, next.tv_sec++;
    while (!s->ends && pthread_cond_timedwait(&s->ended, &s->lock, &next) == 0) continue;
    if (s->ends) break;
    pthread_mutex_unlock(&s->lock);
    take(s);
    pthread_mutex_lock(&s->lock);
  }
  pthread_mutex_unlock(&s->lock);
  return NULL;
}

static void look_for_processors(md_sensors *s, const char *root) {
  snprintf(s->root, sizeof s->root, "%s", root);
  find(&s->clocks, root, "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_cur_freq");
  find(&s->throttles, root, "/sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/*_throttle_count");
  find_beside(&s->temperatures, root, "/sys/class/hwmon/hwmon*/name", "/temp*_input");
  if (s->temperatures.gl_pathc == 0)
    find_beside(&s->temperatures, root, "/sys/class/thermal/thermal_zone*/type", "/temp");
  s->throttled = read_all(&s->throttles).sum;
  s->has_energy = md_energy_processors(root, &s->energy);
  s->energy_s = md_time_s();
}

md_sensors *md_sensors_begin(md_context *context, const char *root, const char *nvml) {
  char reason[MD_ENERGY_REASON];
  const bool counted = md_counts_gpu(context);
  md_sensors *s = calloc(1, sizeof *s);
  if (!s) return NULL;
  s->looks = context->local_rank == 0;
  s->has_gpu = counted;
  if (s->looks) look_for_processors(s, root);
  if (counted) s->gpu = md_nvml_open(nvml, context->gpu.uuid, reason, sizeof reason);
  pthread_mutex_init(&s->lock, NULL);
  pthread_cond_init(&s->ended, NULL);
  if (s->looks || s->gpu) s->runs = pthread_create(&s->thread, NULL, sample, s) == 0;
  return s;
}

/* What this rank tells. */
static md_readings sum_up(md_sensors *s) {
  md_readings mine = {.samples = s ? s->samples : 0};
  for (int k = 0; k < MD_SENSORS; k++) {
    md_statistics of = {.median = NAN, .min = NAN, .max = NAN};
    if (s && s->count[k] > 0) of = md_statistics_of(s->sample[k], s->count[k]);
    mine.of[k].min = of.min;
    mine.of[k].median = of.median;
    mine.of[k].max = of.max;
  }
  if (!s) return mine;
  mine.gpus = s->has_gpu;
  mine.power_capped = (s->slowed & MD_NVML_POWER_CAP) != 0;
  mine.gpu_heat = (s->slowed & MD_NVML_HEAT) != 0;
  mine.gpu_supply = (s->slowed & MD_NVML_SUPPLY) != 0;
  mine.cpu_heat = read_all(&s->throttles).sum > s->throttled;
  return mine;
}

/* Adds what one rank told, but for its medians. */
static void add(const md_readings *one, md_readings *told) {
  for (int k = 0; k < MD_SENSORS; k++) {
    told->of[k].min = fmin(told->of[k].min, one->of[k].min); /* a number, where one of two is */
    told->of[k].max = fmax(told->of[k].max, one->of[k].max);
  }
  if (one->samples > told->samples) told->samples = one->samples;
  told->gpus = told->gpus || one->gpus;
  told->power_capped = told->power_capped || one->power_capped;
  told->gpu_heat = told->gpu_heat || one->gpu_heat;
  told->gpu_supply = told->gpu_supply || one->gpu_supply;
  told->cpu_heat = told->cpu_heat || one->cpu_heat;
}

/* Of those that are told; `medians` has room for one of each rank. */
static double median_of(const md_readings *all, int ranks, int sensor, double *medians) {
  int count = 0;
  for (int r = 0; r < ranks; r++)
    if (!isnan(all[r].of[sensor].median)) medians[count++] = all[r].of[sensor].median;
  return count > 0 ? md_statistics_of(medians, count).median : NAN;
}

static void gather(md_context *context, md_sensors *s, md_readings *told) {
  const md_readings mine = sum_up(s);
  const size_t ranks = (size_t)context->ranks, bytes = ranks * (sizeof mine + sizeof(double));
  md_readings *all = calloc(1, bytes);
  double *medians = all ? (double *)(all + ranks) : NULL;
  *told = sum_up(NULL);
  if (md_agree(context, all ? MD_OK : md_fail_memory(context, bytes, "sensors")) == MD_OK) {
    md_gather_all(context, &mine, sizeof mine, all);
    for (int r = 0; r < context->ranks; r++) add(&all[r], told);
    for (int k = 0; k < MD_SENSORS; k++)
      told->of[k].median = median_of(all, context->ranks, k, medians);
  }
  free(all);
}

void md_sensors_end(md_context *context, md_sensors *s, md_readings *told) {
  if (s && s->runs) {
    pthread_mutex_lock(&s->lock);
    s->ends = true;
    pthread_cond_signal(&s->ended);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
  }
  if (s && told && s->samples == 0) take(s);
  if (told) gather(context, s, told);
  if (!s) return;
  globfree(&s->clocks);
  globfree(&s->temperatures);
  globfree(&s->throttles);
  md_nvml_close(s->gpu);
  pthread_cond_destroy(&s->ended);
  pthread_mutex_destroy(&s->lock);
  for (int k = 0; k < MD_SENSORS; k++) free(s->sample[k]);
  free(s);
}

void md_sensors_report(cJSON *row, const md_readings *told) {
  cJSON *sensors = cJSON_AddObjectToObject(row, "sensors");
  char missing[MD_SENSORS_WORDS] = "", slowed[64] = "";
  md_report_add(sensors, "samples=%d", told->samples);
  for (int k = 0; k < MD_SENSORS; k++) {
    const double of[3] = {told->of[k].min, told->of[k].median, told->of[k].max};
    if (!isnan(of[1]))
      md_report_reals(sensors, TABLE[k].key, of, 3);
    else if (k < MD_GPU_CLOCK_MHZ || told->gpus)
      md_append(missing, sizeof missing, "%s%s", *missing ? ", " : "", TABLE[k].name);
  }
  if (told->gpu_heat) md_append(slowed, sizeof slowed, "heat of a GPU");
  if (told->gpu_supply) md_append(slowed, sizeof slowed, "%ssupply of a GPU", *slowed ? ", " : "");
  if (told->cpu_heat) md_append(slowed, sizeof slowed, "%sheat of a CPU", *slowed ? ", " : "");
  md_report_add(sensors, "not_told=%s power_capped=%hhd slowed_by=%s", missing, told->power_capped,
                slowed);
}

void md_sensors_words(const cJSON *sensors, char words[MD_SENSORS_WORDS]) {
  *words = '\0';
  for (int k = 0; k < MD_SENSORS; k++) {
    const cJSON *of = cJSON_GetObjectItem(sensors, TABLE[k].key);
    if (!of) continue;
    md_append(words, MD_SENSORS_WORDS, "%s%s %.4g %s (%.4g to %.4g)", *words ? ", " : "",
              TABLE[k].name, cJSON_GetArrayItem(of, 1)->valuedouble, TABLE[k].unit,
              cJSON_GetArrayItem(of, 0)->valuedouble, cJSON_GetArrayItem(of, 2)->valuedouble);
  }
  if (*words && cJSON_IsTrue(cJSON_GetObjectItem(sensors, "power_capped")))
    md_append(words, MD_SENSORS_WORDS, ", held at the power cap of a GPU");
}
