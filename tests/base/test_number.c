/* Texts as numbers: whole, in range, nothing wraps around. Numbers with errors as texts. */
#include "base/text.h"
#include "support.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

static void errors_have_two_digits(void **state) {
  static const struct {
    double value, error;
    const char *text;
  } cases[] = {{0.581187, 0.000312, "0.58119(31)"},
               {-0.581187, 0.000312, "-0.58119(31)"},
               {0.581187, 0.000996, "0.5812(10)"}, /* rounds up to another place */
               {0.99996, 0.00012, "0.99996(12)"},
               {3.44, 1.2, "3.4(1.2)"},
               {123.4, 12, "123(12)"},
               {0.00012345, 0.0000067, "0.0001234(67)"},
               {12345678.9, 0.25, "12345678.90(25)"},
               {0.5, 12, "0(12)"}, /* error larger than the value */
               {1e-9, 0.031, "0.000(31)"},
               {0.0, 1e-9, "0.0(1.0)e-09"},
               {45, 123, "0.4(1.2)e+02"},
               {150432, 1234, "1.504(12)e+05"},
               {9.9999e9, 1.2e7, "1.0000(12)e+10"},
               {1.5e300, 2.1e298, "1.500(21)e+300"},
               {-1.5e-300, 2.1e-302, "-1.500(21)e-300"},
               {4e-320, 1.2e-321, "4.00(12)e-320"},
               {1.0, 1e-20, "1 +- 1.0e-20"},
               {0.5, 0.0, "0.5(0)"},
               {0.5, INFINITY, "0.5(inf)"},
               {0.581187, -0.000312, "0.58119(31)"},
               {0.581187, NAN, "0.581187"},
               {NAN, 0.1, "nan"},
               {INFINITY, 0.1, "inf"}};
  char text[MD_ERROR_TEXT];
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_string_equal(md_format_error(cases[i].value, cases[i].error, text), cases[i].text);
  /* Read back, value and error are what they were to two digits of the error. */
  for (int e = -12; e <= 12; e++)
    for (int k = 1; k < 200; k++) {
      const double error = 0.013 * k * pow(10.0, e), value = 3.7 * pow(1.3, k - 100);
      double exponent = 1.0;
      const char *digits = strchr(md_format_error(value, error, text), '(');
      if (!digits) continue; /* apart */
      const char *behind = strchr(digits, ')') + 1,
                 *point = memchr(text, '.', (size_t)(digits - text));
      if (*behind) exponent = pow(10.0, atof(behind + 1));
      double found = atof(digits + 1);
      if (!memchr(digits, '.', (size_t)(behind - digits)) && point)
        found *= pow(10.0, (double)(point + 1 - digits));
      if (!(fabs(found * exponent - error) <= 0.051 * error) ||
          !(fabs(atof(text) * exponent - value) <= 0.051 * error + 1e-12 * value))
        fail_msg("%.17g +- %.17g is %s", value, error, text);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(integers_are_whole_and_in_range),
                                     cmocka_unit_test(lists_have_the_asked_count),
                                     cmocka_unit_test(reals_are_finite),
                                     cmocka_unit_test(errors_have_two_digits)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
