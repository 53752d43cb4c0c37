#pragma once

#include "base/status.h"

#include "gemm/gemm.h"

MD_C_BEGIN

/* Small kernels beside the products, each in many ways: transpose, shifted sum and matrix times
 * vector, on row-major matrices of 4-byte elements, int32_t or float. Integers are added as they
 * are: the caller keeps sums below 2^31. */
typedef enum md_small_type { MD_SMALL_INTEGER, MD_SMALL_SINGLE, MD_SMALL_TYPES } md_small_type;
enum { MD_SMALL_BYTES = 4 /* of an element */, MD_SHIFT = 4 };

typedef enum md_small_work {
  MD_SMALL_TRANSPOSE, /* out (columns x rows) <- transpose of in (rows x columns), both dense */
  MD_SMALL_SHIFT, /* out[x, y] <- in[x, y] + in[x + 4, y] for x < columns, y < rows, x fastest */
  MD_SMALL_GEMV   /* out (rows) <- in x, in rows x columns and dense, x of `columns` */
} md_small_work;

typedef struct md_small_problem {
  int64_t columns, rows; /* of in; of the shift's out */
  int64_t in_ld, out_ld; /* of the shift: in_ld >= columns + 4, out_ld >= columns */
  md_small_type type;
  int block_x, block_y; /* of transpose and shift: a thread block (device) or a tile (host), at most
                           1024 elements; of a transpose at most 32 each way; block_x runs along the
                           columns of in */
} md_small_problem;

/* in and out do not alias; x is for gemv alone. */
typedef struct md_small_call {
  const md_small_problem *problem;
  void *stream, *state; /* of a kernel on the device; what open made */
  const void *in, *x;
  void *out;
} md_small_call;

typedef struct md_small_kernel {
  const char *name;
  md_gemm_space space;
  unsigned types; /* bit 1u << md_small_type */
  const char *unavailable;
  /* Local; on the device queued on the stream. The sums of gemv differ in their order. */
  md_status (*run)(md_context *context, const md_small_call *call);
  /* Scratch and handles; may be NULL, as in md_gemm_kernel. */
  md_status (*open)(md_context *context, const md_small_problem *problem, void *stream,
                    void **state);
  void (*close)(void *state);
} md_small_kernel;
enum { MD_SMALL_BOTH = 1 << MD_SMALL_INTEGER | 1 << MD_SMALL_SINGLE };

/* NULL-terminated; every name in every build. */
const md_small_kernel *const *md_small_kernels(md_small_work work);

/* 32-byte sectors that the first warp of an inner block of the shift asks for, loads in[x], loads
 * in[x + 4] and stores, when rows start on 128 bytes. A warp takes 32 threads of the block, x
 * fastest. */
typedef struct md_shift_sectors {
  int load, load_shifted, store;
} md_shift_sectors;
md_shift_sectors md_shift_warp_sectors(int block_x, int block_y);

/* The tables: H(work, kernel) of the host, then D of gemm/cuda/. */
#define MD_TRANSPOSES(H, D)                                                                        \
  H(transpose, host_naive)                                                                         \
  H(transpose, host_tile) D(transpose, naive) D(transpose, tile) D(transpose, padded)
#define MD_SHIFTS(H, D) H(shift, host) D(shift, direct) D(shift, shared)
#define MD_GEMVS(H, D)                                                                             \
  H(gemv, host_naive)                                                                              \
  H(gemv, host_lanes)                                                                              \
  D(gemv, thread_row)                                                                              \
  D(gemv, two_phase)                                                                               \
  D(gemv, block_serial) D(gemv, block_atomic) D(gemv, warp_shuffle) D(gemv, cublas)
#define MD_SMALL_TABLE(H, D) MD_TRANSPOSES(H, D) MD_SHIFTS(H, D) MD_GEMVS(H, D)
#define MD_ROW(work, kernel) extern const md_small_kernel md_##work##_##kernel;
MD_SMALL_TABLE(MD_ROW, MD_ROW)
#undef MD_ROW

MD_C_END
