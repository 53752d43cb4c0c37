#include "base/instruction_set.h"

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

const char *md_isa_name(md_isa isa) {
  static const char *const names[MD_ISAS] = {"baseline", "avx2", "avx512"};
  return names[isa];
}

int md_amd_family(void) {
#if defined(__x86_64__)
  unsigned a, b, c, d;
  char vendor[12];
  if (!__get_cpuid(0, &a, &b, &c, &d)) return 0;
  memcpy(vendor, &b, 4);
  memcpy(vendor + 4, &d, 4);
  memcpy(vendor + 8, &c, 4);
  if (memcmp(vendor, "AuthenticAMD", sizeof vendor) != 0 || !__get_cpuid(1, &a, &b, &c, &d))
    return 0;
  return (int)((a >> 8 & 15) + (a >> 20 & 255)); /* base and, as the base is 15, extended */
#else
  return 0;
#endif
}
