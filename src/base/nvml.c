#include "base/nvml.h"

#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* Functions that are NULL are not there. Each returns 0 where it assigns. */
struct md_nvml {
  void *library, *device;
  int (*end)(void);
  int (*energy)(void *device, unsigned long long *millijoules);
  int (*clock)(void *device, int of, unsigned *mhz);
  int (*power)(void *device, unsigned *milliwatts);
  int (*temperature)(void *device, int sensor, unsigned *celsius);
  int (*reasons)(void *device, unsigned long long *bits);
};

enum { CLOCK_OF_MULTIPROCESSORS = 1, CLOCK_OF_MEMORY = 2, SENSOR_OF_GPU = 0 };

/* *function, a pointer to one, becomes that of this name. */
static void find(const md_nvml *n, const char *name, void *function) {
  *(void **)function = dlsym(n->library, name);
}

/* As NVML writes it: "GPU-01234567-89ab-cdef-0123-456789abcdef". */
static void print_uuid(const unsigned char uuid[16], char text[48]) {
  int length = snprintf(text, 48, "GPU");
  for (int i = 0; i < 16; i++)
    length += snprintf(text + length, 48 - (size_t)length, "%s%02x",
                       i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
}

static md_nvml *refuse(md_nvml *n) {
  if (n->library) dlclose(n->library);
  free(n);
  return NULL;
}

md_nvml *md_nvml_open(const char *library, const unsigned char uuid[16], char *reason,
                      size_t bytes) {
  int (*begin)(void) = NULL, (*by_uuid)(const char *uuid, void **device) = NULL;
  char name[48];
  md_nvml *n = calloc(1, sizeof *n);
  snprintf(reason, bytes, "%s of the driver is not there", library);
  if (!n || !(n->library = dlopen(library, RTLD_NOW | RTLD_LOCAL))) return n ? refuse(n) : NULL;
  find(n, "nvmlInit_v2", &begin);
  find(n, "nvmlShutdown", &n->end);
  find(n, "nvmlDeviceGetHandleByUUID", &by_uuid);
  find(n, "nvmlDeviceGetTotalEnergyConsumption", &n->energy);
  find(n, "nvmlDeviceGetClockInfo", &n->clock);
  find(n, "nvmlDeviceGetPowerUsage", &n->power);
  find(n, "nvmlDeviceGetTemperature", &n->temperature);
  find(n, "nvmlDeviceGetCurrentClocksThrottleReasons", &n->reasons);
  snprintf(reason, bytes, "NVML does not start");
  if (!begin || !n->end || !by_uuid || begin() != 0) return refuse(n);
  print_uuid(uuid, name);
  if (by_uuid(name, &n->device) == 0) return n;
  snprintf(reason, bytes, "NVML does not know %s", name);
  n->end();
  return refuse(n);
}

void md_nvml_close(md_nvml *n) {
  if (!n) return;
  n->end();
  dlclose(n->library);
  free(n);
}

double md_nvml_joules(const md_nvml *n) {
  unsigned long long millijoules = 0;
  const bool told = n->energy && n->energy(n->device, &millijoules) == 0;
  return told ? 1e-3 * (double)millijoules : NAN;
}

void md_nvml_read(const md_nvml *n, md_nvml_state *now) {
  unsigned number = 0;
  *now = (md_nvml_state){NAN, NAN, NAN, NAN, 0};
  if (n->clock && n->clock(n->device, CLOCK_OF_MULTIPROCESSORS, &number) == 0)
    now->clock_mhz = number;
  if (n->clock && n->clock(n->device, CLOCK_OF_MEMORY, &number) == 0)
    now->memory_clock_mhz = number;
  if (n->power && n->power(n->device, &number) == 0) now->power_w = 1e-3 * number;
  if (n->temperature && n->temperature(n->device, SENSOR_OF_GPU, &number) == 0)
    now->temperature_c = number;
  if (!n->reasons || n->reasons(n->device, &now->slowed) != 0) now->slowed = 0;
}
