#ifndef MD_DIRAC_TENSOR_TENSOR_H
#define MD_DIRAC_TENSOR_TENSOR_H

#include "dirac/tensor/packing.h"

/* What `tensor` (GPU) and `tensor_emu` (host) share. */
#ifdef __cplusplus
extern "C" {
#endif

/* Whether the packing of a request serves its precision and number of right-hand sides; MD_INPUT
 * with the reason where it does not. Both backends have it as their check callback. Local. */
md_status md_tensor_check(md_context *context, const md_backend_request *request);

/* Bytes of link data that one hop reads per output site: a whole matrix for each term of the
 * action, that is, for each of the neighbours that D couples a site to. */
double md_tensor_link_bytes(const md_backend_request *request);

/* What their entries in the table have in common. */
#define MD_TENSOR_BACKEND                                                                          \
  .precisions = 1u << MD_DOUBLE | 1u << MD_HALF | 1u << MD_BF16,                                   \
  .reconstructs = 1u << MD_RECONSTRUCT_18,                                                         \
  .packings = 1u << MD_PACKING_SINGLE | 1u << MD_PACKING_DIAGONAL | 1u << MD_PACKING_BLOCK8 |      \
              1u << MD_PACKING_STACKED,                                                            \
  .actions = MD_ALL_ACTIONS, .check = md_tensor_check, .link_bytes = md_tensor_link_bytes

#ifdef __cplusplus
}
#endif

#endif
