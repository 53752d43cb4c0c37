#pragma once

#include "base/memory_need.h"
#include "base/tune.h"
#include "dirac/links/links.h"
#include "lattice/fields/field.h"
#include "lattice/fields/rank_sums.h"
#include "lattice/gauge/gauge.h"
#include "lattice/halo/arrivals.h"

/* Which sites one stencil call assigns. Interior and boundary are disjoint and together all; the
 * backend draws the line where it likes, as long as no interior site reads the halo. */
typedef enum md_range {
  MD_RANGE_ALL,
  MD_RANGE_INTERIOR,
  MD_RANGE_BOUNDARY,
  /* Where a backend `halves` the boundary along t, the only dimension that is split: what reads the
   * zone ahead, and what reads that behind. */
  MD_RANGE_AHEAD,
  MD_RANGE_BEHIND
} md_range;

/* The plain end of a hop, which every backend serves: out = a x + b (D in) instead of out = D in.
 */
typedef struct md_hop_end {
  const md_field *x; /* of the shape and parity of out, and may be out itself */
  double a, b;
} md_hop_end;

/* The fused step of a solver, for backends that `fuses` allows it to, but for what
 * those have that `turn` and `multiply`. All members may be NULL. */
typedef struct md_hop_step {
  /* One for each right-hand side, in the backend's space: out += by (a x + b D in) instead of the
   * plain end, which must be there with an x that is not out. out may be MD_SINGLE where the
   * operator and x are 16-bit, see `fuses`. NULL: the plain end, or D in. */
  const double *by;
  /* With `by` and of MD_DOUBLE or MD_SINGLE: out = by[0][rhs] b D in + by[1][rhs] x + by[2][rhs]
   * before instead, in rows of MD_MAX_RHS; a is not read. Of out's shape, not out. */
  const md_field *before;
  /* With `by` or without an end, or with a matrix: |out|^2 of the range is added to it; in 16 bits
   * that may be of the numbers before they are rounded. */
  const md_partial_sums *norm2;
  bool backwards; /* a hint: take the sites from the last to the first */
  bool adjoint;   /* H^dag in place of H: of four spins, for backends that `turn` */
  /* A matrix of the fifth dimension (dirac/wilson/wilson.h), for backends that `multiply`, and not
   * a `dense` one: of the end's x, where there is no end of D in; its transpose with `adjoint`. */
  const struct md_wall_matrix *matrix;
} md_hop_step;

/* One call of md_backend.hop, with all that it needs. */
typedef struct md_hop_call {
  md_field *out;      /* of parity p */
  const md_field *in; /* of parity 1-p, never out; its halo is filled unless range is INTERIOR */
  md_range range;
  const md_hop_end *end;   /* NULL: out = D in */
  const md_hop_step *step; /* NULL: none */
  /* The rest is read on a device alone. */
  void *queue; /* stream that the kernel is queued on; NULL: that of all work, see base/device.h */
  int spares; /* multiprocessors that other kernels need meanwhile: one that fills the rest with its
                 blocks leaves so many */
  bool follows; /* the kernel queued last has waited for all before it: one that does not read its
                   results need not wait */
  /* Where the halo of `in`, which is not filled, arrives, for a hop of all sites that waits for it
   * itself; only where the backend `awaits`. For half of the boundary, where it has arrived. NULL:
   * the halo is filled. */
  const md_halo_arrivals *arrivals;
} md_hop_call;

/* The end and the step of a call, neutral ones where it has none. */
static inline md_hop_end md_hop_end_of(const md_hop_call *call) {
  const md_hop_end none = {NULL, 0.0, 1.0};
  return call->end ? *call->end : none;
}
static inline md_hop_step md_hop_step_of(const md_hop_call *call) {
  const md_hop_step none = {NULL, NULL, NULL, false, false, NULL};
  return call->step ? *call->step : none;
}

/* The ways that a backend has to launch the hops of what it loaded, which differ in speed alone and
 * never in bits; after load the first is taken. Local. */
typedef struct md_launch_shapes {
  int (*count)(const void *state);
  void (*name)(const void *state, int shape, char name[MD_TUNE_NAME_BYTES]);
  void (*take)(void *state, int shape);
} md_launch_shapes;

