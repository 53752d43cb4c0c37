#ifndef MD_DIRAC_TENSOR_KERNELS_H
#define MD_DIRAC_TENSOR_KERNELS_H

#include "dirac/tensor/march_share.h"
#include "dirac/tensor/tensor.h"
#include "lattice/halo/arrivals.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One hop as the kernels take it. Everything points to device memory. */
typedef struct md_tensor_call {
  md_packing packing;
  md_precision precision;
  int terms;                 /* of the action: 8 for each link field */
  const void *links;         /* of the output parity: stacked [site][field] in the order of
                                md_stacked_link_at, else [site][term][18] */
  const int32_t *neighbour;  /* [term][site] of the output parity */
  const void *source;        /* as in a field: [site][colour][rhs] or six planes */
  const float *source_scale; /* half only, else NULL; likewise the other scales */
  void *out;
  float *out_scale;
  const void *x; /* md_hop_end; NULL: out = D in */
  const float *x_scale;
  double a, b;
  /* md_hop_step; out is MD_SINGLE or MD_DOUBLE then, or MD_HALF if `narrow`. A step and norm2 are
   * served where md_march_plan_make finds a plan, but not in bf16, and norm2 alone only for plain
   * D in. */
  const double *step;
  const void *before; /* MD_DOUBLE alone; NULL: none */
  md_unit_sum *norm2; /* [rhs][MD_SUM_SLOTS], in units[rhs], as md_partial_sums */
  const struct sum_units *units;
  const int32_t *list; /* output sites; NULL: 0 .. count-1 */
  int64_t count, sites;
  int64_t in_stride, out_stride; /* of planes, n_rhs == 1; x is like out */
  int n_rhs, parity;
  int local[MD_DIMS];
  /* For the march: only sites with coordinates low <= x < high are assigned, and unless `ends` is 0
   * of the time slices low .. high-1 only as many at the beginning and at the end. stride: sites
   * from a neighbour beyond this rank along x, y or z to that of the next time slice; one link
   * field. */
  int low[MD_DIMS], high[MD_DIMS], stride[MD_DIMS];
  int ends;
  bool narrow; /* of a step */
  /* Of a march of all sites with one link field: where the slices beyond both ends along t arrive,
   * and before how many columns of a block are done the one beyond the lower end and the one beyond
   * the upper end are there. */
  md_halo_arrivals arrivals;
  int late[2];
  md_march_share share; /* set where the march is launched */
  void *queue;          /* stream, NULL: that of all work */
} md_tensor_call;

/* Each of these functions queues one kernel, and returns MD_ENVIRONMENT when it cannot start. */

/* The packings single, diagonal and block8 by WMMA, for any lattice, action and list of sites. */
md_status md_tensor_tiles(md_context *context, const md_tensor_call *call);
/* The packing stacked for any lattice, action, list of sites and number of right-hand sides. It
 * gathers neighbours from global memory. Steps and norms are served for 8 and 16 right-hand sides.
 */
md_status md_tensor_gather(md_context *context, const md_tensor_call *call);

/* The march: stacked for all sites, for all that read no halo, or for the first and the last time
 * slices, of a lattice that whole tiles cover. A tile is a box of sites along x, y and z; the
 * column above it in t is one block's work: it marches along t with the time slices that it reads
 * in shared memory. Some of its warps compute, others feed, that is, fetch the slices to come. */
enum {
  MARCH_REACH = 3,     /* sites of the longer hop of two link fields */
  LONG_WARPS = 8,      /* that compute with two link fields, whose links take more registers */
  LONG_PASSES = 2,     /* most, over the sites of a time slice */
  MARCH_WARPS = 16,    /* most that compute */
  MARCH_FEEDERS = 4,   /* that feed */
  MARCH_RING = 4,      /* most steps under way */
  MARCH_X = 8,         /* most sites of a tile along x */
  MARCH_BARRIERS = 128 /* bytes in front of the rows */
};
/* A ring of slots in shared memory, each of which holds the rows of one step: the bytes of the
 * scales of a row, of a row, of a slot and of the ring. */
typedef struct md_march_ring {
  int scale_bytes, row_bytes, slot_bytes, bytes;
} md_march_ring;
typedef struct md_march_plan {
  int fields;     /* of links */
  int x, y, z;    /* tile; x in sites of one parity */
  int steps;      /* of a time slice: 1, or with two link fields 2, one for each plane along z */
  int columns[3]; /* tiles of a time slice along x, y, z */
  int band;       /* tiles along y that are walked together, for reuse in L2 */
  int ring;       /* steps under way: the one in work and those being fetched */
  int spare;      /* slots of the centre beyond those that they need */
  int site_bytes; /* of a source site */
  /* struct stage of the kernel, for two link fields struct long_stage, says what they hold. */
  md_march_ring centre, rim, along;
  int shared_bytes, blocks; /* all; as many as there are places for */
  int warps, warp_sites;    /* that compute, and their sites in a pass */
  int passes;               /* over the sites of a time slice; one link field: 1 */
  /* Of x, y; planes along z of a step; columns[0]; columns of a band and of a layer of bands. */
  md_divisor by_x, by_y, by_depth, by_columns, by_band, by_layer;
} md_march_plan;

/* Plans with the first of a list of tiles that fits, for an action of 1 or 2 link fields, and a
 * block for each multiprocessor of the GPU. False when no tile fits, when the number of right-hand
 * sides is not 8 or 16, when the lattice is too small to fill the GPU, or for code before compute
 * capability 9.0, whose copy engine feeds the march. */
bool md_march_plan_make(md_precision precision, int fields, int n_rhs, const int local[MD_DIMS],
                        const md_device_facts *gpu, md_march_plan *plan);
/* Queues the march that was planned; MD_ENVIRONMENT when it cannot start. The second is what the
 * first calls for two link fields. */
md_status md_tensor_march(md_context *context, const md_tensor_call *call,
                          const md_march_plan *plan);
md_status md_tensor_march_long(md_context *context, const md_tensor_call *call,
                               const md_march_plan *plan);

#ifdef __cplusplus
}
#endif

#endif
