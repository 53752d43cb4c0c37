#include "base/energy.h"
#include "base/nvml.h"
#include "base/waiting.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char powercap[] = "/sys/class/powercap";

/* A number of microjoules; negative where it cannot be read. */
static double read_file(const char *folder, const char *domain, const char *name) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%.3000s/%.128s/%s", folder, domain, name);
  return 1e-6 * (double)md_number_in(path, NULL);
}

/* Whole processors only, "intel-rapl:0" that is named package-0: those below, "intel-rapl:0:1", are
 * parts of them, and others, "intel-rapl-mmio:0" or one named psys, count the same once more. */
static bool is_processor(const char *folder, const char *domain) {
  static const char kind[] = "intel-rapl:";
  char path[PATH_MAX], name[16];
  if (strncmp(domain, kind, sizeof kind - 1) != 0) return false;
  if (domain[sizeof kind - 1 + strspn(domain + sizeof kind - 1, "0123456789")]) return false;
  snprintf(path, sizeof path, "%.3000s/%.128s/name", folder, domain);
  md_line_in(path, name, sizeof name);
  return !*name || strncmp(name, "package", 7) == 0;
}

bool md_energy_processors(const char *root, md_energy *now) {
  char name[PATH_MAX];
  snprintf(name, sizeof name, "%.2900s%s", root, powercap);
  DIR *folder = opendir(name);
  bool told = true;
  for (const struct dirent *entry; folder && told && (entry = readdir(folder));) {
    if (!is_processor(name, entry->d_name) || now->domains == MD_ENERGY_DOMAINS) continue;
    const double joules = read_file(name, entry->d_name, "energy_uj");
    if (joules < 0.0)
      snprintf(now->cpu_reason, sizeof now->cpu_reason, "%s/%.64s/energy_uj cannot be read: %s",
               powercap, entry->d_name, strerror(errno));
    told = joules >= 0.0;
    now->joules[now->domains] = joules;
    now->range[now->domains++] = read_file(name, entry->d_name, "max_energy_range_uj");
  }
  if (folder) closedir(folder);
  if (told && now->domains == 0)
    snprintf(now->cpu_reason, sizeof now->cpu_reason, "%s has no RAPL counters", powercap);
  return told && now->domains > 0;
}

bool md_counts_gpu(md_context *context) {
  const md_device_facts *mine = &context->gpu;
  md_device_facts *all = calloc((size_t)context->ranks, sizeof *all);
  bool first = mine->open;
  if (md_agree(context, all ? MD_OK : md_fail_memory(context, sizeof *all, "GPUs")) == MD_OK) {
    md_gather_all(context, mine, sizeof *mine, all);
    for (int r = 0; r < context->rank && first; r++)
      first = !all[r].open || memcmp(all[r].uuid, mine->uuid, sizeof mine->uuid) != 0;
  }
  free(all);
  return first;
}

/* Of the GPU with this UUID; false with a reason where NVML is not there or does not tell. */
static bool read_gpu(const unsigned char uuid[16], double *joules, char *reason, size_t bytes) {
  md_nvml *n = md_nvml_open(MD_NVML_LIBRARY, uuid, reason, bytes);
  const double told = n ? md_nvml_joules(n) : NAN;
  if (n && isnan(told)) snprintf(reason, bytes, "NVML does not tell the energy of this GPU");
  md_nvml_close(n);
  *joules = isnan(told) ? 0.0 : told;
  return !isnan(told);
}

void md_energy_read(md_context *context, md_energy *now) {
  const md_device_facts *gpu = &context->gpu;
  *now = (md_energy){.domains = 0};
  const bool counted = md_counts_gpu(context);
  const bool cpu_told = context->local_rank != 0 || md_energy_processors("", now);
  const bool gpu_told =
      !counted || read_gpu(gpu->uuid, &now->gpu_joules, now->gpu_reason, sizeof now->gpu_reason);
  long long tally[3] = {!cpu_told, !gpu_told, gpu->open};
  md_sum_integers(context, tally, 3);
  if (tally[2] == 0) snprintf(now->gpu_reason, sizeof now->gpu_reason, "no rank opened a GPU");
  now->has_cpu = tally[0] == 0;
  now->has_gpu = tally[1] == 0 && tally[2] > 0;
}

double md_energy_processors_between(const md_energy *before, const md_energy *after) {
  double joules = 0.0;
  for (int d = 0; d < after->domains && d < before->domains; d++) {
    const double step = after->joules[d] - before->joules[d];
    joules += step < 0.0 ? step + fmax(after->range[d], 0.0) : step;
  }
  return joules;
}

void md_energy_between(md_context *context, const md_energy *before, const md_energy *after,
                       double *cpu, double *gpu) {
  const double mine[2] = {md_energy_processors_between(before, after),
                          after->gpu_joules - before->gpu_joules};
  long long millijoules[2];
  for (int k = 0; k < 2; k++) millijoules[k] = llround(1e3 * mine[k]);
  md_sum_integers(context, millijoules, 2);
  if (cpu) *cpu = before->has_cpu && after->has_cpu ? 1e-3 * (double)millijoules[0] : NAN;
  if (gpu) *gpu = before->has_gpu && after->has_gpu ? 1e-3 * (double)millijoules[1] : NAN;
}
