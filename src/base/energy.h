#pragma once

#include "base/context.h"

/* Energy of the whole run: of the processors of its hosts by RAPL (Linux, /sys/class/powercap; all
 * that runs on a host counts) and of the GPUs that ranks opened by NVML. */
enum { MD_ENERGY_DOMAINS = 16, MD_ENERGY_REASON = 160 };

typedef struct md_energy {
  int domains; /* processors whose counter this rank reads: one rank of each host reads all */
  double joules[MD_ENERGY_DOMAINS],
      range[MD_ENERGY_DOMAINS]; /* a counter begins anew at its range */
  double gpu_joules;            /* of the GPU that this rank counts */
  /* Equal on all ranks: every host and every GPU told its energy; else why not. */
  bool has_cpu, has_gpu;
  char cpu_reason[MD_ENERGY_REASON], gpu_reason[MD_ENERGY_REASON];
} md_energy;

/* Whether this rank has a GPU open and is the first of those that share it. Collective. */
bool md_counts_gpu(md_context *context);
/* Adds the counters of all processors of this host to `now`, which holds none; false, with
 * cpu_reason, where one cannot be read or there are none. `root` stands before /sys: "" for the
 * system itself. Local. */
bool md_energy_processors(const char *root, md_energy *now);
/* Their joules between two readings less than one range of a counter apart. Local. */
double md_energy_processors_between(const md_energy *before, const md_energy *after);
/* Reads the counters now. Collective. */
void md_energy_read(md_context *context, md_energy *now);
/* Joules between two readings less than one range of a counter apart (minutes), all ranks; NaN
 * where there is none. cpu and gpu may be NULL. Collective. */
void md_energy_between(md_context *context, const md_energy *before, const md_energy *after,
                       double *cpu, double *gpu);
