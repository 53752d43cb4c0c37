#include "base/text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Bytes of the UTF-8 character at `at` (RFC 3629) and its code; 0 when there is none: overlong
 * forms, surrogates and codes above U+10FFFF included. A zero byte ends the text, so nothing is
 * read behind it. */
static int character_at(const unsigned char *at, uint32_t *code) {
  static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
  const int length = at[0] < 0x80             ? 1
                     : (at[0] & 0xe0) == 0xc0 ? 2
                     : (at[0] & 0xf0) == 0xe0 ? 3
                     : (at[0] & 0xf8) == 0xf0 ? 4
                                              : 0;
  if (length < 2) {
    *code = at[0];
    return length;
  }
  *code = at[0] & (0x7fu >> length);
  for (int i = 1; i < length; i++) {
    if ((at[i] & 0xc0) != 0x80) return 0;
    *code = *code << 6 | (at[i] & 0x3fu);
  }
  const bool surrogate = *code >= 0xd800 && *code < 0xe000;
  return *code < least[length] || *code > 0x10ffff || surrogate ? 0 : length;
}

/* Separators of lines and paragraphs; embeddings, overrides and isolates of direction. */
static bool misleads(uint32_t code) {
  return code == 0x200e || code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
}

size_t md_printable(const char *text, bool keep_newlines, char *printable, size_t bytes) {
  const unsigned char *at = (const unsigned char *)text;
  size_t used = 0;
  while (*at) {
    char piece[16];
    uint32_t code = 0;
    const int length = character_at(at, &code);
    const bool control = code < 0x20 || (code >= 0x7f && code < 0xa0);
    if (length == 0 || (control && !(keep_newlines && code == '\n')))
      if (length == 2)
        snprintf(piece, sizeof piece, "\\x%02x\\x%02x", at[0], at[1]);
      else
        snprintf(piece, sizeof piece, "\\x%02x", at[0]);
    else if (misleads(code))
      snprintf(piece, sizeof piece, "\\u%04x", (unsigned)code);
    else
      snprintf(piece, sizeof piece, "%.*s", length, (const char *)at);
    const size_t more = strlen(piece);
    if (used + more >= bytes) break;
    memcpy(printable + used, piece, more);
    used += more;
    at += length > 0 ? length : 1;
  }
  printable[used] = 0;
  return used;
}

const char *md_plural(long long count) {
  return count == 1 ? "" : "s";
}

bool md_append(char *text, size_t bytes, const char *format, ...) {
  const size_t used = strnlen(text, bytes - 1);
  va_list arguments;
  va_start(arguments, format);
  const int more = vsnprintf(text + used, bytes - used, format, arguments);
  va_end(arguments);
  return more >= 0 && used + (size_t)more < bytes;
}
