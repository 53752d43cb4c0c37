#ifndef MD_BASE_TEXT_H
#define MD_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Copies `text`, which may come from a file or a file name and hold any bytes, so that it can be
 * printed on a terminal and put into JSON: valid UTF-8 without control characters. Bytes that are
 * no UTF-8 and control characters (C0, DEL, C1) become \xNN, line separators and marks that turn
 * the direction of writing \uNNNN. A newline stays as it is with keep_newlines. The result is
 * closed by a zero byte and cut before the first character that does not fit; `bytes` >= 1.
 * Returns its length. text and printable do not overlap. */
size_t md_printable(const char *text, bool keep_newlines, char *printable, size_t bytes);

/* What ends the name of things that are counted: "" for one, "s" for any other number. */
const char *md_plural(long long count);

/* Writes behind the text that is there, which is closed by a zero byte within `bytes`, as far as
 * there is room; false when something was cut. */
bool md_append(char *text, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
