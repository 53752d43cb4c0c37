#ifndef MD_GEMM_KERNELS_H
#define MD_GEMM_KERNELS_H

/* The kernels behind the table of gemm/kernels.c; a .cu file that defines one includes this, which
 * gives its const object external linkage. */
#include "gemm/gemm.h"
#ifdef __cplusplus
extern "C" {
#endif

extern const md_gemm_kernel md_gemm_naive, md_gemm_cpu_tiled, md_gemm_openblas;

/* gemm/cuda/, and gemm/absent.c in a build without CUDA. k0 .. k9 climb the ladder of
 * CUDA-core kernels; only those in the table need exist. */
extern const md_gemm_kernel md_gemm_k0, md_gemm_k1, md_gemm_k2, md_gemm_k3, md_gemm_k4, md_gemm_k5,
    md_gemm_k6, md_gemm_k7;
extern const md_gemm_kernel md_gemm_wmma_simple, md_gemm_wmma_tiled, md_gemm_wgmma, md_gemm_dmma,
    md_gemm_cublas;

#ifdef __cplusplus
}
#endif
#endif
