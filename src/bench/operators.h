#ifndef MD_BENCH_OPERATORS_H
#define MD_BENCH_OPERATORS_H

#include "dirac/physics_options.h"

/* The list of operators of a benchmark's --operators: BACKEND, BACKEND:PACKING or
 * BACKEND:PACKING:REALS, where REALS is what a link is stored in. */
enum { MD_BENCH_OPERATORS = 16, MD_BENCH_OPERATOR_BYTES = 256 };

typedef struct md_bench_operators {
  struct {
    char backend[MD_BENCH_OPERATOR_BYTES];
    md_packing packing;
    md_reconstruct reconstruct;
  } of[MD_BENCH_OPERATORS];
  int count;
} md_bench_operators;

/* As md_option.parse, into md_bench_operators. */
md_status md_bench_operators_read(md_context *context, const char *label, const char *text,
                                  void *target);

/* On a GPU where one of the operators keeps its fields there. Collective. */
md_space md_bench_operators_space(md_context *context, const md_bench_operators *operators,
                                  const md_physics_options *physics);

#endif
