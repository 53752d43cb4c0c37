#include "base/suggest.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { MOST_LETTERS = 63, TOO_FAR = 3 };

/* What others call ours; only what is offered too is named. */
static const char *const OTHER_NAMES[][2] = {
    {"gpu", "cuda"},     {"gpu", "tensor"},     {"gpu", "device"},  {"cpu", "cpu_simd"},
    {"cpu", "host"},     {"float", "single"},   {"fp64", "double"}, {"float64", "double"},
    {"fp32", "single"},  {"float32", "single"}, {"fp16", "half"},   {"float16", "half"},
    {"bfloat16", "bf16"}};

static int least(int a, int b) {
  return a < b ? a : b;
}

static int lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? letter - 'A' + 'a' : letter;
}

int md_letters_apart(const char *a, size_t a_length, const char *b, size_t b_length) {
  if (a_length > MOST_LETTERS || b_length > MOST_LETTERS) return TOO_FAR;
  const int m = (int)a_length, n = (int)b_length;
  int apart[MOST_LETTERS + 1][MOST_LETTERS + 1]; /* of the first i letters and the first j */
  for (int i = 0; i <= m; i++) apart[i][0] = i;
  for (int j = 0; j <= n; j++) apart[0][j] = j;
  for (int i = 1; i <= m; i++)
    for (int j = 1; j <= n; j++) {
      const int changed = apart[i - 1][j - 1] + (lower(a[i - 1]) != lower(b[j - 1]));
      apart[i][j] = least(changed, 1 + least(apart[i - 1][j], apart[i][j - 1]));
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
          lower(a[i - 2]) == lower(b[j - 1]))
        apart[i][j] = least(apart[i][j], apart[i - 2][j - 2] + 1);
    }
  return least(apart[m][n], TOO_FAR);
}

md_suggestion md_suggest(const char *word) {
  return (md_suggestion){.word = word, .distance = TOO_FAR};
}

static bool is_other_name(const char *word, const char *name, size_t length) {
  for (size_t i = 0; i < sizeof OTHER_NAMES / sizeof *OTHER_NAMES; i++)
    if (strcasecmp(word, OTHER_NAMES[i][0]) == 0 && strlen(OTHER_NAMES[i][1]) == length &&
        strncmp(OTHER_NAMES[i][1], name, length) == 0)
      return true;
  return false;
}

void md_suggest_name(md_suggestion *s, const char *name, size_t length) {
  const size_t word = strlen(s->word), used = strlen(s->text);
  const bool same = is_other_name(s->word, name, length);
  const int apart = same ? 0 : md_letters_apart(s->word, word, name, length);
  if (same && s->distance == 0) { /* both are meant */
    snprintf(s->text + used - 1, sizeof s->text - (used - 1), " or '%.*s'?", (int)length, name);
    return;
  }
  if (apart >= s->distance || (!same && (apart >= (int)word || apart >= (int)length))) return;
  s->distance = apart;
  snprintf(s->text, sizeof s->text, "; did you mean '%.*s'?", (int)length, name);
}

void md_suggest_choices(md_suggestion *s, const char *choices) {
  for (const char *word = choices; *word; word += *word == '|') {
    const size_t length = strcspn(word, "|");
    md_suggest_name(s, word, length);
    word += length;
  }
}
