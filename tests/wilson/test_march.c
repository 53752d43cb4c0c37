/* The march of quarks with four spins on CUDA cores, without a GPU: what its rows hold are the
 * neighbours of the sites that read them, its slots are all sites in the order of its walk, and on
 * other GPUs than the one that was measured its tiles fit. */
#include "dirac/cuda/spin_march.h"
#include "support.h"

#include <math.h>
#include <stdlib.h>

enum { KIB = 1024 };
static md_device_facts facts_of(int code, int multiprocessors, int shared_kib) {
  return (md_device_facts){.open = true,
                           .code = code,
                           .multiprocessors = multiprocessors,
                           .block_shared_bytes = shared_kib * KIB,
                           .clock_mhz = 1980,
                           .bandwidth = 3.35e12};
}

static md_spin_march plan_of(const md_geometry *g, const md_device_facts *gpu,
                             md_precision precision, int slices) {
  const md_backend_request request = {.action = slices > 1 ? MD_ACTION_MOBIUS : MD_ACTION_WILSON,
                                      .precision = precision,
                                      .n_rhs = 1,
                                      .walls = {.slices = slices}};
  return md_spin_march_plan(&request, g, gpu);
}

/* A time slice of a tile as the feeding warp leaves it: the site at each place of each row. */
typedef struct held {
  int *site, places;
} held;

static int first_of(const md_spin_march *m, const md_spin_tile *tile, int r, int t) {
  return md_spin_row(m, tile, r, t) * m->half;
}

static bool is_up(const md_geometry *g, int parity, int64_t first) {
  int x[MD_DIMS];
  md_global_coordinates(g, parity, first, x);
  return x[MD_X] & 1;
}

/* Neighbour in stored direction 2 to 5 of dirac/cuda/stencil.h. */
static int beside(const md_geometry *g, int parity, int direction, int site) {
  const int mu = direction / 2;
  return g->neighbour[parity][direction % 2 == 0 ? mu : MD_DIMS + mu][site];
}

static void hold(const md_geometry *g, const md_spin_march *m, const md_spin_tile *tile, int parity,
                 int t, const held *slot) {
  const int rows = m->y * m->z;
  for (int r = 0; r < rows; r++) {
    const int first = first_of(m, tile, r, t);
    const bool up = is_up(g, parity, first);
    const md_spin_centre c = md_spin_centre_of(m, tile->x, up);
    int *const row = slot->site + r * slot->places;
    for (int k = 0; k < c.count; k++) row[c.place + k] = first + c.from + k;
    if (c.edge_place >= 0)
      row[c.edge_place] = up ? g->neighbour[parity][MD_X][first + m->half - 1]
                             : g->neighbour[parity][MD_DIMS + MD_X][first];
    assert_true(c.place + c.count <= m->x + 1);
  }
  for (int r = 0; r < 2 * (m->y + m->z); r++) {
    const md_spin_rim rim = md_spin_rim_of(m, r);
    const int of = first_of(m, tile, rim.of, t) + tile->x;
    for (int h = 0; h < m->x; h++)
      slot->site[(rows + r) * slot->places + h] = beside(g, parity, rim.direction, of) + h;
  }
}

/* Each output site of the tile finds its six neighbours of the time slice where it reads. */
static void check_slice(const md_geometry *g, const md_spin_march *m, const md_spin_tile *tile,
                        int parity, int t, const held *slot) {
  for (int r = 0; r < m->y * m->z; r++)
    for (int h = 0; h < m->x; h++) {
      const int first = first_of(m, tile, r, t), site = first + tile->x + h;
      const bool up = is_up(g, parity, first);
      const int *const own = slot->site + r * slot->places;
      assert_int_equal(own[up ? h + 1 : h], g->neighbour[parity][up ? MD_X : MD_DIMS][site]);
      assert_int_equal(own[up ? h : h + 1], g->neighbour[parity][up ? MD_DIMS : MD_X][site]);
      for (int d = 2; d < 6; d++) {
        const int to = md_spin_neighbour(m, r, d), inside = to < m->y * m->z;
        assert_int_equal(slot->site[to * slot->places + h + (inside && up)],
                         beside(g, parity, d, site));
      }
    }
}

