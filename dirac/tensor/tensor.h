#ifndef MD_DIRAC_TENSOR_TENSOR_H
#define MD_DIRAC_TENSOR_TENSOR_H

#include "dirac/tensor/packing.h"

/* What `tensor` (GPU) and `tensor_emu` (host) share. */
#ifdef __cplusplus
extern "C" {
#endif

/* Which packing serves which precision and number of right-hand sides; MD_INPUT with the reason
 * else. The check callback of both backends. Local. */
md_status md_tensor_check(md_context *context, const md_backend_request *request);

/* Bytes of link data that one hop reads per output site: eight whole matrices. */
double md_tensor_link_bytes(const md_backend_request *request);

/* The eight matrices of an output site, [direction][row][column][re, im]: forward eta U_mu(x),
 * backward -eta U_mu(x-mu)^dag, boundary sign included, the factor 1/2 not. */
void md_tensor_fold(const md_gauge *gauge, bool antiperiodic, int parity, int64_t site,
                    double folded[MD_DIRECTIONS][MD_LINK_REALS]);

/* True when a neighbour of the site lies in the halo: the boundary range of both backends. */
bool md_tensor_reads_halo(const md_geometry *geometry, int parity, int64_t site);

#ifdef __cplusplus
}
#endif

#endif
