#pragma once

#include "base/precision.h"

/* Instruction sets that inner loops are compiled for, each from the same source (md_every_isa in
 * scripts/cmake defines MD_ISA as the name); which one runs is decided at run time, so that one
 * binary runs anywhere. */
typedef enum md_isa {
  MD_ISA_BASELINE, /* what every CPU of the target has: SSE2 on x86-64 */
  MD_ISA_AVX2,     /* with FMA and F16C */
  MD_ISA_AVX512,   /* F, BW, CD, DQ, VL */
  MD_ISAS
} md_isa;

/* True when this build and this CPU have it. */
bool md_isa_runs(md_isa isa);
/* The last in the list that runs. */
md_isa md_isa_best(void);
/* The family of a CPU of this vendor, for settings that were measured on one: of "AuthenticAMD" 23
 * is Zen to Zen 2, 25 Zen 3 and 4, 26 Zen 5; of "GenuineIntel" 6 is every Xeon so far. 0 of a CPU
 * of any other vendor. */
int md_cpu_family(const char *vendor);
/* Bytes of the cache of level 2 or 3 that CPU 0 has or shares, as Linux tells; where it does not,
 * 1 and 32 MiB. */
int64_t md_cache_bytes(int level);

/* A table of what NAME_baseline, NAME_avx2, NAME_avx512 are, indexed by md_isa. */
#if defined(__x86_64__)
#define MD_EVERY_ISA(name)                                                                         \
  {                                                                                                \
    [MD_ISA_BASELINE] = name##_baseline, [MD_ISA_AVX2] = name##_avx2,                              \
    [MD_ISA_AVX512] = name##_avx512                                                                \
  }
#define MD_DECLARE_EVERY_ISA(type, name) extern type name##_baseline, name##_avx2, name##_avx512
#else
#define MD_EVERY_ISA(name)                                                                         \
  { [MD_ISA_BASELINE] = name##_baseline }
#define MD_DECLARE_EVERY_ISA(type, name) extern type name##_baseline
#endif

/* The same of NAME_double_baseline and on, indexed by md_precision first. */
#define MD_EVERY_PRECISION(name)                                                                   \
  {                                                                                                \
    [MD_DOUBLE] = MD_EVERY_ISA(name##_double), [MD_SINGLE] = MD_EVERY_ISA(name##_single),          \
    [MD_HALF] = MD_EVERY_ISA(name##_half), [MD_BF16] = MD_EVERY_ISA(name##_bf16),                  \
    [MD_FIXED] = MD_EVERY_ISA(name##_fixed)                                                        \
  }
#define MD_DECLARE_EVERY_PRECISION(type, name)                                                     \
  MD_DECLARE_EVERY_ISA(type, name##_double);                                                       \
  MD_DECLARE_EVERY_ISA(type, name##_single);                                                       \
  MD_DECLARE_EVERY_ISA(type, name##_half);                                                         \
  MD_DECLARE_EVERY_ISA(type, name##_bf16);                                                         \
  MD_DECLARE_EVERY_ISA(type, name##_fixed)

/* For names made of others, as name_isa in a file that is compiled for each. */
#define MD_JOIN2(a, b) a##b
#define MD_JOIN(a, b) MD_JOIN2(a, b)
