#ifndef MD_DIRAC_BACKEND_H
#define MD_DIRAC_BACKEND_H

#include "base/memory_need.h"
#include "dirac/links/links.h"
#include "lattice/fields/field.h"
#include "lattice/fields/rank_sums.h"
#include "lattice/gauge/gauge.h"

/* Which sites one stencil call assigns. Interior and boundary are disjoint and together all; the
 * backend draws the line where it likes, as long as no interior site reads the halo. */
typedef enum md_range { MD_RANGE_ALL, MD_RANGE_INTERIOR, MD_RANGE_BOUNDARY } md_range;

/* Sums that kernels leave in the backend's space: MD_SUM_SLOTS parts for each right-hand side,
 * sum[rhs * MD_SUM_SLOTS + slot], whole numbers of the units that `units` holds for each right-hand
 * side, so that the order in which they are added does not matter
 * (lattice/fields/cuda/unit_sum.cuh). Kernels add to them, each block to a slot of its own as far
 * as they go; who reads them sets them to zero. */
typedef struct md_partial_sums {
  md_unit_sum *sum;
  const struct sum_units *units;
} md_partial_sums;

/* Optional end of a stencil call: out = a * x + b * (D in) instead of out = D in. x has the shape
 * and parity of out and may be out itself. The last four only for backends that fuse; with `step`
 * out may be MD_SINGLE where the operator and x are 16-bit, see `fuses`; then |out|^2 may be that
 * of the numbers before they are rounded. */
typedef struct md_epilogue {
  const md_field *x; /* NULL: plain assignment, a and b are not read */
  double a, b;
  const double *step; /* one per right-hand side in the backend's space: out += step (a x +
                         b D in) instead; x is then neither NULL nor out. NULL: assignment */
  /* With a step, of MD_DOUBLE or MD_SINGLE: out = step[0][rhs] b D in + step[1][rhs] x +
   * step[2][rhs] before instead, in rows of MD_MAX_RHS; a is not read. Of out's shape, not out.
   * NULL: none. */
  const md_field *before;
  const md_partial_sums *norm2; /* with a step or without x: |out|^2 of this range is added to it.
                                   NULL: not summed */
  bool backwards;               /* a hint: take the sites from the last to the first */
} md_epilogue;

/* A way to apply Deo and Doe: a constant table of functions in a file of its own and one line in
 * backends.c. State is made by load and passed to every call; there are no globals. */
typedef struct md_backend {
  const char *name;
  const char *needs;       /* for the table: "any CPU", "CUDA GPU", ... */
  const char *unavailable; /* NULL, or why this build lacks it and how to get it */
  md_space space;          /* where its fermion fields live */
  unsigned precisions;     /* bit 1u << md_precision */
  unsigned reconstructs;   /* bit 1u << md_reconstruct */
  unsigned packings;       /* bit 1u << md_packing */
  unsigned actions;        /* bit 1u << md_action */
  int speed;               /* --backend auto takes the highest that is available and fits */

  /* MD_INPUT with the reason for a request that the flags above allow but the backend cannot
   * serve (a packing and a right-hand-side count that do not go together). May be NULL. */
  md_status (*check)(md_context *context, const md_backend_request *request);
  /* Makes the backend's copy of the links from what dirac/links/ folds; links are not kept.
   * Local; *state is NULL on failure. In a dry run (base/memory_need.h) links and tables of the
   * geometry have no data. */
  md_status (*load)(md_context *context, const md_links *links, const md_backend_request *request,
                    void **state);
  void (*unload)(void *state);
  /* Assigns the sites of `range` of out (parity p = out->parity) from in (parity 1-p, halo filled
   * unless range is INTERIOR). out and in never alias; in and the other sites of out stay
   * untouched. Local; no MPI. On a device: queued on
   * context->queue. */
  md_status (*hop)(md_context *context, void *state, md_field *out, const md_field *in,
                   md_range range, const md_epilogue *epilogue);
  /* Whether hop of all sites waits itself for a halo that context->arrivals tells of. NULL: no. */
  bool (*awaits)(const void *state);
  /* Whether hop serves epilogue->step into fields of precision `out`, and epilogue->norm2. NULL:
   * no. */
  bool (*fuses)(const void *state, md_precision out);
  /* For md_halo_request: from how many bytes on the copy engines should carry halos; 0: no wish. */
  size_t copied_bytes;
  /* Bytes of stored link data that one hop reads per output site. */
  double (*link_bytes)(const md_backend_request *request);
} md_backend;

/* The table: NULL-terminated. Every name is there in every build. */
const md_backend *const *md_backends(void);
/* By name, "auto" for the fastest that is in this build, runs on this machine (a GPU on every rank)
 * and serves the request. MD_INPUT for an unknown name or an impossible request, MD_ENVIRONMENT
 * with how to build it when it is not in this build. Collective. */
md_status md_backend_find(md_context *context, const char *name, const md_backend_request *request,
                          const md_backend **backend);

/* The names of the table as words of a choice behind `first`: "auto|cpu_ref|...". Returns text. */
enum { MD_BACKEND_WORDS_BYTES = 256 };
const char *md_backend_words(const char *first, char text[MD_BACKEND_WORDS_BYTES]);

#endif
