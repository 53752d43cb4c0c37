/* The transports of device fields in a build without CUDA. */
#include "lattice/halo/transport.h"

#define WITHOUT_CUDA(NAME, NEEDS)                                                                  \
  { .name = NAME, .needs = NEEDS, .spaces = 1u << MD_DEVICE, .unavailable = without_cuda }
static const char without_cuda[] =
    "this build has no CUDA; configure with -DMINIDIRAC_CUDA=ON (needs nvcc)";

const md_transport md_transport_staged = WITHOUT_CUDA("staged", "CUDA GPUs and MPI");
const md_transport md_transport_cuda_aware =
    WITHOUT_CUDA("cuda_aware", "an MPI that takes device memory");
const md_transport md_transport_nccl = WITHOUT_CUDA("nccl", "NCCL, a GPU for each rank");
const md_transport md_transport_mixed =
    WITHOUT_CUDA("mixed", "peer within nodes, NCCL between them");
const md_transport md_transport_peer =
    WITHOUT_CUDA("peer", "GPUs of one node that address each other");
