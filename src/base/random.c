#include "base/random.h"

#include <Random123/philox.h>
#include <math.h>

md_random md_random_at(uint64_t seed, uint64_t purpose, uint64_t key) {
  return (md_random){.seed = seed, .purpose = purpose, .key = key};
}

uint64_t md_random_bits(md_random *random) {
  if (random->left == 0) {
    const philox4x64_ctr_t counter = {{random->block++, random->key, 0, 0}};
    const philox4x64_key_t key = {{random->seed, random->purpose}};
    const philox4x64_ctr_t block = philox4x64(counter, key);
    for (int i = 0; i < 4; i++) random->word[i] = block.v[i];
    random->left = 4;
  }
  return random->word[--random->left];
}

double md_random_uniform(md_random *random) {
  return ((double)(md_random_bits(random) >> 12) + 0.5) * 0x1p-52;
}

void md_random_normal(md_random *random, double pair[2]) {
  const double radius = sqrt(-2.0 * log(md_random_uniform(random)));
  const double angle = 2.0 * M_PI * md_random_uniform(random);
  pair[0] = radius * cos(angle);
  pair[1] = radius * sin(angle);
}
