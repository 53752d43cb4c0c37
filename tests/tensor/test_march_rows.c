/* The march with two link fields finds around its column every row that a step reads, and nothing
 * else; the tiles that were measured are the ones that are chosen; what follows from a GPU is valid
 * on others than the one that was measured. */
#include "dirac/cuda/stencil.h"
#include "dirac/tensor/march.h"
#include "support.h"

enum { KIB = 1024, MIB = 1024 * KIB };
static md_device_facts facts_of(int code, int multiprocessors, int shared_kib, long long l2_mib) {
  return (md_device_facts){.open = true,
                           .code = code,
                           .multiprocessors = multiprocessors,
                           .block_shared_bytes = shared_kib * KIB,
                           .reserved_shared_bytes = KIB,
                           .l2_bytes = l2_mib * MIB};
}
static md_device_facts h200(void) {
  return facts_of(90, 132, 227, 60);
}

/* x, y, z, steps of a slice; 0: no plan, the sources are gathered. */
typedef struct chosen {
  md_precision precision;
  int n_rhs, local[MD_DIMS], tile[4];
} chosen;
static const chosen cases[] = {{MD_DOUBLE, 16, {48, 48, 48, 64}, {2, 4, 2, 2}},
                               {MD_DOUBLE, 16, {32, 32, 32, 32}, {2, 4, 2, 2}},
                               {MD_DOUBLE, 8, {32, 32, 32, 32}, {4, 4, 2, 2}},
                               {MD_DOUBLE, 8, {20, 24, 24, 32}, {2, 4, 2, 2}},
                               {MD_DOUBLE, 8, {32, 30, 30, 32}, {4, 2, 2, 1}},
                               {MD_DOUBLE, 16, {32, 30, 32, 32}, {2, 2, 2, 1}},
                               {MD_HALF, 16, {32, 32, 32, 32}, {4, 4, 4, 1}},
                               {MD_HALF, 8, {32, 32, 32, 32}, {8, 4, 4, 1}},
                               {MD_BF16, 16, {24, 24, 24, 32}, {4, 4, 4, 1}},
                               {MD_DOUBLE, 16, {8, 8, 8, 8}, {0}},
                               {MD_HALF, 3, {32, 32, 32, 32}, {0}},
                               {MD_DOUBLE, 16, {32, 32, 32, 4}, {0}}};

static bool plan_of(const chosen *c, md_march_plan *plan) {
  const md_device_facts gpu = h200();
  md_march_plan plans[MARCH_TILES];
  const md_backend_request request = {
      .action = MD_ACTION_HISQ, .precision = c->precision, .n_rhs = c->n_rhs};
  const int count = md_march_plans(&request, c->local, &gpu, plans);
  if (count > 0) *plan = plans[0];
  return count > 0;
}

static void tiles_are_those_measured(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    md_march_plan plan = {0};
    const int *tile = cases[i].tile;
    assert_int_equal(plan_of(&cases[i], &plan), tile[0] > 0);
    if (tile[0] == 0) continue;
    const int got[4] = {plan.x, plan.y, plan.z, plan.steps};
    for (int k = 0; k < 4; k++)
      if (got[k] != tile[k])
        fail_msg("case %zu: tile %dx%dx%d in %d steps", i, got[0], got[1], got[2], got[3]);
    assert_in_range(plan.shared_bytes, 1, 226 * KIB);
  }
}

static bool is_outside(const md_march_plan *plan, int y, int z) {
  return y < 0 || y >= plan->y || z < 0 || z >= plan->z;
}

/* The hop from a site of the plane; whether it leaves the column is counted in `reads` of its row.
 */
static void follow(const md_march_plan *plan, int plane, int y, int z, int reads[]) {
  if (!is_outside(plan, y, z)) return;
  const int row = md_rim_row_at(plan, y, z, plane);
  assert_in_range(row, 0, 32 * MARCH_FEEDERS - 1);
  const md_rim_place p = md_rim_place_of(plan, row, plane);
  assert_int_equal(p.y, y);
  assert_int_equal(p.z, z);
  reads[row]++;
}

