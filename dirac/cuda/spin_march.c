/* Tiles of the march of quarks with four spins. */
#include "dirac/cuda/spin_march.h"

#include <math.h>
#include <stdlib.h>

enum { LEAST_THREADS = 32, LEAST_LINK_SLOTS = 4, LEAST_SLICES = 3 };
/* A segment has two steps more than slices. */
static const double START = 2.0;

static int round_up(int n, int to) {
  return (n + to - 1) / to * to;
}

/* Lays out a tile, whose sides and columns are set; false where it does not fit. */
static bool lay_out(const md_device_facts *gpu, const md_backend_request *request, int reals,
                    md_spin_march *m) {
  const int real_bytes = (int)md_precision_bytes(request->precision);
  const int rows = m->y * m->z, around = 2 * (m->y + m->z);
  m->sites = m->x * rows;
  m->threads = m->sites * m->columns;
  if (m->threads < LEAST_THREADS ||
      m->threads > (real_bytes == 8 ? MD_SPIN_IN_DOUBLE : MD_SPIN_IN_SINGLE))
    return false; /* their bytes could be more than an int holds */
  m->computing = round_up(m->threads, 32);
  m->spinor_bytes = md_action_reals(request->action) * real_bytes;
  m->site_bytes = m->columns * m->spinor_bytes;
  m->centre_bytes = round_up((m->x + 1) * m->site_bytes, 128);
  m->rim_bytes = round_up(m->x * m->site_bytes, 128);
  m->slot_bytes = rows * m->centre_bytes + around * m->rim_bytes;
  m->result_bytes = rows * m->centre_bytes;
  if (rows > around) {
    m->result_bytes = m->slot_bytes;
    m->slot_bytes += rows * m->rim_bytes;
  }
  m->link_bytes = m->sites * reals * real_bytes;
  if (m->link_bytes % 16 != 0) return false;
  m->slots = MD_SPIN_SLOTS;
  const int left = gpu->block_shared_bytes - MD_SPIN_BARRIERS - m->slots * m->slot_bytes;
  m->link_slots = left > 0 ? left / m->link_bytes : 0;
  if (m->link_slots > MD_SPIN_LINK_SLOTS) m->link_slots = MD_SPIN_LINK_SLOTS;
  m->shared_bytes = MD_SPIN_BARRIERS + m->slots * m->slot_bytes + m->link_slots * m->link_bytes;
  return m->link_slots >= LEAST_LINK_SLOTS;
}

/* About the clocks of a step: bytes from memory and through L2, legs that follow each other, and
 * rows of sources and results that are copied one after the other, all of which overlap. The
 * constants fit the times of 76 tiles on an H200 to 8 %. */
static double step_clocks(const md_spin_march *m, int link_bytes, const md_device_facts *gpu) {
  enum { L2_BYTES = 23, LEGS = 3900, LEGS_OF_WARP = 280, ROW = 92 }; /* L2: of a clock */
  const double rate = gpu->bandwidth / (1e6 * gpu->clock_mhz * gpu->multiprocessors);
  const double of_memory = m->sites * (2.0 * m->site_bytes + link_bytes) / rate;
  const double sources = 1.0 + 1.0 / m->x + 2.0 / m->y + 2.0 / m->z;
  const double through = m->sites * ((sources + 1.0) * m->site_bytes + link_bytes) / L2_BYTES;
  const double legs = LEGS + LEGS_OF_WARP * m->computing / 32.0;
  const double copies = ROW * (2.0 * m->y * m->z + 2.0 * (m->y + m->z));
  const double known = isfinite(of_memory) ? pow(of_memory, 5.0) : 0.0;
  return pow(known + pow(through, 5.0) + pow(legs, 5.0) + pow(copies, 5.0), 0.2);
}

/* Of the block with most work. */
static double clocks_of(const md_spin_march *m, int link_bytes, const md_device_facts *gpu) {
  const md_march_share *s = &m->share;
  const double steps = s->full * (s->slices + START) + (s->owners > 0 ? s->own + START : 0.0);
  return steps * step_clocks(m, link_bytes, gpu);
}

md_spin_march md_spin_march_plan(const md_backend_request *request, const md_geometry *g,
                                 const md_device_facts *gpu) {
  md_spin_march best = {0};
  const int real_bytes = (int)md_precision_bytes(request->precision);
  const bool divided = g->halo_sites > 0;
  if (!md_action_has_spin(request->action) || request->n_rhs != 1 || gpu->code < 90 ||
      real_bytes == 2 || g->split[MD_X] || g->split[MD_Y] || g->split[MD_Z] ||
      (divided && g->local[MD_T] < LEAST_SLICES))
    return best;
  const int half = g->local[0] / 2, slices = md_request_slices(request);
  const int reals = atoi(md_reconstruct_name(request->reconstruct)); /* the table's names */
  double least = INFINITY;
  for (int x = 1; x <= half; x++)
    for (int y = 1; y <= g->local[1]; y++)
      for (int z = 1; z <= g->local[2]; z++) {
        if (half % x || g->local[1] % y || g->local[2] % z) continue;
        md_spin_march m = {.x = x, .y = y, .z = z, .columns = slices};
        if (!lay_out(gpu, request, reals, &m)) continue;
        m.tiles = half / x * (g->local[1] / y) * (g->local[2] / z);
        m.share = md_march_share_out(m.tiles, g->local[MD_T], gpu->multiprocessors, START);
        const double clocks = clocks_of(&m, MD_DIRECTIONS * reals * real_bytes, gpu);
        if (clocks < least) least = clocks, best = m;
      }
  if (best.x == 0) return best;
  best.divided = divided;
  best.half = half, best.ly = g->local[1], best.lz = g->local[2], best.lt = g->local[MD_T];
  best.by_row = md_divisor_of(best.x * slices);
  best.by_columns = md_divisor_of(slices);
  best.by_y = md_divisor_of(best.y);
  const int tiles[3] = {half / best.x, best.ly / best.y, best.lz / best.z};
  best.band = md_march_band(tiles, best.y, best.z, gpu->multiprocessors);
  best.by_tiles = md_divisor_of(tiles[0]);
  best.by_band = md_divisor_of(tiles[0] * best.band);
  best.by_layer = md_divisor_of(tiles[0] * best.band * tiles[2]);
  return best;
}

md_spin_march md_spin_march_part(const md_spin_march *m, md_range range) {
  md_spin_march part = *m;
  if (range == MD_RANGE_ALL || (!m->divided && range == MD_RANGE_INTERIOR)) return part;
  part.share = (md_march_share){0};
  if (!m->divided) return part;
  part.ends = range == MD_RANGE_BOUNDARY;
  part.shift = part.ends ? 0 : 1;
  part.share = md_march_share_out(part.ends ? 2 * m->tiles : m->tiles, part.ends ? 1 : m->lt - 2,
                                  m->share.blocks, START);
  return part;
}

void md_spin_march_order(const md_spin_march *m, int32_t *order) {
  const int rows = m->y * m->z;
  for (int column = 0; column < m->tiles; column++) {
    const md_spin_tile tile = md_spin_tile_of(m, column);
    for (int t = 0; t < m->lt; t++)
      for (int r = 0; r < rows; r++)
        for (int x = 0; x < m->x; x++)
          *order++ = md_spin_row(m, &tile, r, t) * m->half + tile.x + x;
  }
}
