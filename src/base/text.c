#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Bytes of the UTF-8 character at `at` (RFC 3629) and its code; 0 when there is none: overlong
 * forms, surrogates and codes above U+10FFFF included. A zero byte ends the text, so nothing is
 * read behind it. */
static int character_at(const unsigned char *at, uint32_t *code) {
  static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
  const int length = at[0] < 0x80             ? 1
                     : (at[0] & 0xe0) == 0xc0 ? 2
                     : (at[0] & 0xf0) == 0xe0 ? 3
                     : (at[0] & 0xf8) == 0xf0 ? 4
                                              : 0;
  if (length < 2) {
    *code = at[0];
    return length;
  }
  *code = at[0] & (0x7fu >> length);
  for (int i = 1; i < length; i++) {
    if ((at[i] & 0xc0) != 0x80) return 0;
    *code = *code << 6 | (at[i] & 0x3fu);
  }
  const bool surrogate = *code >= 0xd800 && *code < 0xe000;
  return *code < least[length] || *code > 0x10ffff || surrogate ? 0 : length;
}

/* Separators of lines and paragraphs; embeddings, overrides and isolates of direction. */
static bool misleads(uint32_t code) {
  return code == 0x200e || code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
}

size_t md_printable(const char *text, bool keep_newlines, char *printable, size_t bytes) {
  const unsigned char *at = (const unsigned char *)text;
  size_t used = 0;
  while (*at) {
    char piece[16];
    uint32_t code = 0;
    const int length = character_at(at, &code);
    const bool control = code < 0x20 || (code >= 0x7f && code < 0xa0);
    if (length == 0 || (control && !(keep_newlines && code == '\n')))
      if (length == 2)
        snprintf(piece, sizeof piece, "\\x%02x\\x%02x", at[0], at[1]);
      else
        snprintf(piece, sizeof piece, "\\x%02x", at[0]);
    else if (misleads(code))
      snprintf(piece, sizeof piece, "\\u%04x", (unsigned)code);
    else
      snprintf(piece, sizeof piece, "%.*s", length, (const char *)at);
    const size_t more = strlen(piece);
    if (used + more >= bytes) break;
    memcpy(printable + used, piece, more);
    used += more;
    at += length > 0 ? length : 1;
  }
  printable[used] = 0;
  return used;
}

const char *md_base_of(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

const char *md_plural(long long count) {
  return count == 1 ? "" : "s";
}

bool md_append(char *text, size_t bytes, const char *format, ...) {
  const size_t used = strnlen(text, bytes - 1);
  va_list arguments;
  va_start(arguments, format);
  const int more = vsnprintf(text + used, bytes - used, format, arguments);
  va_end(arguments);
  return more >= 0 && used + (size_t)more < bytes;
}

/* Of the first digit of a number, rounded to `places` digits behind it. */
static int exponent_of(double number, int places) {
  char text[MD_ERROR_TEXT];
  snprintf(text, sizeof text, "%.*e", places, number);
  return atoi(strchr(text, 'e') + 1);
}

const char *md_format_error(double value, double error, char text[MD_ERROR_TEXT]) {
  enum { MOST_PLACES = 16 }; /* behind the first digit */
  char two[16];
  if (!isfinite(value) || isnan(error))
    snprintf(text, MD_ERROR_TEXT, "%.12g", value);
  else if (error == 0.0 || isinf(error))
    snprintf(text, MD_ERROR_TEXT, "%.12g(%g)", value, fabs(error));
  if (!isfinite(value) || isnan(error) || error == 0.0 || isinf(error)) return text;
  error = fabs(error);
  snprintf(two, sizeof two, "%.1e", error);
  const double larger = fmax(fabs(value), error);
  const int last = exponent_of(error, 1) - 1, places = exponent_of(larger, MOST_PLACES) - last;
  if (places > MOST_PLACES) {
    snprintf(text, MD_ERROR_TEXT, "%.17g +- %s", value, two);
    return text;
  }
  const int top = exponent_of(larger, places);
  const bool plain = last <= 0 && top >= -4;
  const int decimals = plain ? -last : top - last;
  const char *point = decimals == 1 ? "." : "";
  snprintf(text, MD_ERROR_TEXT, "%.*Lf(%c%s%c)", decimals,
           plain ? (long double)value : (long double)value / powl(10.0L, top), two[0], point,
           two[2]);
  if (!plain) md_append(text, MD_ERROR_TEXT, "e%+03d", top);
  return text;
}

/* What strtoll and strtod would skip or take beside decimal digits: blanks, a plus, hexadecimal. */
static int starts_badly(const char *text) {
  return !((*text >= '0' && *text <= '9') || *text == '-' || *text == '.');
}
static int is_hexadecimal(const char *text) {
  return text[strspn(text, "-0")] == 'x' || text[strspn(text, "-0")] == 'X';
}

md_number md_number_integers(const char *text, char separator, int count, long long low,
                             long long high, long long *values) {
  for (int i = 0; i < count; i++) {
    char *after;
    errno = 0;
    const long long number = strtoll(text, &after, 10);
    if (starts_badly(text) || after == text || *after != (i + 1 < count ? separator : '\0'))
      return MD_NUMBER_MALFORMED;
    if (errno == ERANGE || number < low || number > high) return MD_NUMBER_OUTSIDE;
    values[i] = number;
    text = after + 1;
  }
  return MD_NUMBER_OK;
}

md_number md_number_integer(const char *text, long long low, long long high, long long *value) {
  return md_number_integers(text, '\0', 1, low, high, value);
}

md_number md_number_real(const char *text, double low, double high, double *value) {
  char *after;
  const double number = strtod(text, &after);
  if (starts_badly(text) || is_hexadecimal(text) || after == text || *after || !isfinite(number))
    return MD_NUMBER_MALFORMED;
  if (!(number >= low && number <= high)) return MD_NUMBER_OUTSIDE;
  *value = number;
  return MD_NUMBER_OK;
}

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