static void rows_are_those_read(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    md_march_plan plan = {0};
    if (!plan_of(&cases[i], &plan)) continue;
    const int depth = plan.z / plan.steps;
    const int rows = plan.rim.slot_bytes / plan.rim.row_bytes; /* one or none more than needed */
    for (int step = 0; step < plan.steps; step++) {
      const int plane = step * depth;
      int reads[32 * MARCH_FEEDERS] = {0}, used = 0;
      for (int y = 0; y < plan.y; y++)
        for (int z = plane; z < plane + depth; z++)
          for (int reach = -MARCH_REACH; reach <= MARCH_REACH; reach += 2) {
            follow(&plan, plane, y + reach, z, reads);
            follow(&plan, plane, y, z + reach, reads);
          }
      while (used < 32 * MARCH_FEEDERS && reads[used] > 0) used++;
      for (int row = used; row < 32 * MARCH_FEEDERS; row++) assert_int_equal(reads[row], 0);
      assert_int_equal(used, md_rim_rows(&plan));
      assert_in_range(used, 1, rows);
      assert_in_range(plan.steps * (2 * md_own_rows(&plan) + used), 1, 32 * MARCH_FEEDERS);
    }
  }
}

/* A plan covers the time slice by whole tiles, fits into what a block may have beside another one,
 * and its shares walk through all. */
static void check_plan(const md_device_facts *gpu, const md_march_plan *plan,
                       const int local[MD_DIMS]) {
  const int tile[3] = {plan->x, plan->y, plan->z};
  for (int d = 0; d < 3; d++)
    assert_int_equal(plan->columns[d] * tile[d], d == 0 ? local[0] / 2 : local[d]);
  assert_int_equal(plan->blocks, gpu->multiprocessors);
  assert_true(plan->shared_bytes <= gpu->block_shared_bytes - gpu->reserved_shared_bytes);
  assert_in_range(plan->ring, 2, MARCH_RING);
  assert_in_range(plan->warps, 1, MARCH_WARPS);
  assert_int_equal(plan->columns[1] % plan->band, 0);
  const int columns = plan->columns[0] * plan->columns[1] * plan->columns[2];
  const md_march_share s = md_march_share_out(columns, local[MD_T], plan->blocks, plan->fields);
  int walked = 0, column, t, last;
  for (int block = 0; block < s.blocks; block++) {
    md_march_walk w = md_march_begin(&s, block);
    while (md_march_next(&s, block, &w, &column, &t, &last)) walked += last - t + 1;
  }
  assert_int_equal(walked, columns * local[MD_T]);
}

/* Of every plan, each with a tile of its own. Returns whether there is one. */
static bool check_plans(const md_device_facts *gpu, md_precision precision, int fields, int n_rhs,
                        const int local[MD_DIMS]) {
  md_march_plan plan[MARCH_TILES] = {0};
  const md_backend_request request = {.action = fields == 2 ? MD_ACTION_HISQ : MD_ACTION_NAIVE,
                                      .precision = precision,
                                      .n_rhs = n_rhs};
  const int plans = md_march_plans(&request, local, gpu, plan);
  for (int n = 0; n < plans; n++) {
    assert_int_equal(plan[n].fields, fields);
    check_plan(gpu, &plan[n], local);
    for (int m = 0; m < n; m++)
      assert_false(plan[m].x == plan[n].x && plan[m].y == plan[n].y && plan[m].z == plan[n].z &&
                   plan[m].steps == plan[n].steps);
  }
  return plans > 0;
}

/* The code of 8.0 that an A100 and an L40 run has no march; what a march would be there counts all
 * the same, as the next GPU may have as little room. */
static void plans_suit_other_gpus(void **state) {
  (void)state;
  static const int locals[][MD_DIMS] = {{32, 32, 32, 32}, {48, 48, 48, 64}, {24, 24, 24, 32}};
  static const struct {
    int code, least;
    md_device_wish wish; /* the last is a GPU of few multiprocessors, for small lattices */
  } gpus[] = {{80, 24, {108, 163, 40, 80}},
              {89, 12, {142, 99, 96, 89}},
              {90, 24, {148, 227, 126, 100}},
              {90, 12, {4, 99, 1, 0}}};
  for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++) {
    md_device_facts gpu = h200();
    int plans = 0;
    md_device_pretend(&gpu, &gpus[i].wish);
    assert_int_equal(gpu.code, gpus[i].code);
    for (size_t l = 0; l < sizeof locals / sizeof *locals; l++)
      for (int of = 0; of < 8; of++) {
        const md_precision precision = of & 1 ? MD_DOUBLE : MD_HALF;
        const int fields = of & 2 ? 2 : 1, n_rhs = of & 4 ? 16 : 8;
        gpu.code = gpus[i].code;
        const bool found = check_plans(&gpu, precision, fields, n_rhs, locals[l]);
        assert_true(!found || gpu.code >= 90);
        gpu.code = 90;
        plans += check_plans(&gpu, precision, fields, n_rhs, locals[l]);
      }
    if (plans < gpus[i].least) fail_msg("GPU %zu: %d plans", i, plans);
  }
}

