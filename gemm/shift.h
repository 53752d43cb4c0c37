#ifndef MD_GEMM_SHIFT_H
#define MD_GEMM_SHIFT_H

#include "gemm/small.h"
#ifdef __cplusplus
extern "C" {
#endif

enum { MD_SHIFT = 4 };

/* out[x, y] <- in[x, y] + in[x + 4, y] for 0 <= x < width, 0 <= y < height, x fastest.
 * in has rows of in_ld >= width + 4 elements, out of out_ld >= width. */
typedef struct md_shift_problem {
  int64_t width, height, in_ld, out_ld;
  md_small_type type;
  int block_x, block_y; /* thread block (device), tile (host): block_x * block_y <= 1024 */
} md_shift_problem;

typedef struct md_shift_kernel {
  const char *name; /* direct, shared; host */
  const char *idea;
  md_gemm_space space;
  const char *unavailable;
  /* Local; on the device queued on the stream, in and out do not alias. */
  md_status (*run)(md_context *context, const md_shift_problem *problem, const void *in, void *out,
                   void *stream);
} md_shift_kernel;

/* NULL-terminated; every name in every build. */
const md_shift_kernel *const *md_shift_kernels(void);

extern const md_shift_kernel md_shift_host;
extern const md_shift_kernel md_shift_direct, md_shift_shared;

/* 32-byte sectors that the first warp of an inner block asks for, loads in[x], loads in[x + 4] and
 * stores, when rows start on 128 bytes. A warp takes 32 threads of the block, x fastest. */
typedef struct md_shift_sectors {
  int load, load_shifted, store;
} md_shift_sectors;
md_shift_sectors md_shift_warp_sectors(int block_x, int block_y);

#ifdef __cplusplus
}
#endif
#endif
