#pragma once

#include "base/context.h"
#include <cjson/cJSON.h>

/* Clocks, power and temperatures of the processors and GPUs of a run while something is timed. */
typedef enum md_sensor {
  MD_CPU_CLOCK_MHZ,     /* mean over the cores of a host */
  MD_CPU_POWER_W,       /* of all processors of a host, by RAPL */
  MD_CPU_TEMPERATURE_C, /* of the hottest one */
  MD_GPU_CLOCK_MHZ,     /* of its multiprocessors; these four by NVML */
  MD_GPU_MEMORY_CLOCK_MHZ,
  MD_GPU_POWER_W,
  MD_GPU_TEMPERATURE_C,
  MD_SENSORS
} md_sensor;

typedef struct md_readings {
  /* Over all samples of all hosts or GPUs: the least, the median of their medians, the most. NaN:
   * none was told. */
  struct {
    double min, median, max;
  } of[MD_SENSORS];
  int samples;                         /* of the rank that took most */
  bool gpus;                           /* a rank had one open */
  bool power_capped;                   /* a GPU was held at its cap on power, as many are */
  bool gpu_heat, gpu_supply, cpu_heat; /* slowed one down */
} md_readings;

typedef struct md_sensors md_sensors;

/* Samples from now on, four times a second by a thread of its own: on one rank of each host its
 * processors, on one rank of each GPU that is open that one. `root` stands before /proc and /sys
 * ("" for the system itself), `nvml` is the name or path of that library (base/nvml.h). NULL where
 * the memory does not hold it: then nothing is told. Collective. */
md_sensors *md_sensors_begin(md_context *context, const char *root, const char *nvml);
/* Ends it, with a last sample where there was no time for one. `told` is equal on all ranks; NULL:
 * it is not wanted, and the call is local. Else collective. */
void md_sensors_end(md_context *context, md_sensors *s, md_readings *told);

/* Adds the object `sensors` to a row: samples; an array [least, median, most] by name for each that
 * was told; not_told, the others (of GPUs only where one was open); power_capped; slowed_by, what
 * did ("": nothing). Local. */
void md_sensors_report(cJSON *row, const md_readings *told);
/* That object in words, "GPU clock 1980 MHz (1965 to 1980), ..."; empty where nothing was told.
 * Local. */
enum { MD_SENSORS_WORDS = 512 };
void md_sensors_words(const cJSON *sensors, char words[MD_SENSORS_WORDS]);
