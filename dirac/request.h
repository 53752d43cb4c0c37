#ifndef MD_DIRAC_REQUEST_H
#define MD_DIRAC_REQUEST_H

#include "base/precision.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is asked of an operator: how a backend stores links and fermions and how it multiplies. */

/* How links are stored in a backend's own copy. */
typedef enum md_reconstruct {
  MD_RECONSTRUCT_18,
  MD_RECONSTRUCT_12,
  MD_RECONSTRUCT_8
} md_reconstruct;
/* How products are fed to 16x16 tiles; MD_PACKING_NONE for backends without tiles. */
typedef enum md_packing {
  MD_PACKING_NONE,
  MD_PACKING_SINGLE,
  MD_PACKING_DIAGONAL,
  MD_PACKING_BLOCK8,
  MD_PACKING_STACKED
} md_packing;

typedef struct md_backend_request {
  md_precision precision; /* of links and fermions in storage */
  md_reconstruct reconstruct;
  md_packing packing;
  int n_rhs;
  bool antiperiodic; /* sign -1 on t-links that leave the last time slice */
} md_backend_request;

const char *md_reconstruct_name(md_reconstruct reconstruct); /* "18", "12", "8" */
const char *md_packing_name(md_packing packing);             /* "none", "single", ... */
int md_reconstruct_of(const char *name);                     /* -1: unknown */
int md_packing_of(const char *name);

#ifdef __cplusplus
}
#endif

#endif
