#pragma once

#include "dirac/physics_options.h"
#include "links/action_links.h"

/* Links of a benchmark: of files, or made for it, then the same for every rank grid and thread
 * count. */
typedef struct md_bench_links_request {
  const char *command;               /* as messages name it */
  const md_physics_options *physics; /* checked; links of its files are read */
  const char *lattice;               /* so are those of this file; NULL: none */
  const int *dims, *grid;            /* of MD_DIMS each */
  md_space space;     /* where operators keep their fields, and fat and long links are made */
  md_space sweeps_in; /* where the sweeps are done */
  uint64_t seed;
  double beta;
  long long sweeps; /* of heatbath from unit links; 0: uniform links, far from a thermal spectrum */
  int overrelax;    /* updates behind each sweep */
  /* Memory is required also for cpu_ref and its fields, for a first case of as many right-hand
   * sides and for about as much as its hop moves, to measure the bandwidth of. 0: what a case needs
   * beyond the links is compared when it begins. */
  int n_rhs;
} md_bench_links_request;

/* On failure there is nothing to destroy; MD_ENVIRONMENT also where the memory does not hold them,
 * and for sweeps on a device that is not there. Collective. */
md_status md_bench_links_make(md_context *context, const md_bench_links_request *request,
                              md_action_links *links);

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
