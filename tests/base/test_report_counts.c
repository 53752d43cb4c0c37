/* Counts of 2^31 and more stand in a report as they are; a row is in the table and in JSON what its
 * description says. */
#include "base/report.h"
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

#define COLUMNS                                                                                    \
  "name=%-6s count|n=%4d large=%lld |twice~it=%8.1e share=%6.2f seen=%hhd empty=%s none=%g |=%s"

/* What `print` says on stdout. */
static void printed(void (*print)(cJSON *), cJSON *rows, char *text, size_t bytes) {
  FILE *file = tmpfile();
  fflush(stdout);
  const int before = dup(STDOUT_FILENO);
  assert_true(file && before >= 0 && dup2(fileno(file), STDOUT_FILENO) >= 0);
  print(rows);
  fflush(stdout);
  dup2(before, STDOUT_FILENO);
  close(before);
  rewind(file);
  text[fread(text, 1, bytes - 1, file)] = '\0';
  fclose(file);
}

static void print_rows(cJSON *rows) {
  const md_context context = {.ranks = 1};
  const char *volatile nothing = NULL; /* which the compiler does not see */
  md_rows_head(&context, COLUMNS);
  md_rows_add(&context, rows, COLUMNS, "one", 7, 5000000000LL, 14.0, 0.125, (bool)true, nothing,
              NAN, "");
  md_rows_add(&context, rows, COLUMNS, "two", -1, 0LL, NAN, INFINITY, (bool)false, "x", 1.0, " !");
}

static void rows_are_as_described(void **state) {
  (void)state;
  char text[512];
  cJSON *rows = cJSON_CreateArray();
  printed(print_rows, rows, text, sizeof text);
  assert_string_equal(text, "name      n twice it  share\n"
                            "one       7  1.4e+01   0.12\n"
                            "two      -1        -      - !\n");
  char *json = cJSON_PrintUnformatted(rows);
  assert_string_equal(json, "[{\"name\":\"one\",\"count\":7,\"large\":5000000000,\"share\":0.125,"
                            "\"seen\":true,\"empty\":null,\"none\":null},"
                            "{\"name\":\"two\",\"count\":-1,\"large\":0,\"share\":null,"
                            "\"seen\":false,\"empty\":\"x\",\"none\":1}]");
  free(json);
  cJSON_Delete(rows);
}

static bool note_skipped(cJSON *skipped, const char *name, const char *key, const char *reason) {
  cJSON *row = cJSON_CreateObject();
  md_report_add(row, "name=%s", name);
  return md_rows_skip(skipped, row, key, reason);
}

/* Once for each reason and key, which may be none. */
static void what_is_skipped_is_said_once(void **state) {
  (void)state;
  cJSON *skipped = cJSON_CreateArray();
  assert_null(md_rows_skipped(skipped));
  assert_true(note_skipped(skipped, "a", "name", "too small"));
  assert_false(note_skipped(skipped, "a", "name", "too small"));
  assert_true(note_skipped(skipped, "b", "name", "too small"));
  assert_true(note_skipped(skipped, "b", "name", "too large"));
  assert_false(note_skipped(skipped, "c", NULL, "too large"));
  assert_int_equal(cJSON_GetArraySize(skipped), 5);
  assert_string_equal(md_rows_skipped(skipped), "too small");
  cJSON_Delete(skipped);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(counts_beyond_an_int),
                                     cmocka_unit_test(rows_are_as_described),
                                     cmocka_unit_test(what_is_skipped_is_said_once)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
