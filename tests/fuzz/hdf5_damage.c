#include "hdf5_damage.h"

#include <stdbool.h>
#include <string.h>

enum { LONGEST = 4096, WITHOUT_SUM = 512, SUM = 4 };

static uint32_t rotated(uint32_t word, int by) {
  return word << by | word >> (32 - by);
}

static uint32_t word_at(const unsigned char *at, size_t bytes) {
  uint32_t word = 0;
  for (size_t i = 0; i < 4 && i < bytes; i++) word |= (uint32_t)at[i] << (8 * i);
  return word;
}

/* The checksum of HDF5's metadata: hashlittle of R. Jenkins' lookup3, from its description in the
 * HDF5 file format specification, version 3. */
static uint32_t metadata_sum(const unsigned char *at, size_t bytes) {
  uint32_t a = 0xdeadbeef + (uint32_t)bytes, b = a, c = a;
  for (; bytes > 12; at += 12, bytes -= 12) {
    static const int turns[6] = {4, 6, 8, 16, 19, 4};
    a += word_at(at, 4);
    b += word_at(at + 4, 4);
    c += word_at(at + 8, 4);
    for (int i = 0; i < 6; i++) { /* (a, b, c) take turns */
      const uint32_t next = c + b;
      a = (a - c) ^ rotated(c, turns[i]);
      c = next;
      const uint32_t first = a;
      a = b, b = c, c = first;
    }
  }
  if (bytes == 0) return c;
  a += word_at(at, bytes);
  if (bytes > 4) b += word_at(at + 4, bytes - 4);
  if (bytes > 8) c += word_at(at + 8, bytes - 8);
  static const int last[7] = {14, 11, 25, 16, 4, 14, 24};
  uint32_t *const target[7] = {&c, &a, &b, &c, &a, &b, &c};
  uint32_t *const source[7] = {&b, &c, &a, &b, &c, &a, &b};
  for (int i = 0; i < 7; i++) *target[i] = (*target[i] ^ *source[i]) - rotated(*source[i], last[i]);
  return c;
}

static bool has_signature(const unsigned char *at) {
  static const char signatures[] =
      "TREESNODHEAPOHDROCHKFADBFAHDEAHDEAIBEADBEASBBTHDBTLFBTINFRHPFHDBFHIBGCOL";
  for (size_t i = 0; i + 4 < sizeof signatures; i += 4)
    if (memcmp(at, signatures + i, 4) == 0) return true;
  return memcmp(at, "\211HDF", 4) == 0;
}

void hdf5_find_blocks(const unsigned char *data, size_t bytes, hdf5_blocks *blocks) {
  blocks->count = 0;
  for (size_t i = 0; i + 4 <= bytes && blocks->count < HDF5_BLOCKS_MOST; i++) {
    if (!has_signature(data + i)) continue;
    size_t length = 0;
    for (size_t n = 8; n <= LONGEST && i + n + SUM <= bytes && !length; n++)
      if (metadata_sum(data + i, n) == word_at(data + i + n, 4)) length = n;
    blocks->block[blocks->count].start = i;
    blocks->block[blocks->count++].length = length;
  }
}

void hdf5_seal(unsigned char *data, size_t bytes, const hdf5_blocks *blocks) {
  for (int i = 0; i < blocks->count; i++) {
    const size_t start = blocks->block[i].start, length = blocks->block[i].length;
    if (length == 0 || start + length + SUM > bytes) continue;
    const uint32_t sum = metadata_sum(data + start, length);
    for (int k = 0; k < SUM; k++) data[start + length + (size_t)k] = (unsigned char)(sum >> 8 * k);
  }
}

/* xorshift64 (G. Marsaglia 2003). */
static uint64_t next(uint64_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  return *state ^= *state << 17;
}

size_t hdf5_damage(unsigned char *data, size_t bytes, const hdf5_blocks *blocks, uint64_t *state) {
  static const unsigned char odd[] = {0, 1, 2, 0x7f, 0x80, 0xfe, 0xff};
  const int changes = 1 + (int)(next(state) % 4);
  for (int i = 0; i < changes && bytes > 0; i++) {
    size_t first = 0, length = bytes;
    if (blocks->count > 0 && next(state) % 8 != 0) {
      const int k = (int)(next(state) % (uint64_t)blocks->count);
      first = blocks->block[k].start;
      length = blocks->block[k].length ? blocks->block[k].length : WITHOUT_SUM;
    }
    if (first >= bytes) continue;
    if (length > bytes - first) length = bytes - first;
    unsigned char *at = data + first + next(state) % length;
    const uint64_t how = next(state);
    if (how % 3 == 0)
      *at = odd[how / 3 % sizeof odd];
    else if (how % 3 == 1)
      *at ^= (unsigned char)(1u << how / 3 % 8);
    else
      *at = (unsigned char)(how >> 16);
  }
  if (next(state) % 32 == 0) bytes = (size_t)(next(state) % bytes);
  if (next(state) % 8 != 0) hdf5_seal(data, bytes, blocks);
  return bytes;
}
