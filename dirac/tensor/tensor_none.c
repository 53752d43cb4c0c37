#include "dirac/tensor/tensor.h"

/* `tensor` in a build without CUDA. */
const md_backend md_backend_tensor = {
    .name = "tensor",
    .needs = "CUDA GPU with Tensor Cores",
    .unavailable = "this build has no CUDA; configure with -DMINIDIRAC_CUDA=ON, or use tensor_emu",
    .space = MD_DEVICE,
    .precisions = 1u << MD_DOUBLE | 1u << MD_HALF | 1u << MD_BF16,
    .reconstructs = 1u << MD_RECONSTRUCT_18,
    .packings = 1u << MD_PACKING_SINGLE | 1u << MD_PACKING_DIAGONAL | 1u << MD_PACKING_BLOCK8 |
                1u << MD_PACKING_STACKED,
    .actions = 1u << MD_ACTION_NAIVE,
    .check = md_tensor_check,
    .link_bytes = md_tensor_link_bytes};
