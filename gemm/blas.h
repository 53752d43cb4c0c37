#pragma once

#include <stddef.h>

/* The threads of a BLAS library that serves as a reference: as many as asked, or it says how many.
 * OpenBLAS has threads of its own beside OpenMP's. It starts them from the thread that asks, on the
 * cores of that one alone, and where OpenMP binds its threads (OMP_PROC_BIND) that is one core. */
typedef struct md_blas_library {
  void (*set_threads)(int count);
  int (*threads)(void);
  int (*parallel)(void); /* 0: built without threads, as openblas_get_parallel says */
} md_blas_library;

/* Where the calling thread might run before; all zero: as it was. */
typedef struct md_blas_place {
  void *cores;
  size_t bytes;
} md_blas_place;

/* The library whose dgemm this process has, for a caller that has it through another library; all
 * NULL: it is no OpenBLAS. */
md_blas_library md_blas_loaded(void);

/* Asks the library for `threads` >= 1 threads, and until md_blas_leave lets the calling thread run
 * on all cores that OpenMP's threads have. Returns how many threads it takes; 0: it cannot be told
 * (no library). From the first thread, outside parallel regions. */
int md_blas_enter(const md_blas_library *library, int threads, md_blas_place *before);
void md_blas_leave(md_blas_place *before);
/* What md_blas_enter returns, with nothing left changed. */
int md_blas_threads(const md_blas_library *library, int threads);
