#include "base/precision.h"
#include "base/options.h"

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
  return md_choice_of(&(MD_PRECISION_WORDS)[1], name);
}
