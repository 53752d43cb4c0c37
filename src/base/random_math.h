#pragma once

#include "base/random.h"
#include "base/status.h"
#include <Random123/philox.h>

/* The streams of random.h, for kernels too: the same bits on the host and on the device, for they
 * are integers but for one exact conversion. To be included outside of extern "C", because
 * Random123 has templates for C++. */

/* purpose: a number that keeps independent uses of one seed apart (the caller's enum, a sweep). */
MD_HOST_DEVICE md_random md_random_begin(uint64_t seed, uint64_t purpose, uint64_t key) {
  md_random random;
  random.seed = seed;
  random.purpose = purpose;
  random.key = key;
  random.block = 0;
  random.left = 0;
  for (int i = 0; i < 4; i++) random.word[i] = 0;
  return random;
}

MD_HOST_DEVICE uint64_t md_random_next_bits(md_random *random) {
  if (random->left == 0) {
    const philox4x64_ctr_t counter = {{random->block++, random->key, 0, 0}};
    const philox4x64_key_t key = {{random->seed, random->purpose}};
    const philox4x64_ctr_t block = philox4x64(counter, key);
    for (int i = 0; i < 4; i++) random->word[i] = block.v[i];
    random->left = 4;
  }
  return random->word[--random->left];
}

/* Uniform in the open interval (0, 1): (k + 1/2) 2^-52. */
MD_HOST_DEVICE double md_random_next_uniform(md_random *random) {
  return ((double)(md_random_next_bits(random) >> 12) + 0.5) * (1.0 / 4503599627370496.0);
}
