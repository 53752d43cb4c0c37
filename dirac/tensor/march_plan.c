#include "dirac/tensor/march.h"

enum { WARPS_LEAST = 8 };

/* A ring of `slots` slots of `rows` rows, each of `sites` sites and, in half, `scales` scales.
 * The sites of a row have room to start at any of four places. */
static md_march_ring ring_of(const md_march_plan *plan, int slots, int rows, int sites,
                             int scales) {
  const int scale_bytes = (scales * (int)sizeof(float) + 31) / 32 * 32;
  const int row_bytes = scale_bytes + 96 + sites * plan->site_bytes;
  const int slot_bytes = (rows * row_bytes + 127) / 128 * 128;
  return (md_march_ring){scale_bytes, row_bytes, slot_bytes, slots * slot_bytes};
}

static void find_divisors(md_march_plan *plan) {
  const int band = plan->columns[0] * plan->band;
  plan->by_x = md_divisor_of(plan->x);
  plan->by_y = md_divisor_of(plan->y);
  plan->by_depth = md_divisor_of(plan->z / plan->steps);
  plan->by_columns = md_divisor_of(plan->columns[0]);
  plan->by_band = md_divisor_of(band);
  plan->by_layer = md_divisor_of(band * plan->columns[2]);
}

/* Shared memory with `ring` steps under way, see struct stage of the kernel; `most`: bytes. */
static bool lay_out(md_precision precision, int ring, int spare, int most, md_march_plan *plan) {
  const bool half = precision == MD_HALF;
  plan->ring = ring;
  plan->spare = spare;
  if (plan->fields == 2) {
    const int kept = 2 * MARCH_REACH * plan->steps, scales = half ? plan->x : 0;
    plan->centre = ring_of(plan, ring + kept + spare, md_own_rows(plan), plan->x, scales);
    plan->rim = ring_of(plan, ring, md_rim_rows(plan), plan->x, scales);
    plan->along = ring_of(plan, ring, md_own_rows(plan), MARCH_REACH, half ? plan->x + 4 : 0);
    plan->shared_bytes = MARCH_BARRIERS + plan->centre.bytes + plan->rim.bytes + plan->along.bytes;
    return plan->shared_bytes <= most;
  }
  plan->centre =
      ring_of(plan, ring + 2 + spare, plan->y * plan->z, plan->x + 1, half ? plan->x + 5 : 0);
  plan->rim = ring_of(plan, ring, 2 * (plan->y + plan->z), plan->x, half ? plan->x : 0);
  plan->shared_bytes = MARCH_BARRIERS + plan->centre.bytes + plan->rim.bytes;
  return plan->shared_bytes <= most;
}

/* Which sites of a tile a warp takes, at least so many of a row. */
static bool share_out(int least, md_march_plan *plan) {
  const int sites = plan->x * plan->y * plan->z;
  plan->passes = plan->steps;
  if (plan->fields == 1) {
    plan->warp_sites = least;
    while (sites > MARCH_WARPS * plan->warp_sites || plan->x % plan->warp_sites)
      if ((plan->warp_sites += least) > plan->x) return false;
    plan->warps = sites / plan->warp_sites;
    return plan->warps >= WARPS_LEAST;
  }
  plan->warps = LONG_WARPS;
  for (; plan->passes <= LONG_PASSES; plan->passes++) {
    const int in_pass = sites / plan->passes;
    plan->warp_sites = in_pass / LONG_WARPS;
    if (plan->warp_sites > 0 && sites % (plan->passes * LONG_WARPS * least) == 0 &&
        plan->x % plan->warp_sites == 0 && in_pass % plan->x == 0)
      return true;
  }
  return false;
}

static int columns_of(const md_backend_request *r) {
  return md_request_slices(r) * r->n_rhs;
}

/* Bytes of a source site, 0 where no march takes it. */
static int site_bytes_of(const md_backend_request *r) {
  const bool spin = md_action_has_spin(r->action);
  const int columns = columns_of(r);
  const bool taken = spin
                         ? r->precision != MD_DOUBLE && columns <= MARCH_COLUMNS && columns % 4 == 0
                         : r->n_rhs == 8 || r->n_rhs == 16;
  return taken ? md_request_reals(r) * r->n_rhs * (int)md_precision_bytes(r->precision) : 0;
}

bool md_march_serves(const md_backend_request *request) {
  return site_bytes_of(request) > 0;
}

