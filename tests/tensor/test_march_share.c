/* The blocks of a march walk through every time slice of every column once, in shares that the rule
 * of march.h calls even, and fill no slot of shared memory before its last reader is done. */
#include "dirac/tensor/march.h"
#include "support.h"

#include <stdlib.h>
#include <string.h>

/* The longest walk of a block in slices and the most segments of one. */
static int longest_walk(const md_march_share *s, int columns, int slices, int *segments) {
  char *seen = calloc((size_t)columns * (size_t)slices, 1);
  int longest = 0;
  *segments = 0;
  assert_non_null(seen);
  for (int block = 0; block < s->blocks; block++) {
    md_march_walk w = md_march_begin(s, block);
    int column, t, last, mine = 0, parts = 0;
    for (; md_march_next(s, block, &w, &column, &t, &last); parts++) {
      assert_in_range(column, 0, columns - 1);
      assert_true(0 <= t && t <= last && last < slices);
      for (; t <= last; t++, mine++) assert_int_equal(seen[column * slices + t]++, 0);
    }
    if (mine > longest) longest = mine;
    if (parts > *segments) *segments = parts;
  }
  assert_null(memchr(seen, 0, (size_t)columns * (size_t)slices));
  free(seen);
  return longest;
}

static void every_slice_has_a_block(void **state) {
  (void)state;
  int segments;
  for (int blocks = 1; blocks <= 140; blocks += blocks < 6 ? 1 : 33)
    for (int columns = 1; columns < 300; columns += columns < 20 ? 1 : 29)
      for (int slices = 1; slices <= 64; slices += slices < 5 ? 1 : 3)
        for (int start = 0; start < 4; start += 3) {
          const md_march_share s = md_march_share_out(columns, slices, blocks, start);
          longest_walk(&s, columns, slices, &segments);
        }
}

/* Of lattices that are measured in bench/h200: shares no longer than said. */
static void shares_are_even(void **state) {
  (void)state;
  static const struct {
    int columns, slices, longest, segments;
  } cases[] = {
      {32, 16, 4, 1},    /* 16^4: an even share would be 3.9 */
      {108, 32, 28, 6},  /* 24^3 x 32: 26.2 */
      {128, 32, 32, 1},  /* 32^4: 31.0 */
      {128, 64, 64, 1},  /* 32^3 x 64: 62.1 */
      {432, 64, 211, 5}, /* 48^3 x 64: 209.5 */
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const md_march_share s = md_march_share_out(cases[i].columns, cases[i].slices, 132, 1.0);
    int segments;
    assert_in_range(longest_walk(&s, cases[i].columns, cases[i].slices, &segments), 1,
                    cases[i].longest);
    assert_in_range(segments, 1, cases[i].segments);
  }
}

static void even_blocks_where_they_win(void **state) {
  (void)state;
  assert_int_equal(md_march_even_blocks(128, 16, 132), 128);
  assert_int_equal(md_march_even_blocks(512, 16, 132), 128);
  assert_int_equal(md_march_even_blocks(432, 32, 132), 132);
  assert_int_equal(md_march_even_blocks(132, 32, 132), 132);
  assert_int_equal(md_march_even_blocks(32, 16, 132), 132);
}

/* Segments of so many steps; a step reads the newest `kept` + 1 slots. */
static void check_slots(const md_march_plan *plan, int kept, const int *lengths, int segments) {
  enum { STEPS = 64 };
  const int slots = plan->ring + kept + plan->spare;
  int newest[STEPS], filled = 0, step = 0, before = 0, done = -1;
  for (int n = 0; n < segments; before = lengths[n++])
    for (int k = 0; k < lengths[n]; k++, step++) {
      const int fills = k == 0 ? kept + 1 : 1;
      for (int i = 0; i < fills; i++, filled++) {
        int last = step - 1; /* the last reader of what lay there */
        while (last >= 0 && newest[last] - kept > filled - slots) last--;
        const int back = md_march_back(plan, k == 0, i, before);
        assert_in_range(back, 1, plan->ring);
        if (step - back > done) done = step - back;
        if (filled >= slots && done < last)
          fail_msg("ring %d, spare %d, kept %d, segments of %d, %d, %d, %d: step %d fills slot %d "
                   "behind step %d, which step %d reads",
                   plan->ring, plan->spare, kept, lengths[0], lengths[1], lengths[2], lengths[3],
                   step, i, done, last);
      }
      newest[step] = filled - 1;
    }
}

static void no_slot_is_filled_too_early(void **state) {
  (void)state;
  enum { SEGMENTS = 4, LONGEST = 9 };
  static const int kept[] = {2, 2 * MARCH_REACH, 4 * MARCH_REACH};
  for (int ring = 2; ring <= MARCH_RING; ring++)
    for (int spare = 0; spare <= 2; spare += 2)
      for (int k = 0; k < 3; k++)
        for (int code = 0; code < LONGEST * LONGEST * LONGEST * LONGEST; code++) {
          const md_march_plan plan = {.ring = ring, .spare = spare};
          int lengths[SEGMENTS], rest = code;
          for (int n = 0; n < SEGMENTS; n++, rest /= LONGEST) lengths[n] = 1 + rest % LONGEST;
          check_slots(&plan, kept[k], lengths, SEGMENTS);
        }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_slot_is_filled_too_early), cmocka_unit_test(every_slice_has_a_block),
      cmocka_unit_test(shares_are_even), cmocka_unit_test(even_blocks_where_they_win)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
