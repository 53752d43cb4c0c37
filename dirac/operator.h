#pragma once

#include "dirac/request.h"
#include "lattice/fields/field.h"
#include "lattice/gauge/gauge.h"
#include "lattice/halo/halo.h"

MD_C_BEGIN

struct md_backend;      /* dirac/backend.h */
struct md_device_peers; /* base/device_peers.h */
struct md_hop_end;      /* dirac/backend.h */
struct md_hop_step;     /* dirac/backend.h */

/* The Dirac operator: a backend loaded with a gauge field, and the halo transport. Members are
 * there to be read. */
typedef struct md_dirac {
  const struct md_backend *backend;
  md_backend_request request;
  const md_geometry *geometry;
  void *state;
  md_halo *halo;
  struct md_device_peers *peers; /* memory for sums over ranks on the device, see
                             lattice/fields/rank_sums.h; NULL: one rank, a host backend, or
                             GPUs that do not share memory, whose sums go through the host */
  bool overlap; /* interior while the halo travels; false: halo first. Same bits either way */
  md_field_shape shape;       /* of the fermion fields that it works on */
  double norm;                /* bound on |D|, or on |H| */
  double link_error;          /* md_links.unitary_error of the links that it was made with */
  const char *packing_reason; /* why the packing of the request, in words */
  bool fuses[MD_PRECISIONS];  /* see md_dirac_fuses */
  double load_s;              /* time that the backend took to make its copy */
  int64_t hops;               /* stencil calls so far, for flop counts */
} md_dirac;

/* Finds the backend by its name ("auto": the fastest that is in this build, runs on this machine
 * and serves the request) and loads it; dirac->request is that of md_backend_choose. gauge points
 * to the link fields of the request's action, one behind the other, of one geometry that is as deep
 * as the action's hops and outlives the operator, halos exchanged; they are not kept. MD_INPUT:
 * unknown name, or a request that it does not serve; MD_ENVIRONMENT: not in this build, no GPU, no
 * memory. Collective. */
md_status md_dirac_create(md_context *context, const md_gauge *gauge, const char *backend,
                          const md_backend_request *request, md_dirac *dirac);
/* The same with the transport of its halos; `how` NULL: the best one. */
md_status md_dirac_create_over(md_context *context, const md_gauge *gauge, const char *backend,
                               const md_backend_request *request, const md_halo_request *how,
                               md_dirac *dirac);
/* The operator whose answers count beside one that iterates by `request`: MD_DOUBLE with whole
 * links, with four spins of the backend that the named one knows as faster, else of the same
 * backend and packing where it serves that, else of the backend without packing, else of the
 * fastest. Over the transport of `how` where that serves the backend's space, else over the best
 * one. Collective. */
md_status md_dirac_create_exact(md_context *context, const md_gauge *gauge, const char *backend,
                                const md_backend_request *request, const md_halo_request *how,
                                md_dirac *dirac);
void md_dirac_destroy(md_dirac *dirac);

/* A fermion field of the operator's shape, zeroed. Local. */
md_status md_dirac_field(md_context *context, const md_dirac *dirac, int parity, md_field *field);

/* out = D in (Deo when out is even, Doe when odd), of fields made by md_dirac_field; with an end
 * out = a x + b D in, NULL: none. Only
 * this function communicates: halo begin -> interior -> halo end -> boundary. in's halo is
 * overwritten, its sites are not. Over several ranks a failure of one is deferred (md_defer): the
 * next global sum or agreement returns it on all. Collective. */
md_status md_dirac_hop(md_context *context, md_dirac *dirac, md_field *out, md_field *in,
                       const struct md_hop_end *end);
/* The same with the step of a solver, which out's precision must allow. Collective. */
md_status md_dirac_hop_step(md_context *context, md_dirac *dirac, md_field *out, md_field *in,
                            const struct md_hop_end *end, const struct md_hop_step *step);

/* Whether md_dirac_hop_step serves fields `out` of that precision, on every rank. Local. */
bool md_dirac_fuses(const md_dirac *dirac, md_precision out);

/* out = m in + sign D in on both parities, out[p] and in[p] of parity p: M in with sign 1, M^dag in
 * with -1. Collective. */
md_status md_dirac_m(md_context *context, md_dirac *dirac, double mass, double sign,
                     md_field out[MD_PARITIES], md_field in[MD_PARITIES]);
/* out = M^dag M in = (m^2 - D_{p,1-p} D_{1-p,p}) in on one parity; work has the other parity.
 * Collective. */
md_status md_dirac_mdag_m(md_context *context, md_dirac *dirac, double mass, md_field *out,
                          md_field *in, md_field *work);

MD_C_END
