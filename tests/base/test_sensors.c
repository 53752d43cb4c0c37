/* Clocks, power, temperatures and what slows a machine down, from made-up files of the system and a
 * made-up library of the driver. */
#include "base/energy.h"
#include "base/nvml.h"
#include "base/sensors.h"

#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[] = "/tmp/minidirac-sensors-XXXXXX";

/* Writes a file of the made-up system, and the folders that it is in. */
static void put(const char *name, const char *text) {
  char path[256];
  snprintf(path, sizeof path, "%s%s", root, name);
  for (char *end = path + strlen(root) + 1; (end = strchr(end, '/')); end++) {
    *end = '\0';
    mkdir(path, 0700);
    *end = '/';
  }
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

static void begin_files(void) {
  memset(root + strlen(root) - 6, 'X', 6);
  assert_non_null(mkdtemp(root));
}

static void end_files(void) {
  char command[64];
  snprintf(command, sizeof command, "rm -r %s", root);
  assert_int_equal(system(command), 0);
}

static void put_processors(void) {
  put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "3000000\n");
  put("/sys/devices/system/cpu/cpu11/cpufreq/scaling_cur_freq", "2000000\n");
  put("/sys/devices/system/cpu/cpufreq/scaling_cur_freq", "9000000\n"); /* of no core */
  put("/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "7\n");
  put("/sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count", "9\n");
  put("/sys/class/hwmon/hwmon0/name", "nvme\n");
  put("/sys/class/hwmon/hwmon0/temp1_input", "99000\n");
  put("/sys/class/hwmon/hwmon3/name", "coretemp\n");
  put("/sys/class/hwmon/hwmon3/temp1_input", "61500\n");
  put("/sys/class/hwmon/hwmon3/temp2_input", "58000\n");
  put("/sys/class/hwmon/hwmon3/temp2_label", "1\n");
  put("/sys/class/thermal/thermal_zone0/type", "x86_pkg_temp\n");
  put("/sys/class/thermal/thermal_zone0/temp", "20000\n"); /* not looked at beside hwmon */
  put("/sys/class/powercap/intel-rapl:0/energy_uj", "1000000\n");
  put("/sys/class/powercap/intel-rapl:0/max_energy_range_uj", "262143328850\n");
  put("/sys/class/powercap/intel-rapl:0:0/energy_uj", "77000000\n"); /* part of it */
}

static void near(double value, double expected) {
  md_require_at_most(fabs(value - expected), 1e-9 * fabs(expected), "distance");
}

static void same(const md_readings *told, md_sensor sensor, double expected) {
  near(told->of[sensor].min, expected);
  near(told->of[sensor].median, expected);
  near(told->of[sensor].max, expected);
}

/* The GPU of this rank is made up too: all share it. */
static void with_gpu(md_context *context, int last) {
  context->gpu = (md_device_facts){.open = last >= 0};
  for (int i = 0; i < 16; i++) context->gpu.uuid[i] = (unsigned char)(i < 15 ? i + 1 : last);
}

/* One rank of the host and of the GPU samples; the last sample is taken where there was no time. */
static void all_sensors(void **state) {
  md_context *context = *state;
  md_readings told;
  begin_files();
  put_processors();
  with_gpu(context, 1);
  md_sensors *s = md_sensors_begin(context, root, MADE_UP_NVML);
  assert_non_null(s);
  put("/sys/class/powercap/intel-rapl:0/energy_uj", "31000000\n");
  md_sensors_end(context, s, &told);
  assert_int_equal(told.samples, 1);
  same(&told, MD_CPU_CLOCK_MHZ, 2500.0);
  same(&told, MD_CPU_TEMPERATURE_C, 61.5);
  same(&told, MD_GPU_MEMORY_CLOCK_MHZ, 3201.0);
  same(&told, MD_GPU_POWER_W, 650.5);
  assert_true(told.of[MD_CPU_POWER_W].median > 30.0 / 60.0); /* 30 J in less than a minute */
  assert_true(told.gpus && told.power_capped && !told.gpu_supply && !told.cpu_heat);
  with_gpu(context, -1);
  end_files();
}

/* A run of some samples: the thread takes them, and the least, median and most are theirs. */
static void samples_of_a_thread(void **state) {
  md_context *context = *state;
  md_readings told;
  begin_files();
  put_processors();
  with_gpu(context, 1);
  md_sensors *s = md_sensors_begin(context, root, MADE_UP_NVML);
  sleep(1);
  put("/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "8\n");
  md_sensors_end(context, s, &told);
  assert_true(told.samples >= 1 && told.samples <= 10);
  near(told.of[MD_GPU_CLOCK_MHZ].max - told.of[MD_GPU_CLOCK_MHZ].min, 10.0 * (told.samples - 1));
  near(2.0 * told.of[MD_GPU_TEMPERATURE_C].median,
       told.of[MD_GPU_TEMPERATURE_C].min + told.of[MD_GPU_TEMPERATURE_C].max);
  assert_true(told.cpu_heat && told.gpu_heat == (told.samples > 1));
  with_gpu(context, -1);
  end_files();
}

/* Without a driver for frequencies the kernel's list, without hwmon the zones; what is missing is
 * one text, and of GPUs only where there is one. */
static void what_is_missing(void **state) {
  md_context *context = *state;
  md_readings told;
  char words[MD_SENSORS_WORDS];
  cJSON *row = cJSON_CreateObject();
  begin_files();
  put("/proc/cpuinfo",
      "processor\t: 0\ncpu MHz\t\t: 2600.5\ncache size\t: 1 KB\ncpu MHz\t\t: 2599.5\n");
  put("/sys/class/thermal/thermal_zone1/type", "acpitz\n");
  put("/sys/class/thermal/thermal_zone1/temp", "90000\n");
  put("/sys/class/thermal/thermal_zone2/type", "cpu-thermal\n");
  put("/sys/class/thermal/thermal_zone2/temp", "47250\n");
  md_sensors_end(context, md_sensors_begin(context, root, "libnowhere.so"), &told);
  same(&told, MD_CPU_CLOCK_MHZ, 2600.0);
  same(&told, MD_CPU_TEMPERATURE_C, 47.25);
  assert_true(isnan(told.of[MD_CPU_POWER_W].median) && isnan(told.of[MD_GPU_CLOCK_MHZ].median));
  md_sensors_report(row, &told);
  const cJSON *sensors = cJSON_GetObjectItem(row, "sensors");
  assert_string_equal(cJSON_GetObjectItem(sensors, "not_told")->valuestring, "CPU power");
  assert_string_equal(cJSON_GetObjectItem(sensors, "slowed_by")->valuestring, "");
  assert_null(cJSON_GetObjectItem(sensors, "gpu_clock_mhz"));
  md_sensors_words(sensors, words);
  assert_string_equal(words, "CPU clock 2600 MHz (2600 to 2600), CPU temperature 47.25 C (47.25 to "
                             "47.25)");
  md_sensors_words(NULL, words);
  assert_string_equal(words, "");
  cJSON_Delete(row);
  end_files();
}

/* A driver that tells no power: that is missing, the rest is there. What slowed is named. */
static void what_slows(void **state) {
  md_context *context = *state;
  md_readings told;
  char words[MD_SENSORS_WORDS];
  cJSON *row = cJSON_CreateObject();
  with_gpu(context, 2);
  md_sensors_end(context, md_sensors_begin(context, "/nowhere", MADE_UP_NVML), &told);
  assert_true(isnan(told.of[MD_GPU_POWER_W].median) && !isnan(told.of[MD_GPU_CLOCK_MHZ].median));
  told.cpu_heat = told.gpu_heat = told.gpu_supply = true;
  md_sensors_report(row, &told);
  const cJSON *sensors = cJSON_GetObjectItem(row, "sensors");
  assert_string_equal(cJSON_GetObjectItem(sensors, "not_told")->valuestring,
                      "CPU clock, CPU power, CPU temperature, GPU power");
  assert_string_equal(cJSON_GetObjectItem(sensors, "slowed_by")->valuestring,
                      "heat of a GPU, supply of a GPU, heat of a CPU");
  md_sensors_words(sensors, words);
  assert_non_null(strstr(words, "GPU memory clock 3201 MHz (3201 to 3201)"));
  assert_non_null(strstr(words, ", held at the power cap of a GPU"));
  cJSON_Delete(row);
  with_gpu(context, -1);
}

/* Joules of a GPU, and the reasons where there are none. */
static void energy_of_a_gpu(void **state) {
  (void)state;
  unsigned char uuid[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 1};
  char reason[MD_ENERGY_REASON];
  md_nvml *n = md_nvml_open(MADE_UP_NVML, uuid, reason, sizeof reason);
  assert_non_null(n);
  const double before = md_nvml_joules(n);
  near(md_nvml_joules(n) - before, 2.0);
  md_nvml_close(n);
  uuid[15] = 2;
  n = md_nvml_open(MADE_UP_NVML, uuid, reason, sizeof reason);
  assert_non_null(n);
  assert_true(isnan(md_nvml_joules(n)));
  md_nvml_close(n);
  uuid[0] = 0;
  assert_null(md_nvml_open(MADE_UP_NVML, uuid, reason, sizeof reason));
  assert_string_equal(reason, "NVML does not know GPU-00020304-0506-0708-090a-0b0c0d0e0f02");
  assert_null(md_nvml_open("libnowhere.so", uuid, reason, sizeof reason));
  assert_string_equal(reason, "libnowhere.so of the driver is not there");
  md_nvml_close(NULL);
}

/* Counters of whole processors alone, summed, one of them begun anew; and one that cannot be read.
 */
static void energy_of_processors(void **state) {
  (void)state;
  md_energy before = {.domains = 0}, after = {.domains = 0}, none = {.domains = 0};
  begin_files();
  put_processors();
  assert_true(md_energy_processors(root, &before));
  assert_int_equal(before.domains, 1);
  put("/sys/class/powercap/intel-rapl:0/energy_uj", "400000\n");
  assert_true(md_energy_processors(root, &after));
  near(md_energy_processors_between(&before, &after), 262143.32885 - 0.6);
  put("/sys/class/powercap/intel-rapl:0/energy_uj", "");
  assert_false(md_energy_processors(root, &none));
  assert_non_null(strstr(none.cpu_reason, "intel-rapl:0/energy_uj cannot be read"));
  end_files();
}

static struct CMUnitTest tests[] = {
    cmocka_unit_test(all_sensors),     cmocka_unit_test(samples_of_a_thread),
    cmocka_unit_test(what_is_missing), cmocka_unit_test(what_slows),
    cmocka_unit_test(energy_of_a_gpu), cmocka_unit_test(energy_of_processors),
};
MD_RUN_TESTS(tests)
