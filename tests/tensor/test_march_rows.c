/* The march with two link fields finds around its column every row that a step reads, and nothing
 * else; the tiles that were measured are the ones that are chosen. */
#include "dirac/tensor/march_rows.h"
#include "support.h"

/* An H200. */
static const md_march_room room = {.multiprocessors = 132, .shared_bytes = 231424};

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
  return md_march_plan_make(c->precision, 2, c->n_rhs, c->local, &room, plan);
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
    assert_in_range(plan.shared_bytes, 1, room.shared_bytes);
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

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(tiles_are_those_measured),
                                     cmocka_unit_test(rows_are_those_read)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