/* Plans with a tile x, y, z of so many steps a time slice; false when it does not fit. */
static bool plan_tile(const md_backend_request *request, const int local[MD_DIMS],
                      const md_device_facts *gpu, const int tile[4], md_march_plan *plan) {
  const md_precision precision = request->precision;
  const int fields = md_action_get(request->action)->fields;
  const bool spin = md_action_has_spin(request->action);
  const int site_bytes = site_bytes_of(request);
  if (site_bytes == 0 || tile[0] > MARCH_X) return false;
  const int extent[3] = {local[0] / 2, local[1], local[2]};
  *plan = (md_march_plan){.fields = fields,
                          .x = tile[0],
                          .y = tile[1],
                          .z = tile[2],
                          .steps = tile[3],
                          .blocks = gpu->multiprocessors};
  for (int d = 0; d < 3; d++) {
    if (tile[d] < 1 || extent[d] % tile[d]) return false;
    plan->columns[d] = extent[d] / tile[d];
  }
  const int rows = fields == 2 ? plan->steps * (2 * md_own_rows(plan) + md_rim_rows(plan))
                               : tile[1] * tile[2] + 2 * (tile[1] + tile[2]);
  if (rows > 32 * MARCH_FEEDERS) return false;
  /* What lies three sites before and beyond a column is found going round the lattice once. */
  for (int d = 1; d < MD_DIMS && fields == 2; d++)
    if (local[d] < 2 * MARCH_REACH) return false;
  if (!share_out(spin || precision == MD_DOUBLE ? 1 : 4, plan)) return false;
  plan->site_bytes = site_bytes;
  plan->band = md_march_band(plan->columns, plan->y, plan->z, plan->blocks);
  find_divisors(plan);
  /* A block of another kernel has a place beside the march. With two spare slots a new segment,
   * which takes three (seven) at once, need not wait for the last. */
  const int walls = spin ? MARCH_WALL_BYTES : 0;
  const int most = gpu->block_shared_bytes - gpu->reserved_shared_bytes - walls;
  for (int ring = MARCH_RING; ring >= 2; ring--)
    for (int spare = 2; spare >= 0; spare -= 2)
      if (lay_out(precision, ring, spare, most, plan)) return true;
  return false;
}

int md_march_plans(const md_backend_request *request, const int local[MD_DIMS],
                   const md_device_facts *gpu, md_march_plan plan[MARCH_TILES]) {
  /* Each in the order of their speed on an H200. */
  static const int one_field[MARCH_TILES][4] = {{8, 4, 4, 1}, {8, 2, 8, 1}, {8, 8, 2, 1},
                                                {8, 4, 2, 1}, {4, 4, 4, 1}, {4, 2, 4, 1},
                                                {4, 4, 2, 1}};
  static const int one_double[MARCH_TILES][4] = {{4, 4, 4, 1}, {2, 4, 4, 1}, {4, 2, 4, 1},
                                                 {4, 4, 2, 1}, {4, 2, 2, 1}, {2, 2, 4, 1}};
  static const int two_fields[MARCH_TILES][4] = {{8, 4, 4, 1}, {4, 4, 4, 1}, {8, 4, 2, 1},
                                                 {8, 2, 4, 1}, {4, 4, 2, 1}, {4, 2, 4, 1}};
  static const int two_double[MARCH_TILES][4] = {{4, 4, 2, 2}, {2, 4, 2, 2}, {4, 2, 2, 1},
                                                 {2, 2, 4, 1}, {2, 4, 2, 1}, {2, 2, 2, 1}};
  static const int with_spin[MARCH_TILES][4] = {{4, 4, 4, 1}, {4, 4, 2, 1}, {4, 2, 4, 1},
                                                {8, 2, 4, 1}, {8, 4, 2, 1}, {8, 2, 2, 1}};
  const int fields = md_action_get(request->action)->fields;
  const bool wide = request->precision == MD_DOUBLE;
  const int(*const tiles)[4] = md_action_has_spin(request->action) ? with_spin
                               : fields == 1                       ? (wide ? one_double : one_field)
                                             : (wide ? two_double : two_fields);
  /* A block's first step brings three or seven time slices: with fewer steps than this gathering is
   * faster. */
  const int least_steps = fields == 2 ? 7 : 3;
  int count = 0;
  for (int n = 0; n < MARCH_TILES && gpu->code >= 90; n++) {
    md_march_plan *next = &plan[count];
    if (!plan_tile(request, local, gpu, tiles[n], next)) continue;
    const double columns = (double)next->columns[0] * next->columns[1] * next->columns[2];
    count += columns * local[MD_T] >= (double)least_steps * gpu->multiprocessors;
  }
  return count;
}
