/* Counts of 2^31 and more stand in a report as they are. */
#include "base/report.h"
#include "support.h"

#include <stdlib.h>
#include <string.h>

static void counts_beyond_an_int(void **state) {
  const long long counts[] = {0, 2147483647, 2147483648, 5000000000, 999999999999999};
  cJSON *root = cJSON_CreateObject();
  (void)state;
  md_report_counts(root, "histogram", counts, 5);
  char *text = cJSON_PrintUnformatted(root), *at = strchr(text, '[') + 1;
  for (int i = 0; i < 5; i++) assert_true(strtod(at, &at) == (double)counts[i] && *at++);
  free(text);
  cJSON_Delete(root);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(counts_beyond_an_int)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
