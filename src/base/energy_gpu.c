#include "base/energy.h"

#include <dlfcn.h>
#include <stdio.h>

/* NVML belongs to the driver, not to the toolkit: it is looked for where the program runs. */
typedef struct nvml {
  void *library;
  int (*begin)(void);
  int (*end)(void);
  int (*by_uuid)(const char *uuid, void **device);
  int (*energy)(void *device, unsigned long long *millijoules);
} nvml;

static bool open_library(nvml *n) {
  n->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!n->library) return false;
  *(void **)&n->begin = dlsym(n->library, "nvmlInit_v2");
  *(void **)&n->end = dlsym(n->library, "nvmlShutdown");
  *(void **)&n->by_uuid = dlsym(n->library, "nvmlDeviceGetHandleByUUID");
  *(void **)&n->energy = dlsym(n->library, "nvmlDeviceGetTotalEnergyConsumption");
  return n->begin && n->end && n->by_uuid && n->energy;
}

bool md_energy_of_gpu(const unsigned char uuid[16], double *joules, char *reason, size_t bytes) {
  nvml n = {0};
  char name[48] = "GPU";
  int length = 3;
  void *device = NULL;
  unsigned long long millijoules = 0;
  bool told = false;
  for (int i = 0; i < 16; i++)
    length += snprintf(name + length, sizeof name - (size_t)length, "%s%02x",
                       i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
  if (!open_library(&n)) {
    snprintf(reason, bytes, "libnvidia-ml.so.1 of the driver is not there");
  } else if (n.begin() != 0) {
    snprintf(reason, bytes, "NVML does not start");
  } else {
    told = n.by_uuid(name, &device) == 0 && n.energy(device, &millijoules) == 0;
    if (!told) snprintf(reason, bytes, "NVML does not tell the energy of %s", name);
    n.end();
  }
  if (n.library) dlclose(n.library);
  *joules = 1e-3 * (double)millijoules;
  return told;
}
