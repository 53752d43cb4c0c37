#pragma once

#include <stddef.h>

/* What NVML, the library of the driver, tells of a GPU. It belongs to the driver, not to the
 * toolkit, and is looked for where the program runs. Everything is local. */
#define MD_NVML_LIBRARY "libnvidia-ml.so.1"

typedef struct md_nvml md_nvml;

/* Starts the library of this name or path for the GPU with this UUID; NULL with a reason where it
 * is not there or does not know the GPU. */
md_nvml *md_nvml_open(const char *library, const unsigned char uuid[16], char *reason,
                      size_t bytes);
/* NULL: there is nothing to end. */
void md_nvml_close(md_nvml *n);

/* Joules of the GPU since its driver was loaded; NaN: not told. */
double md_nvml_joules(const md_nvml *n);

/* Why a GPU runs below the clock that it was asked for: bits of md_nvml_state.slowed. A cap on
 * power is how many GPUs run under full load; the others are faults of cooling or supply. */
enum { MD_NVML_POWER_CAP = 0x4, MD_NVML_HEAT = 0x20 | 0x40, MD_NVML_SUPPLY = 0x80 };

/* At the moment; NaN, of `slowed` 0: not told. */
typedef struct md_nvml_state {
  double clock_mhz, memory_clock_mhz; /* of the multiprocessors, of the memory */
  double power_w, temperature_c;
  unsigned long long slowed;
} md_nvml_state;
void md_nvml_read(const md_nvml *n, md_nvml_state *now);