static void rows_hold_neighbours(void **state) {
  static const int dims[][MD_DIMS] = {{8, 4, 4, 4}, {4, 6, 4, 4}, {12, 2, 6, 2}, {16, 8, 12, 2}};
  md_context *context = *state;
  const md_device_facts gpus[] = {facts_of(90, 132, 227), facts_of(90, 4, 99)};
  for (int i = 0; i < 4 * 2 * 3; i++) {
    const int *d = dims[i % 4], slices = (int[]){1, 4, 9}[i / 8];
    md_geometry *g = md_test_geometry(context, d[0], d[1], d[2], d[3], false);
    const md_spin_march m = plan_of(g, &gpus[i / 4 % 2], MD_SINGLE, slices);
    assert_true(m.x > 0);
    const held slot = {
        calloc(1, (size_t)(3 * m.y * m.z + 2 * (m.y + m.z)) * (size_t)(m.x + 1) * sizeof(int)),
        m.x + 1};
    const int tiles = m.half / m.x * (m.ly / m.y) * (m.lz / m.z);
    for (int n = 0; n < tiles * m.lt * MD_PARITIES; n++) {
      const md_spin_tile tile = md_spin_tile_of(&m, n % tiles);
      const int t = n / tiles % m.lt, parity = n / tiles / m.lt;
      hold(g, &m, &tile, parity, t, &slot);
      check_slice(g, &m, &tile, parity, t, &slot);
    }
    free(slot.site);
    md_geometry_destroy(g);
  }
}

/* Of a whole plan: slots are all sites, a slot of the ring has room for its rows and the results,
 * which may lie in the rim's place alone, and all fits. */
static void check_plan(const md_geometry *g, const md_device_facts *gpu, int real_bytes,
                       const md_spin_march *m) {
  int32_t *order = calloc(1, (size_t)g->sites * sizeof *order);
  bool *found = calloc(1, (size_t)g->sites * sizeof *found);
  md_spin_march_order(m, order);
  for (int64_t i = 0; i < g->sites; i++) {
    assert_in_range(order[i], 0, g->sites - 1);
    assert_false(found[order[i]]);
    found[order[i]] = true;
  }
  free(order);
  free(found);
  const int rows = m->y * m->z, around = 2 * (m->y + m->z), rim = rows * m->centre_bytes;
  assert_true(m->result_bytes == rim || m->result_bytes == rim + around * m->rim_bytes);
  assert_true(m->result_bytes + rows * m->rim_bytes <= m->slot_bytes);
  assert_true(rim + around * m->rim_bytes <= m->slot_bytes);
  assert_true(m->centre_bytes >= (m->x + 1) * m->site_bytes && m->centre_bytes % 128 == 0);
  assert_true(m->rim_bytes >= m->x * m->site_bytes && m->rim_bytes % 128 == 0);
  assert_int_equal(m->site_bytes, m->columns * md_action_reals(MD_ACTION_WILSON) * real_bytes);
  assert_int_equal(m->link_bytes % 16, 0);
  assert_in_range(m->threads, 1, real_bytes == 8 ? MD_SPIN_IN_DOUBLE : MD_SPIN_IN_SINGLE);
  assert_int_equal(m->slots, MD_SPIN_SLOTS);
  assert_in_range(m->link_slots, 2, MD_SPIN_LINK_SLOTS);
  assert_true(16 * (MD_SPIN_SLOTS + MD_SPIN_LINK_SLOTS) + 8 * (MD_SPIN_SLOTS + 1) <=
              MD_SPIN_BARRIERS);
  assert_true(MD_SPIN_BARRIERS + m->slots * m->slot_bytes + m->link_slots * m->link_bytes <=
              m->shared_bytes);
  assert_true(m->shared_bytes <= gpu->block_shared_bytes);
  int64_t walked = 0;
  for (int block = 0, column, t, last; block < m->share.blocks; block++) {
    md_march_walk w = md_march_begin(&m->share, block);
    while (md_march_next(&m->share, block, &w, &column, &t, &last))
      walked += (int64_t)(last - t + 1) * m->sites;
  }
  assert_int_equal(walked, g->sites);
}

