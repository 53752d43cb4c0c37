#pragma once

/* Asynchronous copies from global to shared memory (cp.async, sm_80 and later). */
#include "base/shared_copy.cuh"

namespace md {

/* Copies `valid` (0 .. bytes) bytes and fills the rest with zeros; bytes is 4, 8 or 16. With
 * valid == 0 nothing is read, so `from` may lie outside the matrix. */
template <int bytes> __device__ inline void copy_async(uint32_t to, const void *from, int valid) {
  if constexpr (bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid));
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(bytes),
                 "r"(valid));
}

__device__ inline void commit_group() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Returns when at most `pending` of this thread's groups are still under way. */
template <int pending> __device__ inline void wait_group() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

/* Bytes of `width` elements from (i, j) that lie inside a rows x columns matrix. */
template <class T>
__device__ inline int valid_bytes(int rows, int columns, int i, int j, int width) {
  return i < rows ? min(max(columns - j, 0), width) * (int)sizeof(T) : 0;
}

/* Queues the ROWS x COLUMNS tile at (row, column) of x into shared memory with row stride LD
 * elements, zeros outside the matrix. WIDTH elements go in one copy: they must be aligned. */
template <class T, int ROWS, int COLUMNS, int LD, int THREADS, int WIDTH>
__device__ inline void copy_tile_async(uint32_t to, const T *x, int64_t ld, int rows, int columns,
                                       int row, int column) {
  constexpr int per_row = COLUMNS / WIDTH, step = THREADS / per_row, bytes = WIDTH * (int)sizeof(T);
  static_assert(THREADS % per_row == 0 && ROWS % step == 0, "threads must cover whole tile rows");
  const int i0 = threadIdx.x / per_row, j = threadIdx.x % per_row * WIDTH;
  const T *from = x + (row + i0) * ld + column + j;
#pragma unroll
  for (int i = 0; i < ROWS; i += step, from += step * ld)
    copy_async<bytes>(to + ((i0 + i) * LD + j) * (int)sizeof(T), from,
                      valid_bytes<T>(rows, columns, row + i0 + i, column + j, WIDTH));
}

/* The same copy step after step, and in parts: the tile moves along the matrix by fixed pointers
 * and a part's copies are few, so that they can stand between products. */
template <class T, int ROWS, int COLUMNS, int LD, int THREADS, int WIDTH> class TileCopy {
  static constexpr int per_row = COLUMNS / WIDTH, step = THREADS / per_row;
  static constexpr int bytes = WIDTH * (int)sizeof(T);
  static_assert(THREADS % per_row == 0 && ROWS % step == 0, "threads must cover whole tile rows");
  static constexpr int COPIES = ROWS / step;
  const T *from;
  int64_t stride; /* elements between the rows of two copies */
  int i, j, rows, columns;
  uint32_t offset;

public:
  __device__ TileCopy(const T *x, int64_t ld, int m, int n, int row, int column)
      : stride(step * ld), i(row + threadIdx.x / per_row),
        j(column + threadIdx.x % per_row * WIDTH), rows(m), columns(n) {
    from = x + i * ld + j;
    offset = (threadIdx.x / per_row * LD + threadIdx.x % per_row * WIDTH) * (int)sizeof(T);
  }
  /* The part-th of `parts` parts; constants after unrolling. */
  __device__ void issue(uint32_t to, int part, int parts) const {
#pragma unroll
    for (int c = 0; c < COPIES; c++)
      if (c * parts / COPIES == part)
        copy_async<bytes>(to + offset + c * step * LD * (int)sizeof(T), from + c * stride,
                          valid_bytes<T>(rows, columns, i + c * step, j, WIDTH));
  }
  __device__ void move_columns(int by) {
    from += by, j += by;
  }
  __device__ void move_rows(int by, int64_t ld) {
    from += by * ld, i += by;
  }
};

} // namespace md
