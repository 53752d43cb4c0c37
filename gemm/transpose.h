#ifndef MD_GEMM_TRANSPOSE_H
#define MD_GEMM_TRANSPOSE_H

#include "gemm/small.h"
#ifdef __cplusplus
extern "C" {
#endif

/* out (columns x rows) <- transpose of in (rows x columns), both row-major and dense. */
typedef struct md_transpose_problem {
  int64_t rows, columns;
  md_small_type type;
  int block_x, block_y; /* shape of a thread block (device) or of a tile (host): any of 1..32 each;
                           block_x runs along the columns of in */
} md_transpose_problem;

typedef struct md_transpose_kernel {
  const char *name; /* naive, tile, padded; host_naive, host_tile */
  const char *idea;
  md_gemm_space space;
  const char *unavailable;
  /* Local; on the device queued on the stream, in and out do not alias. */
  md_status (*run)(md_context *context, const md_transpose_problem *problem, const void *in,
                   void *out, void *stream);
} md_transpose_kernel;

/* NULL-terminated; every name in every build. */
const md_transpose_kernel *const *md_transpose_kernels(void);

extern const md_transpose_kernel md_transpose_host_naive, md_transpose_host_tile;
extern const md_transpose_kernel md_transpose_naive, md_transpose_tile, md_transpose_padded;

#ifdef __cplusplus
}
#endif
#endif
