#include "base/precision.h"

#include <string.h>

static const struct {
  const char *name;
  size_t bytes;
  double roundoff;
  bool scaled;
} table[MD_PRECISIONS] = {
#define MD_ROW(id, ...) [id] = {__VA_ARGS__},
    MD_PRECISION_TABLE(MD_ROW)
#undef MD_ROW
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
