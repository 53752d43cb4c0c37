#include "io/modes_parts.h"

#include <math.h>
#include <string.h>

enum { COLOURS = MD_FERMION_REALS / 2 };

/* The smallest binary16 that is no less than a number >= 0; positive ones lie in the order of their
 * bits. */
static uint16_t half_above(float number) {
  const uint16_t nearest = md_half_of_float(number);
  return md_float_of_half(nearest) < number ? (uint16_t)(nearest + 1) : nearest;
}

static md_fixed8 pack(const double *site, double scale) {
  md_fixed8 packed = {0};
  double largest = 0.0;
  for (int c = 0; c < MD_FERMION_REALS; c++) largest = fmax(largest, fabs(site[c]));
  packed.scale = half_above((float)(largest / (MD_FIXED8_STEPS * scale)));
  const double step = scale * (double)md_float_of_half(packed.scale);
  for (int c = 0; c < MD_FERMION_REALS && step > 0.0; c++)
    packed.steps[c % 2][c / 2] = (int8_t)lrint(site[c] / step);
  return packed;
}

void md_fixed8_pack(void *raw, int64_t sites, double scale) {
  unsigned char *bytes = raw;
  for (int64_t i = 0; i < sites; i++) {
    double site[MD_FERMION_REALS];
    memcpy(site, bytes + (size_t)i * sizeof site, sizeof site);
    const md_fixed8 packed = pack(site, scale);
    memcpy(bytes + (size_t)i * sizeof packed, &packed, sizeof packed);
  }
}

void md_fixed8_unpack(void *raw, int64_t sites, double scale) {
  unsigned char *bytes = raw;
  for (int64_t i = sites - 1; i >= 0; i--) {
    md_fixed8 packed;
    double site[MD_FERMION_REALS];
    memcpy(&packed, bytes + (size_t)i * sizeof packed, sizeof packed);
    const double step = scale * (double)md_float_of_half(packed.scale);
    for (int c = 0; c < MD_FERMION_REALS; c++) site[c] = step * packed.steps[c % 2][c / 2];
    memcpy(bytes + (size_t)i * sizeof site, site, sizeof site);
  }
}
