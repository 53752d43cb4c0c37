/* The backends of GPUs in a build without CUDA. */
#include "dirac/tensor/tensor.h"

const md_backend md_backend_cuda = {
    .name = "cuda",
    .unavailable = "this build has no CUDA; configure with -DMINIDIRAC_CUDA=ON (needs nvcc)"};

const md_backend md_backend_tensor = {
    .name = "tensor",
    .unavailable = "this build has no CUDA; configure with -DMINIDIRAC_CUDA=ON, or use tensor_emu",
    .space = MD_DEVICE,
    MD_TENSOR_BACKEND};
