/* The transport of NCCL in a build without it. */
#include "lattice/halo/transport.h"

const md_transport md_transport_nccl = {
    .name = "nccl",
    .needs = "NCCL, a GPU for each rank",
    .unavailable = "this build has no NCCL; install libnccl-dev (nccl.h, libnccl.so) and configure "
                   "with -DMINIDIRAC_CUDA=ON, -DNCCL_ROOT=FOLDER where it lies elsewhere",
    .spaces = 1u << MD_DEVICE};
