#include "base/precision.h"

#include <string.h>

static const struct {
  const char *name;
  size_t bytes;
  double roundoff;
} table[MD_PRECISIONS] = {
    [MD_DOUBLE] = {"double", 8, 0x1p-53},
    [MD_SINGLE] = {"single", 4, 0x1p-24},
    [MD_HALF] = {"half", 2, 0x1p-11},
    [MD_BF16] = {"bf16", 2, 0x1p-8},
};

size_t md_precision_bytes(md_precision precision) {
  return table[precision].bytes;
}
const char *md_precision_name(md_precision precision) {
  return table[precision].name;
}
double md_precision_roundoff(md_precision precision) {
  return table[precision].roundoff;
}

int md_precision_of(const char *name) {
  for (int p = 0; p < MD_PRECISIONS; p++)
    if (strcmp(name, table[p].name) == 0) return p;
  return -1;
}
