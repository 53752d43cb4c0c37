#ifndef MD_DIRAC_TENSOR_STACKED_H
#define MD_DIRAC_TENSOR_STACKED_H

#include "dirac/tensor/tensor.h"

#include <driver_types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The two kernels of packing `stacked`. Everything points to device memory. */
typedef struct md_stacked_call {
  const void *links;           /* of the output parity, ordered by md_stacked_link_at */
  const int32_t *neighbour;    /* [direction][site] of the output parity */
  const void *source;          /* [site][colour][rhs], halo behind */
  const float *source_scale;   /* half only, else NULL; likewise the other scales */
  void *out;
  float *out_scale;
  const void *x;               /* NULL: out = D in, else out = a x + b D in */
  const float *x_scale;
  double a, b;
  const int32_t *list;         /* output sites; NULL: 0 .. count-1 */
  int64_t count, sites;
  int n_rhs, parity;
  int local[MD_DIMS];
} md_stacked_call;

/* Any lattice, any list of sites, any number of right-hand sides: neighbours are gathered from
 * global memory. Queued on `stream`. */
cudaError_t md_stacked_gather(md_precision precision, const md_stacked_call *call,
                              cudaStream_t stream);

/* All sites of a lattice that is cut into whole tiles: each block marches along t with three time
 * slices of its tile in shared memory. */
typedef struct md_march_plan {
  int x, y, z;      /* tile; x in sites of one parity */
  int columns[3];   /* tiles of a time slice along x, y, z */
  int band;         /* tiles along y that are walked together, for reuse in L2 */
  int site_bytes, row_bytes; /* of a source site; pitch of a row of x+1 sites in shared memory */
  int shared_bytes, blocks;
  int warps, warp_sites;           /* warps that compute and their sites; one more warp feeds */
} md_march_plan;

/* The tile that fetches the fewest source sites. False when none fits the lattice, the number of
 * right-hand sides is not 8 or 16, or the lattice is too small to fill the GPU. */
bool md_march_plan_make(md_precision precision, int n_rhs, const int local[MD_DIMS],
                        int multiprocessors, md_march_plan *plan);
/* The plan with a given tile; false when that does not fit. */
bool md_march_plan_tile(md_precision precision, int n_rhs, const int local[MD_DIMS],
                        int multiprocessors, const int tile[3], md_march_plan *plan);
cudaError_t md_stacked_march(md_precision precision, const md_stacked_call *call,
                             const md_march_plan *plan, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
