#ifndef MD_BENCH_SUITE_CLASSES_H
#define MD_BENCH_SUITE_CLASSES_H

#include "dirac/action.h"
#include "lattice/geometry/conventions.h"

/* The problems of bench suite, fixed for good: a figure of merit is comparable within one class.
 *
 * Links: MD_SUITE_SWEEPS heatbath sweeps at MD_SUITE_BETA from unit links, each link drawn by
 * (seed, sweep, direction, global site). Without overrelaxation a heatbath forgets rounding: two
 * chains that differ by 1e-14 agree again to 1e-15 a few sweeps later, so that the plaquette is the
 * same to 1e-10 on machines whose logarithms differ in the last bit. */
enum { MD_SUITE_SWEEPS = 40, MD_SUITE_SEED = 11 };
#define MD_SUITE_BETA 6.0
#define MD_SUITE_TOLERANCE 1e-10 /* of the true residual */

typedef struct md_suite_class {
  const char *name, *machine;
  int dims[MD_DIMS];
  double mass;
  int gemm_host, gemm_device; /* extent of the square products */
  /* The condensate is Re <b, x> / V of the first right-hand side, by action; NaN: not computed. */
  double plaquette, condensate[MD_ACTIONS];
} md_suite_class;

#define MD_SUITE_CLASS_WORDS "XS|S|M|L|XL"
/* By one of the words. */
const md_suite_class *md_suite_class_of(const char *name);

#endif
