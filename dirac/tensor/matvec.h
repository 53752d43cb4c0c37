#ifndef MD_DIRAC_TENSOR_MATVEC_H
#define MD_DIRAC_TENSOR_MATVEC_H

#include "dirac/backend.h"

/* Independent products of 3x3 complex matrices and vectors, as the packings were first measured:
 * nothing but the product, for `bench dirac --kernel matvec`. */
#ifdef __cplusplus
extern "C" {
#endif

enum { MD_MATVEC_MATRIX = 18, MD_MATVEC_VECTOR = 6 }; /* reals, [row][column][re, im] */

typedef struct md_matvec {
  int64_t count;
  const uint16_t *matrices, *vectors; /* fp16, [count][18] and [count][6] */
  float *results;                     /* [count][6], assigned */
} md_matvec;

/* result = matrix vector on the host, float arithmetic; threads share the products. Local. */
void md_matvec_host(const md_matvec *work);

/* The same on the device, where all three arrays lie: packing none is one CUDA thread for each
 * product in float, single, diagonal and block8 are WMMA tiles. Forms all products `passes` times
 * in one kernel, so that differences of times leave the launch out. Queued; MD_ENVIRONMENT in a
 * build without CUDA. Local. */
md_status md_matvec_device(md_context *context, md_packing packing, int passes,
                           const md_matvec *work);

#ifdef __cplusplus
}
#endif

#endif
