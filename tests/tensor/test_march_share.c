/* The blocks of a march walk through every time slice of every column once, in shares that the rule
 * of march.h calls even. */
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

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_slice_has_a_block),
                                     cmocka_unit_test(shares_are_even),
                                     cmocka_unit_test(even_blocks_where_they_win)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