static void plans_fit_any_gpu(void **state) {
  static const int dims[][MD_DIMS] = {
      {8, 8, 8, 8}, {24, 24, 24, 4}, {32, 32, 4, 16}, {10, 6, 4, 6}};
  const md_device_facts gpus[] = {facts_of(90, 132, 227), facts_of(100, 148, 227),
                                  facts_of(120, 170, 99), facts_of(90, 4, 99)};
  int plans = 0;
  for (int i = 0; i < 4 * 4; i++) {
    const int *d = dims[i / 4];
    md_geometry *g = md_test_geometry(*state, d[0], d[1], d[2], d[3], false);
    for (int slices = 1; slices <= 33; slices += 4)
      for (int p = MD_DOUBLE; p <= MD_SINGLE; p++) {
        const md_spin_march m = plan_of(g, &gpus[i % 4], (md_precision)p, slices);
        if (m.x == 0) continue;
        check_plan(g, &gpus[i % 4], (int)md_precision_bytes((md_precision)p), &m);
        plans++;
      }
    md_geometry_destroy(g);
  }
  assert_true(plans > 150);
}

/* With t divided interior and boundary walk through every slice of every tile once, the boundary
 * through the first and the last one. */
static void parts_are_all(void **state) {
  static const int dims[][MD_DIMS] = {{8, 8, 8, 4}, {24, 24, 24, 16}, {32, 32, 4, 6}};
  const md_device_facts gpu = facts_of(90, 132, 227);
  for (int i = 0; i < 3; i++) {
    const int *d = dims[i];
    md_geometry *g = md_test_geometry(*state, d[0], d[1], d[2], d[3], false);
    md_spin_march m = plan_of(g, &gpu, MD_DOUBLE, 8);
    assert_int_equal(md_spin_march_part(&m, MD_RANGE_BOUNDARY).share.blocks, 0);
    assert_int_equal(md_spin_march_part(&m, MD_RANGE_INTERIOR).share.slices, m.lt);
    m.divided = true;
    int *walked = calloc((size_t)(m.tiles * m.lt), sizeof *walked);
    for (int range = MD_RANGE_INTERIOR; range <= MD_RANGE_BOUNDARY; range++) {
      const md_spin_march part = md_spin_march_part(&m, (md_range)range);
      for (int block = 0, column, t, last; block < part.share.blocks; block++) {
        md_march_walk w = md_march_begin(&part.share, block);
        while (md_spin_march_next(&part, block, &w, &column, &t, &last))
          for (; t <= last; t++) {
            assert_true((t == 0 || t == m.lt - 1) == (range == MD_RANGE_BOUNDARY));
            walked[column * m.lt + t]++;
          }
      }
    }
    for (int k = 0; k < m.tiles * m.lt; k++) assert_int_equal(walked[k], 1);
    free(walked);
    md_geometry_destroy(g);
  }
}

/* The bytes of its largest tiles are more than an int holds (seen by a sanitizer alone). */
static void large_lattices_march(void **state) {
  (void)state;
  const md_device_facts gpu = facts_of(90, 132, 227);
  const md_geometry g = {.local = {96, 96, 96, 8}};
  const md_spin_march m = plan_of(&g, &gpu, MD_DOUBLE, 16);
  assert_in_range(m.threads, 1, MD_SPIN_IN_DOUBLE);
}

static void others_gather(void **state) {
  const md_device_facts hopper = facts_of(90, 132, 227), ampere = facts_of(80, 108, 163);
  md_geometry *g = md_test_geometry(*state, 8, 8, 8, 8, false);
  md_geometry *split = md_test_geometry(*state, 8, 8, 8, 8, true);
  assert_true(plan_of(g, &hopper, MD_DOUBLE, 8).x > 0);
  assert_int_equal(plan_of(g, &ampere, MD_DOUBLE, 8).x, 0);
  assert_int_equal(plan_of(g, &hopper, MD_HALF, 8).x, 0);
  assert_int_equal(plan_of(split, &hopper, MD_DOUBLE, 8).x, 0);
  md_geometry_destroy(g);
  md_geometry_destroy(split);
}

static struct CMUnitTest tests[] = {
    cmocka_unit_test(rows_hold_neighbours), cmocka_unit_test(plans_fit_any_gpu),
    cmocka_unit_test(parts_are_all), cmocka_unit_test(large_lattices_march),
    cmocka_unit_test(others_gather)};
MD_RUN_TESTS(tests)
