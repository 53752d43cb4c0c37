#include "base/number.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What strtoll and strtod would skip or take beside decimal digits: blanks, a plus, hexadecimal. */
static int starts_badly(const char *text) {
  return !((*text >= '0' && *text <= '9') || *text == '-' || *text == '.');
}
static int is_hexadecimal(const char *text) {
  return text[strspn(text, "-0")] == 'x' || text[strspn(text, "-0")] == 'X';
}

/* An integer that ends at `end`; *text moves behind that. */
static md_number take(const char **text, char end, long long low, long long high,
                      long long *value) {
  char *after;
  errno = 0;
  const long long number = strtoll(*text, &after, 10);
  if (starts_badly(*text) || after == *text || *after != end) return MD_NUMBER_MALFORMED;
  if (errno == ERANGE || number < low || number > high) return MD_NUMBER_OUTSIDE;
  *text = end ? after + 1 : after;
  *value = number;
  return MD_NUMBER_OK;
}

md_number md_number_integer(const char *text, long long low, long long high, long long *value) {
  return take(&text, '\0', low, high, value);
}

md_number md_number_integers(const char *text, char separator, int count, long long low,
                             long long high, long long *values) {
  md_number found = MD_NUMBER_OK;
  for (int i = 0; i < count && found == MD_NUMBER_OK; i++)
    found = take(&text, i + 1 < count ? separator : '\0', low, high, &values[i]);
  return found;
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
