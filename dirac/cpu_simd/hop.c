/* The stencil of cpu_simd, compiled for each storage type (SUFFIX; STORED; ARITH, double or float;
 * SCALED where fermion sites carry a scale; LINK_UNIT, what stored links are multiples of, where
 * that is not 1), for links in SU(3), of 18 or 12 reals, as FIELDS 1, for
 * any matrices, whose LINK_UNIT is in the call, as FIELDS 2, and once for each instruction set
 * (MD_ISA names it). Every site goes through the same instructions, whatever the range, thread or
 * rank that it falls to. */
#include "dirac/cpu_simd/cpu_simd.h"
#include "lattice/fields/stored_lanes.inc.h"

enum { TERMS = MD_DIRECTIONS * FIELDS };

#include "dirac/cpu_simd/hop_many.inc.h"
#include "dirac/cpu_simd/hop_one.inc.h"
#if FIELDS == 1
#include "dirac/cpu_simd/hop_spins.inc.h"
#endif

/* A copy of a kernel for each number of reals, a constant there. */
#define KERNEL(name, reals)                                                                        \
  static void name##_##reals(const md_simd_call *call, int64_t begin, int64_t end) {               \
    name(call, begin, end, reals);                                                                 \
  }
KERNEL(one, 18)
KERNEL(many, 18)

#define NAMED(name) MD_JOIN(name, MD_JOIN(SUFFIX, MD_JOIN(_, MD_ISA)))
#if FIELDS == 1
KERNEL(one, 12)
KERNEL(many, 12)
KERNEL(spins_one, 18)
KERNEL(spins_one, 12)
KERNEL(spins_many, 18)
KERNEL(spins_many, 12)
const md_simd_kernels NAMED(md_simd_kernels_) = {
    LANES,
    {one_18, one_12},
    {many_18, many_12},
    {{spins_one_18, spins_one_12}, {spins_many_18, spins_many_12}}};
#else
const md_simd_kernels NAMED(md_simd_two_) = {LANES, {one_18, NULL}, {many_18, NULL}, {{NULL}}};
#endif
