#ifndef MD_GEMM_GEMV_H
#define MD_GEMM_GEMV_H

#include "gemm/small.h"
#ifdef __cplusplus
extern "C" {
#endif

/* y (rows) <- A x, A rows x columns, row-major and dense, x of `columns`. */
typedef struct md_gemv_problem {
  int64_t rows, columns;
  md_small_type type;
} md_gemv_problem;

typedef struct md_gemv_kernel {
  const char *name;
  const char *idea;
  md_gemm_space space;
  unsigned types; /* bit 1u << md_small_type */
  const char *unavailable;
  /* Scratch and handles; may be NULL, as in md_gemm_kernel. */
  md_status (*open)(md_context *context, const md_gemv_problem *problem, void *stream,
                    void **state);
  void (*close)(void *state);
  /* Local; on the device queued on the stream. The sum's order may differ between variants. */
  md_status (*run)(md_context *context, const md_gemv_problem *problem, void *stream, void *state,
                   const void *a, const void *x, void *y);
} md_gemv_kernel;

/* NULL-terminated; every name in every build. */
const md_gemv_kernel *const *md_gemv_kernels(void);

extern const md_gemv_kernel md_gemv_host_naive, md_gemv_host_lanes;
/* thread_row: a thread per row. two_phase: products into device memory, then a tree reduction.
 * block_serial: a block per row, products in shared memory, summed by one thread. block_atomic:
 * atomics on shared memory. warp_shuffle: a warp per row, shuffles. cublas: the library. */
extern const md_gemv_kernel md_gemv_thread_row, md_gemv_two_phase, md_gemv_block_serial,
    md_gemv_block_atomic, md_gemv_warp_shuffle, md_gemv_cublas;

#ifdef __cplusplus
}
#endif
#endif
