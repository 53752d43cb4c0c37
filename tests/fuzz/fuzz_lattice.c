#include "fuzz_support.h"
#include "kinds.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* The input is a file of links or colour vectors in LIME (ILDG, SciDAC), MILC or NERSC. Headers are
 * changed as what they are: whole records, the words between two tags, the value of a key. */
enum { HEAD = 144, LENGTH_AT = 8, RECORDS_MOST = 64 };

void fuzz_prepare(md_context *context) {
  fuzz_require(fuzz_kinds_prepare(context) == MD_OK, "what files hold is to be had");
}

void fuzz_one(md_context *context, const uint8_t *data, size_t bytes) {
  if (bytes >= 4 && memcmp(data, "\211HDF", 4) == 0) return; /* fuzz_hdf5 */
  const char *path = fuzz_file(data, bytes);
  fuzz_require_refusal(context, fuzz_links_read(context, path));
  fuzz_require_refusal(context, fuzz_vectors_read(context, path));
}

size_t LLVMFuzzerMutate(uint8_t *data, size_t bytes, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t most, unsigned seed);

static unsigned next(unsigned *state) {
  return *state = (*state * 1103515245u + 12345u) & 0x7fffffffu;
}

/* Puts `to` bytes of one kind, or none, in the place of `from` bytes; returns the new size. */
static size_t splice(uint8_t *data, size_t bytes, size_t most, size_t at, size_t from, size_t to,
                     int with) {
  if (at + from > bytes || bytes - from + to > most) return bytes;
  memmove(data + at + to, data + at + from, bytes - at - from);
  memset(data + at, with, to);
  return bytes - from + to;
}

/* Lengths around those that texts are cut at. */
static size_t some_length(unsigned *state) {
  static const size_t bases[] = {0, 1, 8, 64, 80, 96, 128, 200, 256, 1024, 4096, 8192};
  const size_t base = bases[next(state) / 7 % (sizeof bases / sizeof *bases)];
  return base + next(state) / 7 % 9 - (base >= 8 ? 4 : 0);
}

/* A run of characters that are not among `ends` becomes longer, shorter or something else. */
static size_t change_word(uint8_t *data, size_t bytes, size_t most, size_t first, size_t last,
                          const char *ends, unsigned *state) {
  static const char with[] = "1a -.<\n\0009f/";
  if (first >= last) return bytes;
  size_t at = first + next(state) / 7 % (last - first), end;
  while (at > first && !strchr(ends, data[at - 1])) at--;
  for (end = at; end < last && !strchr(ends, data[end]);) end++;
  const int filler = with[next(state) / 7 % (sizeof with - 1)];
  if (next(state) / 7 % 3 == 0)
    return splice(data, bytes, most, at, end - at, some_length(state), filler);
  return splice(data, bytes, most, end, 0, some_length(state), filler);
}

static size_t change_nersc(uint8_t *data, size_t bytes, size_t most, unsigned *state) {
  size_t head = 0;
  while (head + 10 < bytes && memcmp(data + head, "END_HEADER", 10) != 0) head++;
  return change_word(data, bytes, most, 0, head, "=\n", state);
}

static size_t padded(size_t bytes) {
  return (bytes + 7) / 8 * 8;
}

static size_t length_of(const uint8_t *head) {
  size_t length = 0;
  for (int i = 0; i < 8; i++) length = length << 8 | head[LENGTH_AT + i];
  return length;
}

/* One record is dropped, doubled, or its text changed, with the length that it then has. */
static size_t change_lime(uint8_t *data, size_t bytes, size_t most, unsigned *state) {
  size_t start[RECORDS_MOST], at = 0, count = 0;
  while (count < RECORDS_MOST && at + HEAD <= bytes && length_of(data + at) <= bytes - at - HEAD) {
    start[count++] = at;
    at += HEAD + padded(length_of(data + at));
  }
  if (count == 0) return bytes;
  const size_t record = start[next(state) / 7 % count], length = length_of(data + record);
  const size_t text = record + HEAD, all = HEAD + padded(length), how = next(state) / 7 % 8;
  if (text + padded(length) > bytes) return bytes;
  if (how == 0) return splice(data, bytes, most, record, all, 0, 0);
  if (how == 1 && bytes + all <= most) {
    memmove(data + record + all, data + record, bytes - record);
    return bytes + all;
  }
  if (how == 2) return change_word(data, bytes, most, record + 16, record + 144, "", state);
  /* Without its padding, changed, padded anew; a closing zero goes half of the time. */
  size_t left = splice(data, bytes, most, text + length, padded(length) - length, 0, 0),
         now = length;
  if (how < 6 && length > 0 && data[text + length - 1] == 0) {
    left = splice(data, left, most, text + length - 1, 1, 0, 0);
    now--;
  }
  const size_t before = left;
  if (how > 3) left = change_word(data, left, most, text, text + now, "<>", state);
  now += left - before;
  if (how == 3 && next(state) / 7 % 2) { /* whole words of eight bytes: nothing behind the text */
    left = splice(data, left, most, text + now, 0, padded(now) - now, ' ');
    now = padded(now);
  }
  for (int i = 0; i < 8; i++) data[record + LENGTH_AT + (size_t)i] = (uint8_t)(now >> (56 - 8 * i));
  return splice(data, left, most, text + now, 0, padded(now) - now, 0);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t most, unsigned seed) {
  unsigned state = seed;
  const bool lime = bytes > HEAD && memcmp(data, "\x45\x67\x89\xab", 4) == 0;
  const bool nersc = bytes > 12 && memcmp(data, "BEGIN_HEADER", 12) == 0;
  if (next(&state) / 7 % 4 == 0 || (!lime && !nersc)) return LLVMFuzzerMutate(data, bytes, most);
  return lime ? change_lime(data, bytes, most, &state) : change_nersc(data, bytes, most, &state);
}
