#include "base/instruction_set.h"

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
