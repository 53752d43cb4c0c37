#ifndef MD_BENCH_LINKS_H
#define MD_BENCH_LINKS_H

#include "links/action_links.h"

/* Links that a benchmark makes for itself: the same for every rank grid and thread count. */
typedef struct md_bench_links_request {
  const char *command;               /* as messages name it */
  const md_physics_options *physics; /* checked */
  const int *dims, *grid;            /* of MD_DIMS each */
  md_space space;     /* where operators keep their fields, and fat and long links are made */
  md_space sweeps_in; /* where the sweeps are done */
  uint64_t seed;
  double beta;
  long long sweeps; /* of heatbath from unit links; 0: uniform links, far from a thermal spectrum */
  int overrelax;    /* updates behind each sweep */
} md_bench_links_request;

/* On failure there is nothing to destroy; MD_ENVIRONMENT also where the memory does not hold them,
 * and for sweeps on a device that is not there. Collective. */
md_status md_bench_links_make(md_context *context, const md_bench_links_request *request,
                              md_action_links *links);

#endif
