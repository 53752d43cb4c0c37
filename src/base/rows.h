#pragma once

#include "base/context.h"
#include <cjson/cJSON.h>

/* Keys of a report and rows of a table, each described once: "key=%CONVERSION key=%CONVERSION ...",
 * with the conversions of printf, which the compiler checks the values against. In JSON %s is a
 * text (NULL: null), %d, %ld and %lld an integer, %hhd a bool, and %e, %f and %g a number, or
 * null where it is infinite or none: JSON has no word for those. */

/* Adds the keys to an object. Local. */
void md_report_add(cJSON *object, const char *keys, ...) __attribute__((format(printf, 2, 3)));

/* A column of a table is such a key too. Where its conversion has a width ("key=%9.2f") it is also
 * printed, "-" for what is no number, under its key or, of "key|head=%9.2f", under another head.
 * "|head=%9.2f" and "|=%s" are printed alone; the last without blank in front. A head has ~ for a
 * blank.
 *
 * Prints the heads of the columns. Local. */
void md_rows_head(const md_context *context, const char *columns);
/* Prints a line, and returns its object, added to the array: further keys may follow. CSV has a
 * column for each key (md_report_csv). Without a printed column no line, and no need of a context.
 * Local. */
cJSON *md_rows_add(const md_context *context, cJSON *rows, const char *columns, ...)
    __attribute__((format(printf, 3, 4)));
/* Puts an object that says what is missing, with `reason` added, into the array of what was
 * skipped. True where it is the first for that reason and, with `key`, that text of its own: then
 * it is to be said. Local. */
bool md_rows_skip(cJSON *skipped, cJSON *object, const char *key, const char *reason);
/* The reason of the first that was skipped; NULL: there is none. Local. */
const char *md_rows_skipped(const cJSON *skipped);
