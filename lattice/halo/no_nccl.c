/* The transports of NCCL in a build without it. */
#include "lattice/halo/transport.h"

static const char without_nccl[] =
    "this build has no NCCL; install libnccl-dev (nccl.h, libnccl.so) and configure with "
    "-DMINIDIRAC_CUDA=ON, -DNCCL_ROOT=FOLDER where it lies elsewhere";

const md_transport md_transport_nccl = {.name = "nccl",
                                        .needs = "NCCL, a GPU for each rank",
                                        .unavailable = without_nccl,
                                        .spaces = 1u << MD_DEVICE};
const md_transport md_transport_mixed = {.name = "mixed",
                                         .needs = "peer within nodes, NCCL between them",
                                         .unavailable = without_nccl,
                                         .spaces = 1u << MD_DEVICE};
