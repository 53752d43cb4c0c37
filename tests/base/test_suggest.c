/* The nearest known name, and none where all are far. */
#include "base/text.h"
#include "support.h"

#include <string.h>

static void letters_apart(void **state) {
  static const struct {
    const char *a, *b;
    int apart;
  } cases[] = {{"solve", "solve", 0}, {"sovle", "solve", 1},
               {"slve", "solve", 1},  {"solvee", "solve", 1},
               {"solvr", "solve", 1}, {"sleov", "solve", 3},
               {"SOLVE", "solve", 0}, {"Sovle", "solve", 1},
               {"losve", "solve", 2}, {"", "ab", 2},
               {"abc", "", 3},        {"ca", "abc", 3}}; /* no letter is edited twice */
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *a = cases[i].a, *b = cases[i].b;
    const int there = md_letters_apart(a, strlen(a), b, strlen(b));
    const int back = md_letters_apart(b, strlen(b), a, strlen(a));
    if (there != cases[i].apart || back != there) fail_msg("%s, %s: %d, %d", a, b, there, back);
  }
}

static void long_words_are_far(void **state) {
  char word[200];
  (void)state;
  memset(word, 'a', sizeof word);
  assert_int_equal(md_letters_apart(word, sizeof word, word, sizeof word), 3);
}

static void suggests(const char *word, const char *expected) {
  md_suggestion nearest = md_suggest(word);
  md_suggest_choices(&nearest, "none|single|half|bf16|fixed|cg|18|12");
  if (strcmp(nearest.text, expected) != 0) fail_msg("%s%s", word, nearest.text);
}

static void nearest_of_the_choices(void **state) {
  (void)state;
  suggests("sinlge", "; did you mean 'single'?");
  suggests("bf61", "; did you mean 'bf16'?");
  suggests("mixed", "; did you mean 'fixed'?");
  suggests("quarter", "");
  suggests("x", ""); /* two letters off is no likeness for one or two letters */
  suggests("gc", "; did you mean 'cg'?");
  suggests("99", "");
  suggests("HALF", "; did you mean 'half'?");
  suggests("float", "; did you mean 'single'?");
  suggests("fp32", "; did you mean 'single'?");
  suggests("gpu", "");
}

/* What others call ours. */
static void other_names(void **state) {
  md_suggestion nearest = md_suggest("GPU");
  (void)state;
  md_suggest_choices(&nearest, "auto|cpu_ref|cpu_simd|cuda|tensor|tensor_emu");
  assert_string_equal(nearest.text, "; did you mean 'cuda' or 'tensor'?");
  nearest = md_suggest("gpu");
  md_suggest_choices(&nearest, "host|device|both");
  assert_string_equal(nearest.text, "; did you mean 'device'?");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(letters_apart), cmocka_unit_test(long_words_are_far),
      cmocka_unit_test(nearest_of_the_choices), cmocka_unit_test(other_names)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
