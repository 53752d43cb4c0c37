/* The stencil of cpu_simd for one storage type and number of link fields; included by a short .c
 * with SUFFIX   double, single, half, bf16, fixed  STORED  the stored type ARITH    double or float
 * SCALED  1 when fermion sites carry a scale LINK_UNIT  what stored links are multiples of, where
 * that is not 1 FIELDS   1: links in SU(3), of 18 or 12 reals  2: of any matrices; LINK_UNIT is
 * then in the call and compiled once for each instruction set (MD_ISA names it). Every site goes
 * through the same instructions, whatever the range, thread or rank that it falls to. */

#include "dirac/cpu_simd/cpu_simd.h"
#include "dirac/cpu_simd/lanes.h"

#define PASTE2(a, b) a##_##b
#define PASTE(a, b) PASTE2(a, b)
#define VECTOR PASTE(md_lanes, ARITH)
#define LOAD PASTE(md_load, SUFFIX)
#define STORE PASTE(md_store, SUFFIX)
#define STREAM PASTE(md_stream, SUFFIX)
#define PERMUTE PASTE(md_permute, ARITH)
#define PICK PASTE(md_pick, ARITH)
#define NEGATE PASTE(md_negate, ARITH)
#define SCALE_OF PASTE(md_scale_of, SUFFIX)
enum { LANES = PASTE(MD_LANES_OF, ARITH), TERMS = MD_DIRECTIONS * FIELDS };

#include "dirac/cpu_simd/hop_many.inc.h"
#include "dirac/cpu_simd/hop_one.inc.h"

#if FIELDS == 1
const md_simd_kernels PASTE(PASTE(md_simd_kernels, SUFFIX),
                            MD_ISA) = {LANES, {one_18, one_12}, {many_18, many_12}};
#else
const md_simd_kernels PASTE(PASTE(md_simd_two, SUFFIX),
                            MD_ISA) = {LANES, {one_18, NULL}, {many_18, NULL}};
#endif