/* With spin a site has as many bytes as slices; a slice count that leaves sites unaligned, double
 * and more right-hand sides are gathered. */
static void spins_have_tiles(void **state) {
  (void)state;
  static const struct {
    int slices, n_rhs, tile[3];
    md_precision precision;
  } of[] = {{8, 1, {4, 4, 4}, MD_HALF},  {8, 1, {4, 4, 4}, MD_BF16}, {12, 1, {4, 4, 2}, MD_HALF},
            {16, 1, {4, 4, 2}, MD_HALF}, {4, 1, {4, 4, 4}, MD_HALF}, {10, 1, {0}, MD_HALF},
            {20, 1, {0}, MD_BF16},       {8, 2, {0}, MD_HALF},       {8, 1, {0}, MD_DOUBLE}};
  static const int local[MD_DIMS] = {32, 32, 32, 64};
  const md_device_facts gpu = h200();
  for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
    const md_backend_request request = {.action = MD_ACTION_MOBIUS,
                                        .precision = of[i].precision,
                                        .n_rhs = of[i].n_rhs,
                                        .walls = {.slices = of[i].slices}};
    md_march_plan plan[MARCH_TILES] = {0};
    const int plans = md_march_plans(&request, local, &gpu, plan), *tile = of[i].tile;
    assert_int_equal(plans > 0, tile[0] > 0);
    assert_int_equal(md_march_serves(&request), tile[0] > 0);
    if (plans > 0 && (plan->x != tile[0] || plan->y != tile[1] || plan->z != tile[2]))
      fail_msg("%d slices: tile %dx%dx%d", of[i].slices, plan->x, plan->y, plan->z);
    for (int n = 0; n < plans; n++) check_plan(&gpu, &plan[n], local);
  }
}

/* What is pretended, and that a block gets no more memory and no newer code than there is. */
static void facts_are_pretended(void **state) {
  (void)state;
  md_device_facts gpu = h200();
  char before[MD_DEVICE_WORDS_BYTES], after[MD_DEVICE_WORDS_BYTES];
  const md_device_wish none = {0}, larger = {264, 300, 120, 120};
  md_device_words(&gpu, before);
  md_device_pretend(&gpu, &none);
  assert_string_equal(md_device_words(&gpu, after), before);
  md_device_pretend(&gpu, &larger);
  assert_int_equal(gpu.multiprocessors, 264);
  assert_int_equal(gpu.block_shared_bytes, 227 * KIB);
  assert_int_equal(gpu.l2_bytes, 120 * MIB);
  assert_int_equal(gpu.code, 90);
  assert_int_equal(gpu.capability, 120);
  assert_string_not_equal(md_device_words(&gpu, after), before);
}

/* In proportion to the GPU, and on an H200 what was measured there. */
static void launches_follow_the_gpu(void **state) {
  (void)state;
  const md_device_facts measured = h200(), a100 = facts_of(80, 108, 163, 40),
                        b200 = facts_of(100, 148, 227, 126);
  for (int p = 0; p < MD_PRECISIONS; p++) {
    const int bytes = (int)md_precision_bytes(p);
    assert_int_equal(md_stencil_few_slots(&measured, p), bytes << 15);
    assert_true(md_stencil_few_slots(&a100, p) * 132 / 108 - (bytes << 15) <= 1);
    assert_true(md_stencil_few_slots(&b200, p) > bytes << 15);
  }
  assert_true(md_stencil_keeps_links(&measured, (size_t)40 * MIB - 1));
  assert_false(md_stencil_keeps_links(&measured, (size_t)40 * MIB));
  assert_false(md_stencil_keeps_links(&a100, (size_t)27 * MIB));
  assert_true(md_stencil_keeps_links(&b200, (size_t)80 * MIB));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tiles_are_those_measured), cmocka_unit_test(rows_are_those_read),
      cmocka_unit_test(spins_have_tiles),         cmocka_unit_test(plans_suit_other_gpus),
      cmocka_unit_test(facts_are_pretended),      cmocka_unit_test(launches_follow_the_gpu)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
