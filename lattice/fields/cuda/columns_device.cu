/* The device side of columns.h. A block of threads turns a tile of 16 sites and 16 columns in
 * shared memory, so that it reads and writes whole lines on both sides. */
#include "base/device.cuh"

extern "C" {
#include "lattice/fields/cuda/columns_device.h"
}

namespace {

constexpr int THREADS = 256, SITES = 16, COLUMNS = 16, COMPONENTS = 6;
constexpr int TILE = SITES * COLUMNS * COMPONENTS;

struct column_pointers {
  double *of[MD_MAX_RHS];
};

/* Element e of a tile as it lies in columns: site fastest. */
static __device__ inline double *in_column(const column_pointers &columns, int64_t stride, int e,
                                           int first, int64_t site) {
  const int s = e % SITES, c = e / SITES % COMPONENTS, r = e / (SITES * COMPONENTS);
  return columns.of[first + r] + c * stride + site + s;
}

/* Element e of a tile as it lies in the block: part, column, colour, site. */
struct block_place {
  int s, c, r;
};
static __device__ inline block_place in_block(int e) {
  const int r = e / 2 % COLUMNS, colour = e / (2 * COLUMNS) % (COMPONENTS / 2);
  return {e / (COLUMNS * COMPONENTS), 2 * colour + e % 2, r};
}
static __device__ inline int64_t block_index(const block_place &p, int first, int64_t site, int n) {
  return (((site + p.s) * (COMPONENTS / 2) + p.c / 2) * n + first + p.r) * 2 + p.c % 2;
}

/* `count` columns are there; a join sets the others of the block's n to zero. */
template <bool JOIN>
static __global__ void __launch_bounds__(THREADS)
    turn(double *block, int n, column_pointers columns, int count, int64_t stride, int64_t sites) {
  __shared__ double tile[COLUMNS][COMPONENTS][SITES + 1];
  const int64_t site = (int64_t)blockIdx.x * SITES;
  const int first = (int)blockIdx.y * COLUMNS;
  for (int e = threadIdx.x; e < TILE; e += THREADS) {
    if constexpr (JOIN) {
      const int s = e % SITES, c = e / SITES % COMPONENTS, r = e / (SITES * COMPONENTS);
      const bool there = first + r < count && site + s < sites;
      tile[r][c][s] = there ? *in_column(columns, stride, e, first, site) : 0.0;
    } else {
      const block_place p = in_block(e);
      const bool there = first + p.r < count && site + p.s < sites;
      tile[p.r][p.c][p.s] = there ? block[block_index(p, first, site, n)] : 0.0;
    }
  }
  __syncthreads();
  for (int e = threadIdx.x; e < TILE; e += THREADS) {
    if constexpr (JOIN) {
      const block_place p = in_block(e);
      if (first + p.r < n && site + p.s < sites)
        block[block_index(p, first, site, n)] = tile[p.r][p.c][p.s];
    } else {
      const int s = e % SITES, c = e / SITES % COMPONENTS, r = e / (SITES * COMPONENTS);
      if (first + r < count && site + s < sites)
        *in_column(columns, stride, e, first, site) = tile[r][c][s];
    }
  }
}

template <bool JOIN>
md_status launch(md_context *context, int count, const md_field *columns, const md_field *block) {
  column_pointers pointers = {};
  for (int r = 0; r < count; r++) pointers.of[r] = (double *)columns[r].data;
  const int wanted = JOIN ? block->n_rhs : count;
  const dim3 grid((unsigned)((block->sites + SITES - 1) / SITES),
                  (unsigned)((wanted + COLUMNS - 1) / COLUMNS));
  if (wanted == 0) return MD_OK;
  turn<JOIN><<<grid, THREADS, 0, md_stream()>>>((double *)block->data, block->n_rhs, pointers,
                                                count, count > 0 ? columns[0].stride : 0,
                                                block->sites);
  return md_cuda_launched(context, "a copy between vectors and a block of them");
}

} // namespace

extern "C" md_status md_device_columns_join(md_context *context, int count, const md_field *columns,
                                            md_field *block) {
  return launch<true>(context, count, columns, block);
}

extern "C" md_status md_device_columns_split(md_context *context, const md_field *block, int count,
                                             md_field *columns) {
  return launch<false>(context, count, columns, block);
}
