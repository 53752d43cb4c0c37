#ifndef MD_LATTICE_FIELDS_CUDA_BLOCK_DEVICE_H
#define MD_LATTICE_FIELDS_CUDA_BLOCK_DEVICE_H

#include "lattice/fields/cuda/block_rows.cuh"

/* Fields that one pass adds at most. */
constexpr int MD_BLOCK_ADDED = 8;

/* The work space of block operations on a device. */
struct device_block {
  int n, blocks, tiles; /* tiles of a triangle */
  double *partial;      /* [slot][tile][block][TILE] */
  double2 *matrices;    /* MD_BLOCK_ADDED of staged_matrix, on the device */
  double2 *staging;     /* the same on the host */
  double *values;       /* [slot][tile][TILE], page-locked */
  long long *serials;   /* [slot][tile][ADDERS], page-locked */
  long long serial, of_slot[MD_BLOCK_SLOTS];
  bool pending[MD_BLOCK_SLOTS]; /* the blocks have left their sums, nothing has added them yet */
};

/* Bytes of shared memory that adding up warps takes. */
constexpr size_t MD_BLOCK_GRAM_BYTES = sizeof(double) * md_block_rows::WARPS * md_block_rows::TILE;

/* Groups of eight right-hand sides, Q of the kernels, and of the narrow ones at most. */
static inline int md_block_groups(int n) {
  return n <= 8 ? 1 : n <= 16 ? 2 : n <= 32 ? 4 : 8;
}

/* And with so many groups: no more than 97 KiB of matrices, which the shared memory of every GPU
 * holds. */
static inline int md_block_added(int groups) {
  return groups > 2 ? MD_BLOCK_ADDED / 2 : MD_BLOCK_ADDED;
}

/* Before a launch: the shared memory that the kernel takes, and the staged matrices on their way.
 */
template <class Kernel>
static md_status md_block_prepare(md_context *context, const device_block *d, Kernel kernel,
                                  size_t shared_bytes, size_t matrix_bytes) {
  if (shared_bytes > 48 * 1024) /* more than a kernel gets unasked */
    MD_TRY(md_cuda_status(context,
                          cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                               (int)shared_bytes),
                          "shared memory of a block update"));
  return md_cuda_status(
      context,
      cudaMemcpyAsync(d->matrices, d->staging, matrix_bytes, cudaMemcpyHostToDevice, md_stream()),
      "copy of block matrices");
}

/* For fields that are not MD_DOUBLE, of up to MD_MAX_NARROW_BLOCK right-hand sides; queued only.
 * The sums of x, or of the new y, to `partial`, where an update with up to 16 right-hand sides
 * leaves them and one with more does not (`partial` NULL: nowhere). `with` not NULL: the products
 * of `with` and the new y instead, for fields in 16 bits, up to 16 right-hand sides and a step with
 * x. */
void md_block_narrow_gram(const device_block *d, const md_field *x, double *partial);
md_status md_block_narrow_update(md_context *context, device_block *d, md_field *y,
                                 const md_block_step *step, const md_field *with, double *partial);
/* z += x[k] c[k], k < count <= md_block_added, in the part of the sites; queued only. */
md_status md_block_narrow_add(md_context *context, device_block *d, md_field *z, int count,
                              const md_field *x, const double *c, const md_block_part *part);
/* All tiles of <x_i, y_j>, of one precision. */
void md_block_pairs(const device_block *d, const md_field *x, const md_field *y, double *partial);

#endif
