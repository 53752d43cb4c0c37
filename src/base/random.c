#include "base/random_math.h"

#include <math.h>

md_random md_random_at(uint64_t seed, uint64_t purpose, uint64_t key) {
  return md_random_begin(seed, purpose, key);
}

uint64_t md_random_bits(md_random *random) {
  return md_random_next_bits(random);
}

double md_random_uniform(md_random *random) {
  return md_random_next_uniform(random);
}

void md_random_normal(md_random *random, double pair[2]) {
  const double radius = sqrt(-2.0 * log(md_random_uniform(random)));
  const double angle = 2.0 * M_PI * md_random_uniform(random);
  pair[0] = radius * cos(angle);
  pair[1] = radius * sin(angle);
}
