#include "base/precision.h"

#include <string.h>

static const struct {
  const char *name;
  size_t bytes;
  double roundoff;
  bool scaled;
} table[MD_PRECISIONS] = {
    [MD_DOUBLE] = {"double", 8, 0x1p-53, false}, [MD_SINGLE] = {"single", 4, 0x1p-24, false},
    [MD_HALF] = {"half", 2, 0x1p-11, true},      [MD_BF16] = {"bf16", 2, 0x1p-8, false},
    [MD_FIXED] = {"fixed", 2, 0x1p-16, true},
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

bool md_precision_scaled(md_precision precision) {
  return table[precision].scaled;
}

int md_precision_of(const char *name) {
  for (int p = 0; p < MD_PRECISIONS; p++)
    if (strcmp(name, table[p].name) == 0) return p;
  return -1;
}
