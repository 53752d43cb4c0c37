#ifndef MD_DIRAC_OPERATOR_H
#define MD_DIRAC_OPERATOR_H

#include "base/device_peers.h"
#include "dirac/backend.h"
#include "lattice/halo/halo.h"

/* The public Dirac operator: a backend loaded with a gauge field, and the halo transport. */
typedef struct md_dirac {
  const md_backend *backend;
  md_backend_request request;
  const md_geometry *geometry;
  void *state;
  md_halo *halo;
  md_device_peers *peers; /* memory for sums over ranks on the device, see
                             lattice/fields/rank_sums.h; NULL: one rank, a host backend, or
                             GPUs that do not share memory, whose sums go through the host */
  bool overlap; /* interior while the halo travels; false: halo first. Same bits either way */
  md_field_shape shape; /* of the fermion fields that it works on */
  double load_s;        /* time that the backend took to make its copy */
  int64_t hops;         /* stencil calls so far, for flop counts */
} md_dirac;

/* Finds the backend and loads it. gauge must have exchanged halos. Collective. */
md_status md_dirac_create(md_context *context, const md_gauge *gauge, const char *backend,
                          const md_backend_request *request, md_dirac *dirac);
/* The same with the transport of its halos; `how` NULL: the best one. */
md_status md_dirac_create_over(md_context *context, const md_gauge *gauge, const char *backend,
                               const md_backend_request *request, const md_halo_request *how,
                               md_dirac *dirac);
/* The operator whose answers count beside one that iterates by `request`: MD_DOUBLE with whole
 * links, of the same backend and packing where it serves that, else of the backend without packing,
 * else of the fastest. Over the transport of `how` where that serves the backend's space, else over
 * the best one. Collective. */
md_status md_dirac_create_exact(md_context *context, const md_gauge *gauge, const char *backend,
                                const md_backend_request *request, const md_halo_request *how,
                                md_dirac *dirac);
void md_dirac_destroy(md_dirac *dirac);

/* A fermion field of the operator's shape, zeroed. Local. */
md_status md_dirac_field(md_context *context, const md_dirac *dirac, int parity, md_field *field);

/* out = D in (Deo when out is even, Doe when odd), or out = a x + b D in with an epilogue. Only
 * this function communicates: halo begin -> interior -> halo end -> boundary. in's halo is
 * overwritten, its sites are not. Over several ranks a failure of one is deferred (md_defer): the
 * next global sum or agreement returns it on all. Collective. */
md_status md_dirac_hop(md_context *context, md_dirac *dirac, md_field *out, md_field *in,
                       const md_epilogue *epilogue);

/* Whether md_dirac_hop serves epilogue->step into fields of precision `out`, and norm2. Local. */
bool md_dirac_fuses(const md_dirac *dirac, md_precision out);

/* out = M in = m in + D in on both parities, out[p] and in[p] of parity p. Collective. */
md_status md_dirac_m(md_context *context, md_dirac *dirac, double mass, md_field out[MD_PARITIES],
                     md_field in[MD_PARITIES]);
/* out = M^dag in: the same with -D. Collective. */
md_status md_dirac_m_dagger(md_context *context, md_dirac *dirac, double mass,
                            md_field out[MD_PARITIES], md_field in[MD_PARITIES]);
/* out = M^dag M in = (m^2 - D_{p,1-p} D_{1-p,p}) in on one parity; work has the other parity.
 * Collective. */
md_status md_dirac_mdag_m(md_context *context, md_dirac *dirac, double mass, md_field *out,
                          md_field *in, md_field *work);

#endif
