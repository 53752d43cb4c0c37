#ifndef MD_LATTICE_FIELDS_ROWS_LANES_H
#define MD_LATTICE_FIELDS_ROWS_LANES_H

/* Inside of files that are compiled once for each instruction set, MD_ISA names it. The vector
 * types of gcc and clang say all that is needed: lane by lane, whatever the width. */
#include <string.h>

#define JOIN(a, b) a##b
#define NAME(a, b) JOIN(a, b)

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif
typedef double lanes __attribute__((vector_size(VECTOR_BYTES)));

enum { LANES = VECTOR_BYTES / 8 };

static inline lanes load(const double *p) {
  lanes v;
  memcpy(&v, p, sizeof v);
  return v;
}

#endif
