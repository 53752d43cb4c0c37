/* A library in the place of the driver's, with one GPU: 2 J more, 10 MHz less and 1 C more at each
 * look. That with the UUID of zeros is not there, that which ends in 2 tells neither energy nor
 * power. */
#include <string.h>

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device);
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules);
int nvmlDeviceGetClockInfo(void *device, int of, unsigned *mhz);
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts);
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius);
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *bits);

static struct {
  int started, silent;
  unsigned joules, looks, celsius;
} gpu = {.joules = 1000, .celsius = 40};

int nvmlInit_v2(void) {
  gpu.started++;
  return 0;
}
int nvmlShutdown(void) {
  return gpu.started-- > 0 ? 0 : 1;
}
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device) {
  if (strncmp(uuid, "GPU-01020304-0506-0708-090a-0b0c0d0e0f0", 39) != 0) return 6;
  gpu.silent = uuid[39] == '2';
  *device = &gpu;
  return 0;
}
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules) {
  if (device != &gpu || gpu.silent) return 3;
  *millijoules = 1000ull * (gpu.joules += 2);
  return 0;
}
int nvmlDeviceGetClockInfo(void *device, int of, unsigned *mhz) {
  if (device != &gpu) return 2;
  *mhz = of == 1 ? 1980 - 10 * gpu.looks++ : of == 2 ? 3201 : 0;
  return 0;
}
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts) {
  *milliwatts = 650500;
  return device != &gpu || gpu.silent;
}
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius) {
  *celsius = gpu.celsius++;
  return device != &gpu || sensor != 0;
}
/* Power cap and, at the second look and later, heat as the hardware finds it. */
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *bits) {
  *bits = gpu.looks > 1 ? 0x44 : 0x4;
  return device != &gpu;
}
