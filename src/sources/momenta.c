#include "base/text.h"
#include "sources/sources.h"

#include <stdio.h>
#include <string.h>

enum { LARGEST = 1000 }; /* component of a momentum */

/* All n with n^2 at most `most` and the first component that is not zero positive. */
static bool fill_up_to(int most, md_momentum_list *list) {
  for (int square = 0; square <= most; square++)
    for (int i = 0; i <= square; i++)
      for (int j = -square; j <= square; j++)
        for (int k = -square; k <= square; k++) {
          const bool first = i > 0 || (i == 0 && (j > 0 || (j == 0 && k >= 0)));
          if (!first || i * i + j * j + k * k != square) continue;
          if (list->count == MD_MOMENTA_MOST) return false;
          memcpy(list->n[list->count++], (const int[]){i, j, k}, sizeof list->n[0]);
        }
  return true;
}

static bool read_list(const char *text, md_momentum_list *list) {
  for (;;) {
    char one[64];
    long long n[3];
    const size_t length = strcspn(text, ";");
    snprintf(one, sizeof one, "%.*s", (int)length, text);
    if (length >= sizeof one || list->count == MD_MOMENTA_MOST ||
        md_number_integers(one, ',', 3, -LARGEST, LARGEST, n) != MD_NUMBER_OK)
      return false;
    for (int d = 0; d < 3; d++) list->n[list->count][d] = (int)n[d];
    list->count++;
    text += length;
    if (*text++ == '\0') return true;
  }
}

md_status md_momenta_parse(md_context *context, const char *label, const char *text, void *target) {
  static const char upto[] = "upto:";
  md_momentum_list *list = target;
  long long most;
  *list = (md_momentum_list){0};
  const bool all = strncmp(text, upto, sizeof upto - 1) == 0;
  const bool read =
      all ? md_number_integer(text + sizeof upto - 1, 0, LARGEST, &most) == MD_NUMBER_OK &&
                fill_up_to((int)most, list)
          : read_list(text, list);
  if (read) return MD_OK;
  return md_fail(context, MD_INPUT,
                 "%s must be a list X,Y,Z;X,Y,Z;... of 1 to %d momenta, integers from %d to %d, or "
                 "upto:N with as many, got '%.200s'",
                 label, MD_MOMENTA_MOST, -LARGEST, LARGEST, text);
}

md_momenta md_momenta_of(const md_momentum_list *list) {
  return (md_momenta){.count = list->count ? list->count : 1, .n = list->n};
}
