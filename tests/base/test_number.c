/* Texts as numbers: whole, in range, nothing wraps around. */
#include "base/text.h"
#include "support.h"

#include <limits.h>
#include <math.h>

static void integers_are_whole_and_in_range(void **state) {
  static const struct {
    const char *text;
    long long low, high;
    md_number expected;
    long long value;
  } cases[] = {{"4", 1, 9, MD_NUMBER_OK, 4},
               {"-4", -9, 9, MD_NUMBER_OK, -4},
               {"4294967300", 1, 32767, MD_NUMBER_OUTSIDE, 0},
               {"18446744073709551620", 1, LLONG_MAX, MD_NUMBER_OUTSIDE, 0}, /* 2^64 + 4 */
               {"9223372036854775807", 1, LLONG_MAX, MD_NUMBER_OK, LLONG_MAX},
               {"9223372036854775808", 1, LLONG_MAX, MD_NUMBER_OUTSIDE, 0},
               {"0", 1, 9, MD_NUMBER_OUTSIDE, 0},
               {"10", 1, 9, MD_NUMBER_OUTSIDE, 0},
               {"", 1, 9, MD_NUMBER_MALFORMED, 0},
               {"-", -9, 9, MD_NUMBER_MALFORMED, 0},
               {" 4", 1, 9, MD_NUMBER_MALFORMED, 0},
               {"+4", 1, 9, MD_NUMBER_MALFORMED, 0},
               {"4 ", 1, 9, MD_NUMBER_MALFORMED, 0},
               {"4x", 1, 9, MD_NUMBER_MALFORMED, 0},
               {"4.0", 1, 9, MD_NUMBER_MALFORMED, 0},
               {"0x4", 0, 9, MD_NUMBER_MALFORMED, 0}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    long long value = 0;
    const md_number found = md_number_integer(cases[i].text, cases[i].low, cases[i].high, &value);
    if (found != cases[i].expected || value != cases[i].value)
      fail_msg("'%s' gives %d, %lld", cases[i].text, (int)found, value);
  }
}

static void lists_have_the_asked_count(void **state) {
  long long v[4];
  (void)state;
  assert_int_equal(md_number_integers("4x5x6x70", 'x', 4, 1, 99, v), MD_NUMBER_OK);
  assert_int_equal(v[0] * 1000000 + v[1] * 10000 + v[2] * 100 + v[3], 4050670);
  static const char *const bad[] = {"4x5x6",  "4x5x6x7x8", "4x5x6x",
                                    "x5x6x7", "4x5 x6x7",  "4,5,6,7"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    if (md_number_integers(bad[i], 'x', 4, 1, 99, v) != MD_NUMBER_MALFORMED) fail_msg("%s", bad[i]);
  assert_int_equal(md_number_integers("4x4x4294967300x4", 'x', 4, 1, 99, v), MD_NUMBER_OUTSIDE);
}

static void reals_are_finite(void **state) {
  double value = 0.0;
  (void)state;
  assert_int_equal(md_number_real("-1.5e-3", -1.0, 1.0, &value), MD_NUMBER_OK);
  assert_true(value == -1.5e-3);
  assert_int_equal(md_number_real(".5", -1.0, 1.0, &value), MD_NUMBER_OK);
  assert_int_equal(md_number_real("2", -1.0, 1.0, &value), MD_NUMBER_OUTSIDE);
  static const char *const bad[] = {"nan", "inf", "-inf",     "1e999", "",        " 1",
                                    "1,5", "1m",  "-",        "0x10",  "-0X1p-3", "1e",
                                    "+1",  "1 ",  "infinity", "-nan",  "nan(1)"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    if (md_number_real(bad[i], -HUGE_VAL, HUGE_VAL, &value) != MD_NUMBER_MALFORMED)
      fail_msg("%s", bad[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(integers_are_whole_and_in_range),
                                     cmocka_unit_test(lists_have_the_asked_count),
                                     cmocka_unit_test(reals_are_finite)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