/* A way to apply Deo and Doe: a constant table of functions in a file of its own and one line in
 * backends.c. State is made by load and passed to every call; there are no globals. */
typedef struct md_backend {
  const char *name;
  const char *unavailable; /* NULL, or why this build lacks it and how to get it */
  md_space space;          /* where its fermion fields live */
  unsigned precisions;     /* bit 1u << md_precision */
  unsigned reconstructs;   /* bit 1u << md_reconstruct */
  unsigned packings;       /* bit 1u << md_packing */
  unsigned actions;        /* bit 1u << md_action */
  int speed;               /* --backend auto takes the highest that is available and fits; not read
                              where `speed_of` is there */
  /* The same for one request, whose packing is one of the backend's, and what speaks for or against
   * it in words. n_rhs: right-hand sides that were asked for, before padding. local: extents of the
   * rank's lattice; NULL: not known yet. NULL: it is `speed` whatever the request. */
  int (*speed_of)(const md_context *context, const md_backend_request *request, int n_rhs,
                  const int *local, const char **reason);
  /* Why that packing is the one among its own, for a backend that was named. NULL: it has one. */
  const char *(*packing_reason)(md_packing packing);
  /* How many right-hand sides fields should have for a request that pads; local as above. NULL:
   * those it asks for. */
  int (*columns)(const md_context *context, const md_backend_request *request, const int *local);

  /* MD_INPUT with the reason for a request that the flags above allow but the backend cannot
   * serve (a packing and a right-hand-side count that do not go together). May be NULL. */
  md_status (*check)(md_context *context, const md_backend_request *request);
  /* Makes the backend's copy of the links from what dirac/links/ folds; links are not kept.
   * Local; *state is NULL on failure. In a dry run (base/memory_need.h) links and tables of the
   * geometry have no data. */
  md_status (*load)(md_context *context, const md_links *links, const md_backend_request *request,
                    void **state);
  void (*unload)(void *state);
  /* Assigns the sites of the call's range; in and the other sites of out stay untouched. On a
   * device the work is queued. Local; no MPI. */
  md_status (*hop)(md_context *context, void *state, const md_hop_call *call);
  /* Whether hop of all sites waits itself for a halo that `arrivals` of the call tells of. NULL:
   * no. */
  bool (*awaits)(const void *state);
  /* Whether hop serves either half of the boundary alone, by `arrivals` of the call. NULL: no. */
  bool (*halves)(const void *state);
  /* Seconds that hop of the interior takes, about, where it leaves the multiprocessors that a call
   * `spares`; 0, and NULL: it does not. */
  double (*interior_s)(const void *state, const md_device_facts *gpu);
  /* Whether hop serves steps into fields of precision `out`, of four spins where there is a matrix
   * of x. NULL: no. */
  bool (*fuses)(const void *state, md_precision out);
  bool turns; /* hop serves steps with `adjoint` alone, whatever `fuses` says */
  /* Whether those may have a matrix too, with an x that is not out. NULL: no. */
  bool (*multiplies)(const void *state);
  /* Whether a solve is faster with one right-hand side after the other than with all of a request
   * at once. NULL: no. */
  bool (*alone)(const md_backend_request *request);
  const md_launch_shapes *shapes; /* on a device; NULL: there is one */
  /* For md_halo_request: from how many bytes on the copy engines should carry halos; 0: no wish. */
  size_t copied_bytes;
  bool rounds_half_spinors; /* as there, of four spins */
  /* Name of the backend that is faster in double with four spins; NULL: none is known. */
  const char *spins_in_double;
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

/* The same, and puts into the request what it left open: packing auto becomes the fastest one of
 * the backend, and a request that pads gets the number of right-hand sides that fills its tiles.
 * The choice follows a rule: the same request on the same lattice and machine gets the same
 * operator. local: extents of the rank's lattice; NULL: not known yet, for the space of its fields
 * alone. *reason, in words: why this packing. Collective. */
md_status md_backend_choose(md_context *context, const char *name, const int *local,
                            md_backend_request *request, const md_backend **backend,
                            const char **reason);

/* The names of the table as words of a choice behind `first`: "auto|cpu_ref|...". Returns text. */
enum { MD_BACKEND_WORDS_BYTES = 256 };
const char *md_backend_words(const char *first, char text[MD_BACKEND_WORDS_BYTES]);
