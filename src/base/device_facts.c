#include "base/device_facts.h"

#include <stdio.h>

static int at_most(int wished, int there) {
  return wished > 0 && wished < there ? wished : there;
}

void md_device_pretend(md_device_facts *facts, const md_device_wish *wish) {
  if (wish->multiprocessors > 0) facts->multiprocessors = wish->multiprocessors;
  if (wish->block_shared_kib > 0)
    facts->block_shared_bytes = at_most(wish->block_shared_kib << 10, facts->block_shared_bytes);
  if (wish->l2_mib > 0) facts->l2_bytes = (long long)wish->l2_mib << 20;
  if (wish->capability > 0) facts->capability = wish->capability;
  facts->code = at_most(wish->capability, facts->code);
}

const char *md_device_words(const md_device_facts *facts, char text[MD_DEVICE_WORDS_BYTES]) {
  snprintf(text, MD_DEVICE_WORDS_BYTES, "host");
  if (facts->open)
    snprintf(text, MD_DEVICE_WORDS_BYTES,
             "%s, %d multiprocessors, %d KiB shared, %lld MiB L2, code of %d.%d", facts->name,
             facts->multiprocessors, facts->block_shared_bytes >> 10, facts->l2_bytes >> 20,
             facts->code / 10, facts->code % 10);
  return text;
}
