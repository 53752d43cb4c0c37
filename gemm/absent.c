#include "gemm/small.h"

/* The device kernels of a build without CUDA: every name answers with how to build it. */
static const char REASON[] = "this build has no CUDA; install the CUDA Toolkit (>= 12) and "
                             "configure with MINIDIRAC_CUDA=ON";

#define GEMM(kernel)                                                                               \
  const md_gemm_kernel md_gemm_##kernel = {.name = #kernel,                                        \
                                           .idea = "CUDA kernel",                                  \
                                           .space = MD_GEMM_DEVICE,                                \
                                           .precisions = (1u << MD_GEMM_PRECISIONS) - 1,           \
                                           .unavailable = REASON}
GEMM(k0);
GEMM(k1);
GEMM(k2);
GEMM(k3);
GEMM(k4);
GEMM(k5);
GEMM(k6);
GEMM(k7);
GEMM(wmma_simple);
GEMM(wmma_tiled);
GEMM(wgmma);
GEMM(dmma);
GEMM(cublas);

#define SMALL(work, kernel)                                                                        \
  const md_small_kernel md_##work##_##kernel = {.name = #kernel,                                   \
                                                .idea = "CUDA kernel",                             \
                                                .space = MD_GEMM_DEVICE,                           \
                                                .types = MD_SMALL_BOTH,                            \
                                                .unavailable = REASON}
SMALL(transpose, naive);
SMALL(transpose, tile);
SMALL(transpose, padded);
SMALL(shift, direct);
SMALL(shift, shared);
SMALL(gemv, thread_row);
SMALL(gemv, two_phase);
SMALL(gemv, block_serial);
SMALL(gemv, block_atomic);
SMALL(gemv, warp_shuffle);
SMALL(gemv, cublas);
