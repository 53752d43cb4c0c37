#ifndef MD_DIRAC_TENSOR_MARCH_LONG_STAGE_CUH
#define MD_DIRAC_TENSOR_MARCH_LONG_STAGE_CUH

#include "dirac/tensor/march_rows.h"
#include "dirac/tensor/march_stage.cuh"

/* The march with two link fields, whose hops reach 1 and 3 sites: what its feeding and computing
 * warps agree on. */
namespace stacked {

/* A step is a time slice of the column, or, where the slice has two steps, one of its two planes
 * along z: half as much of what surrounds the column is then in shared memory, which leaves place
 * for a larger tile.
 *
 * Shared memory of a block: barriers, then three rings of slots, each slot the rows of one step.
 * `centre` holds the column's own rows, of plan.x sites, of the steps from the one three slices
 * before to the one three slices behind; `rim` those of the rows at up to three places before and
 * beyond the column along y and z that the step reads; `along` for each own row of the step the
 * sites before and beyond it along x. A row of the
 * source has the opposite parity of the output row at its place. With sites counted so that those
 * of output site i along y, z and t are i, and along x, where the output row has x offset o (0 or
 * 1), i+o and i+o+1 forward, i+o-1 and i+o-2 backward, the row of `along` holds -2 (o = 0 only),
 * -1, x, x+1 (o = 1 only). A row is scales, in half, and then sites; the scales of `along` are
 * those of -2 .. x+1.
 *
 * Banks: the four lanes t of a fragment load take 32 bytes each, of the rows along x, y, z and t.
 * Rows start at y + 2 z + o units of 32 bytes past a multiple of 128 where a site has 64 bytes
 * modulo 128, and at y + 3 z + 2 o where it has none; rows of `along` where a row that begins with
 * its first site would have it. Then the four differ modulo 128 bytes for both ways and both
 * hops. */
struct long_stage {
  const md_march_plan &plan;
  char *memory;
  uint64_t *filled, *emptied; /* as in struct stage */
  int rows, rim_rows;         /* of a slot of the centre and of `along`, and of the rim */
  __device__ long_stage(char *at, const md_march_plan &p)
      : plan(p), memory(at), filled(reinterpret_cast<uint64_t *>(at)), emptied(filled + MARCH_RING),
        rows(md_own_rows(&p)), rim_rows(md_rim_rows(&p)) {}

  /* Bytes from `memory` to the scales of a row of slot 0; slot k follows k times the ring's
   * slot_bytes later. */
  __device__ int centre(int row) const { return MARCH_BARRIERS + row * plan.centre.row_bytes; }
  __device__ int rim(int row) const {
    return MARCH_BARRIERS + plan.centre.bytes + row * plan.rim.row_bytes;
  }
  __device__ int along(int row) const {
    return MARCH_BARRIERS + plan.centre.bytes + plan.rim.bytes + row * plan.along.row_bytes;
  }
  /* Place in banks of the row y, z (of the column's corner) with x offset 0, units of 32 bytes. */
  __device__ int bank(int y, int z) const { return y + (3 - wide()) * z & 3; }
  __device__ int wide() const { return plan.site_bytes % 128 ? 1 : 0; }
  /* Where the sites of a row start whose scales end at `at`. */
  __device__ int sites(int at, int bank, int odd) const {
    return at + (32 * (bank + odd * (2 - wide())) - at & 127);
  }
  __device__ int sites_along(int at, int bank, int odd) const {
    return at + (32 * (bank + odd * (2 - wide())) + (odd - 2) * plan.site_bytes - at & 127);
  }
};

/* Steps of a slice. In 16 bits all tiles have one, and the compiler knows it. */
template <typename T> __device__ inline int steps_of(const md_march_plan &plan) {
  if constexpr (storage<T>::adjacent) return 1;
  return plan.steps;
}

} // namespace stacked

#endif
