#include "dirac/backend.h"

const md_backend md_backend_cuda = {
    .name = "cuda",
    .needs = "CUDA GPU",
    .unavailable = "this build has no CUDA; configure with -DMINIDIRAC_CUDA=ON (needs nvcc)"};
