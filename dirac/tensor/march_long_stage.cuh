#ifndef MD_DIRAC_TENSOR_MARCH_LONG_STAGE_CUH
#define MD_DIRAC_TENSOR_MARCH_LONG_STAGE_CUH

#include "dirac/tensor/march_stage.cuh"

/* The march with two link fields, whose hops reach 1 and 3 sites: what its feeding and computing
 * warps agree on. */
namespace stacked {

/* Shared memory of a block: barriers, then three rings of slots, each slot the rows of one time
 * slice. `centre` holds the column's own rows, of plan.x sites, of the time slices t-3 .. t+3;
 * `rim` the rows of slice t at up to three places before and beyond the column along y and z;
 * `along` for each centre row of slice t the sites before and beyond it along x. A row of the
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
  int rows, rim_rows;         /* of the centre, and of `along` */
  __device__ long_stage(char *at, const md_march_plan &p)
      : plan(p), memory(at), filled(reinterpret_cast<uint64_t *>(at)), emptied(filled + MARCH_RING),
        rows(p.y * p.z), rim_rows(2 * MARCH_REACH * (p.y + p.z)) {}

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

/* A row of `rim`: its place relative to the column's corner. */
struct long_rim_place {
  int y, z;
  static __device__ int outside(int k, int extent) {
    return k < MARCH_REACH ? k - MARCH_REACH : extent + k - MARCH_REACH;
  }
  __device__ long_rim_place(const md_march_plan &plan, int row) {
    const int along_y = 2 * MARCH_REACH * plan.z;
    if (row < along_y) {
      const parts at(row, plan.by_z);
      y = outside(at.quotient, plan.y), z = at.rest;
    } else {
      const parts at(row - along_y, plan.by_y);
      y = at.rest, z = outside(at.quotient, plan.z);
    }
  }
  /* The row at that place. */
  static __device__ int row(const md_march_plan &plan, int y, int z) {
    const auto inward = [](int place, int extent) {
      return place < 0 ? place + MARCH_REACH : place - extent + MARCH_REACH;
    };
    return y < 0 || y >= plan.y ? inward(y, plan.y) * plan.z + z
                                : 2 * MARCH_REACH * plan.z + inward(z, plan.z) * plan.y + y;
  }
};

} // namespace stacked

#endif
