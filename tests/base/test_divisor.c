/* Division by multiplication agrees with division, where there is no rest and where it is largest.
 */
#include "base/divisor.h"
#include "support.h"

static void divides(void **state) {
  (void)state;
  static const int numbers[] = {0, 1, 2, 3, 107, 108, 1727, 65535, 1000003, 2147483646, 2147483647};
  for (int by = 1; by < 3000; by++) {
    const md_divisor d = md_divisor_of(by);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
      assert_int_equal(md_quotient(numbers[i], d), numbers[i] / by);
    for (int n = by - 1; n < 100 * by; n += by) assert_int_equal(md_quotient(n, d), n / by);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(divides)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
