#pragma once

#include "base/context.h"

/* Device memory of each rank that the GPUs of the other ranks of its node read and write
 * themselves (CUDA interprocess handles over NVLink or PCIe; ranks that share a GPU included). */
#ifdef __cplusplus
extern "C" {
#endif

/* A kernel that waited for another rank in vain says so here, in page-locked memory. */
typedef struct md_peer_timeout {
  int rank;       /* whom it waited for; -1: no kernel gave up */
  long long tick; /* the value that its flag did not reach */
} md_peer_timeout;

typedef struct md_device_peers {
  int ranks;                /* of the run */
  size_t bytes;             /* of each rank's memory */
  void *mine;               /* this rank's, zeroed, 256-byte aligned */
  void **of;                /* of[rank]: the memory of that rank as this GPU addresses it; NULL of
                               another node's rank */
  void **of_on_device;      /* the same array in device memory */
  md_peer_timeout *timeout; /* written by kernels */
  md_context *context;
} md_device_peers;

/* node[rank]: a number that ranks of one node share. For tests node_size of context->wishes
 * makes nodes of so many ranks, one behind the other, of any host. Collective. */
md_status md_device_nodes(md_context *context, int *node);

/* Allocates `bytes` on every rank and maps all of them. MD_ENVIRONMENT on all ranks, with the pair
 * of ranks and the reason, where ranks lie on different hosts or one GPU cannot address another's
 * memory. *peers is NULL on failure. Collective. */
md_status md_device_peers_create(md_context *context, size_t bytes, const char *what,
                                 md_device_peers **peers);
/* The same, but memory of ranks on other nodes is left out instead of refused. */
md_status md_device_peers_create_within(md_context *context, size_t bytes, const char *what,
                                        md_device_peers **peers);
/* After all ranks have finished with the memory, which this call waits for. NULL is fine.
 * Collective. */
void md_device_peers_destroy(md_device_peers *peers);
/* MD_ENVIRONMENT with who waited for whom once a kernel has given up. Local. */
md_status md_device_peers_check(md_context *context, const md_device_peers *peers);

#ifdef __cplusplus
}
#endif
