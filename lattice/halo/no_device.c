/* The transports of device fields in a build without CUDA. */
#include "lattice/halo/transport.h"

#define WITHOUT_CUDA "this build has no CUDA; configure with -DMINIDIRAC_CUDA=ON (needs nvcc)"

const md_transport md_transport_staged = {
    .name = "staged", .needs = "CUDA GPU", .unavailable = WITHOUT_CUDA, .spaces = 1u << MD_DEVICE};
