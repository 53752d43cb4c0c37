#ifndef MD_DIRAC_TENSOR_MATVEC_H
#define MD_DIRAC_TENSOR_MATVEC_H

#include "dirac/backend.h"

/* Independent products of 3x3 complex matrices and vectors, for `bench dirac --kernel matvec`. The
 * packings were first measured by them: there is nothing but the product, no neighbours and no sum
 * over directions. */
#ifdef __cplusplus
extern "C" {
#endif

enum { MD_MATVEC_MATRIX = 18, MD_MATVEC_VECTOR = 6 }; /* reals, [row][column][re, im] */

typedef struct md_matvec {
  int64_t count;
  const uint16_t *matrices, *vectors; /* fp16, [count][18] and [count][6] */
  float *results;                     /* [count][6], assigned */
} md_matvec;

/* results[n] = matrices[n] vectors[n] on the host in float arithmetic; threads share the products.
 * Local. */
void md_matvec_host(const md_matvec *work);

/* The same on the device, where all three arrays lie. With packing none, one CUDA thread forms one
 * product in float; single, diagonal and block8 fill WMMA tiles. One kernel forms all products
 * `passes` times, so that the difference of two times leaves the launch out. The work is queued,
 * not waited for. Only in builds with CUDA. Local. */
md_status md_matvec_device(md_context *context, md_packing packing, int passes,
                           const md_matvec *work);

#ifdef __cplusplus
}
#endif

#endif
