#ifndef MD_DIRAC_TENSOR_MARCH_STAGE_CUH
#define MD_DIRAC_TENSOR_MARCH_STAGE_CUH

#include "dirac/tensor/stacked_finish.cuh"

/* What the feeding and the computing warps of the marching kernel agree on: the order of the work,
 * the barriers, and where rows lie in shared memory. */
namespace stacked {

/* Column after column and time slice after time slice, as one block walks them: whole columns
 * while there is one for every block, then an equal share of what is left. Blocks walk
 * neighbouring columns at the same time, so that rims come from L2. */
struct walk {
  int full, column, t, last; /* last: final slice of the segment in work */
  int round;
  int64_t low, high;
  __device__ walk(const md_march_plan &plan, int slices) {
    const int columns = plan.columns[0] * plan.columns[1] * plan.columns[2];
    full = columns / plan.blocks, round = 0, column = t = last = 0;
    const int64_t rest = static_cast<int64_t>(columns - full * plan.blocks) * slices;
    low = rest * blockIdx.x / plan.blocks, high = rest * (blockIdx.x + 1) / plan.blocks;
  }
  /* The next segment; false at the end. */
  __device__ bool next(const md_march_plan &plan, int slices) {
    if (round < full) {
      column = round++ * plan.blocks + blockIdx.x, t = 0, last = slices - 1;
    } else if (low < high) {
      column = full * plan.blocks + static_cast<int>(low / slices);
      t = static_cast<int>(low % slices);
      last = static_cast<int>(min(static_cast<int64_t>(slices), t + high - low)) - 1;
      low += last + 1 - t;
    } else {
      return false;
    }
    return true;
  }
};

/* First site of a column in units of sites along x. */
struct corner {
  int x, y, z;
  __device__ corner(const md_march_plan &plan, int column) {
    const int in_band = plan.columns[0] * plan.band, layer = in_band * plan.columns[2];
    const int band = column / layer, r = column % layer;
    x = r % plan.columns[0] * plan.x;
    y = (band * plan.band + r / plan.columns[0] % plan.band) * plan.y;
    z = r / in_band * plan.z;
  }
};

/* A place in a ring of slots; phase is the parity that its barrier has in this round. */
struct ring_place {
  int slot;
  uint32_t phase;
  __device__ void advance(int slots) {
    if (++slot == slots) slot = 0, phase ^= 1;
  }
};

__device__ inline uint32_t shared_address(const void *p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}
__device__ inline void barrier_init(uint64_t *b, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(b)), "r"(count));
}
__device__ inline void barrier_arrive(uint64_t *b) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(b)) : "memory");
}
__device__ inline void barrier_expect(uint64_t *b, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(b)),
               "r"(bytes)
               : "memory");
}
/* Returns once the phase of that parity has ended. */
__device__ inline void barrier_wait(uint64_t *b, uint32_t parity) {
  asm volatile("{\n .reg .pred done;\n"
               "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
               "@!done bra again;\n}" ::"r"(shared_address(b)),
               "r"(parity)
               : "memory");
}
__device__ inline void copy_bulk(void *to, const void *from, int bytes, uint64_t *b) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
               "[%0], [%1], %2, [%3];" ::"r"(shared_address(to)),
               "l"(from), "r"(bytes), "r"(shared_address(b))
               : "memory");
}
template <int BYTES> __device__ inline void copy_async(void *to, const void *from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(shared_address(to)), "l"(from),
               "n"(BYTES)
               : "memory");
}
/* Arrives once this thread's copy_async are done. */
__device__ inline void barrier_arrive_copies(uint64_t *b) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(b))
               : "memory");
}

/* Shared memory of a block. Centre rows hold x+1 sites: the row of an output site of odd x offset
 * starts at place 0 and ends with the neighbour beyond, that of even offset starts with the
 * neighbour before; rim rows hold x. The row (y, z) of the centre slice number c starts at
 * 32 ((y + 2z + 3c) mod 4) bytes past a multiple of 128, so that the four lanes t of a fragment
 * load read different banks. Half also keeps the scales of each row: that of the row's site x at
 * 4 + x, of the neighbour before at 3, of that beyond in the first of the four places that the
 * next row begins with. */
struct stage {
  const md_march_plan &plan;
  uint64_t *filled, *emptied; /* rings of depth + 1 */
  char *memory;               /* centre rows, rim rows, their scales */

  __device__ stage(char *shared, const md_march_plan &p)
      : plan(p), filled(reinterpret_cast<uint64_t *>(shared)), emptied(filled + 4),
        memory(shared + 128) {}
  __device__ int centre_rows() const { return plan.y * plan.z; } /* of a slot */
  __device__ int rim_rows() const { return 2 * (plan.y + plan.z); }
  /* shift: y + 2z + 3c */
  __device__ char *row(bool rim, int slot, int r, int shift) const {
    const int number = slot * (rim ? rim_rows() : centre_rows()) + r;
    const int at = (rim ? plan.centre_bytes : 0) +
                   number * (plan.rim_row_bytes + (rim ? 0 : plan.site_bytes));
    return memory + at + ((32 * shift - at) & 127);
  }
  __device__ float *scale(bool rim, int slot, int r) const {
    const int number = slot * (rim ? rim_rows() : centre_rows()) + r +
                       (rim ? (plan.depth + 3) * centre_rows() : 0);
    return reinterpret_cast<float *>(memory + plan.centre_bytes + plan.rim_bytes) +
           number * (plan.x + 4);
  }
};

} // namespace stacked

#endif
