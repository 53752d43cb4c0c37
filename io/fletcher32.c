#include "io/fletcher32.h"

#include <string.h>

/* Four pairs of words; the operators work lane by lane. */
typedef uint32_t pairs __attribute__((vector_size(16)));
enum { MODULUS = 65535, VECTORS = 2, WORDS = 8, LANES = VECTORS * WORDS };
enum { ROWS = 256 }; /* 32 bits hold the sums of as many rows */

/* Sum and weighted sum of words 0 .. n-1, weights n .. 1, modulo MODULUS. */
typedef struct sums {
  uint64_t plain, weighted;
} sums;

/* Adds what `half` 0 or 1 of each pair has summed: word k LANES + l of a row has the weight
 * LANES (rows - k) - l. */
static void add_lanes(const pairs *plain, const pairs *weighted, int half, sums *all) {
  for (int v = 0; v < VECTORS; v++)
    for (int i = 0; i < WORDS / 2; i++) {
      const uint64_t l = (uint64_t)(v * WORDS + 2 * i + half);
      all->plain += plain[v][i];
      all->weighted += (uint64_t)LANES * weighted[v][i] - l * plain[v][i];
    }
}

/* Words in the order of memory, `rows` of LANES; each lane sums for itself. */
static sums add_rows(const unsigned char *data, int rows) {
  pairs low[VECTORS] = {0}, high[VECTORS] = {0}, low_sum[VECTORS] = {0}, high_sum[VECTORS] = {0};
  for (int k = 0; k < rows; k++)
    for (int v = 0; v < VECTORS; v++) {
      pairs now;
      memcpy(&now, data + (size_t)(k * VECTORS + v) * sizeof now, sizeof now);
      low[v] += now & 0xffff;
      high[v] += now >> 16;
      low_sum[v] += low[v];
      high_sum[v] += high[v];
    }
  const int first = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 0 : 1;
  sums all = {0, 0};
  add_lanes(low, low_sum, first, &all);
  add_lanes(high, high_sum, 1 - first, &all);
  return all;
}

static void append(sums *all, uint64_t words, sums next) {
  all->weighted = (all->weighted + words * all->plain + next.weighted) % MODULUS;
  all->plain = (all->plain + next.plain) % MODULUS;
}

/* A word with its bytes swapped is 256 times the word, modulo 2^16 - 1. */
static uint32_t big_endian_sum(uint64_t sum, int any) {
  const int swap = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
  const uint32_t value = (uint32_t)(sum * (swap ? 256 : 1) % MODULUS);
  return value == 0 && any ? MODULUS : value;
}

uint32_t md_fletcher32(const void *data, size_t bytes) {
  enum { ROW_BYTES = 2 * LANES };
  const unsigned char *at = data, *end = at + bytes / 2 * 2;
  sums all = {0, 0};
  uint64_t any = 0; /* the sums before they are reduced: zero for zeros alone */
  while (at < end) {
    const size_t rows = (size_t)(end - at) / ROW_BYTES;
    if (rows > 0) {
      const int now = rows < ROWS ? (int)rows : ROWS;
      const sums next = add_rows(at, now);
      any |= next.plain;
      append(&all, (uint64_t)now * LANES, next);
      at += now * ROW_BYTES;
    } else {
      uint16_t word;
      memcpy(&word, at, sizeof word);
      any |= word;
      append(&all, 1, (sums){word, word});
      at += sizeof word;
    }
  }
  return big_endian_sum(all.weighted, any != 0) << 16 | big_endian_sum(all.plain, any != 0);
}
