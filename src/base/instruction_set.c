#include "base/instruction_set.h"
#include "base/waiting.h"

#include <stdio.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

bool md_isa_runs(md_isa isa) {
  if (isa == MD_ISA_BASELINE) return true;
#if defined(__x86_64__)
  /* Every CPU with AVX2 and FMA converts fp16 (F16C). */
  if (isa == MD_ISA_AVX2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

md_isa md_isa_best(void) {
  md_isa isa = MD_ISAS - 1;
  while (!md_isa_runs(isa)) isa--;
  return isa;
}

int md_cpu_family(const char *vendor) {
#if defined(__x86_64__)
  unsigned a, b, c, d;
  char name[12];
  if (!__get_cpuid(0, &a, &b, &c, &d)) return 0;
  memcpy(name, &b, 4);
  memcpy(name + 4, &d, 4);
  memcpy(name + 8, &c, 4);
  if (strncmp(name, vendor, sizeof name) != 0 || !__get_cpuid(1, &a, &b, &c, &d)) return 0;
  const unsigned base = a >> 8 & 15, extended = a >> 20 & 255;
  return (int)(base < 15 ? base : base + extended);
#else
  (void)vendor;
  return 0;
#endif
}

int64_t md_cache_bytes(int level) {
  char name[64];
  snprintf(name, sizeof name, "/sys/devices/system/cpu/cpu0/cache/index%d/size", level);
  const int64_t kibibytes = md_number_in(name, NULL);
  return (kibibytes > 0 ? kibibytes : level == 2 ? 1 << 10 : 32 << 10) * 1024;
}
