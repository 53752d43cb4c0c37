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

/* Of docs/report.schema.json: rises when a key changes its meaning or goes, not when one is added.
 */
enum { MD_REPORT_SCHEMA_VERSION = 1 };

/* The machine-readable report of a run. Every rank may build it; only rank 0 writes. */
typedef struct md_report {
  cJSON *root; /* add keys with cJSON_Add...ToObject(report.root, ...) */
} md_report;

/* Opens the report with the keys that every report has: schema_version, command, version, commit,
 * ranks, threads, grid (x,y,z,t); closing adds seconds, those since the run began, memory: estimate
 * and peak, machine (below), and, for a command that catches signals, whether one ended it
 * early (interrupted). Collective. */
md_status md_report_open(md_context *context, const char *command, md_report *report);
/* Overwrites grid, and adds grid_chosen_by, "user" if it was asked for, else "auto", and
 * grid_reason. */
void md_report_grid(md_report *report, const int grid[4], bool asked, const char *reason);
/* Writes JSON to `path` ("-": stdout; NULL: nowhere) through a temporary name and rename, then
 * frees the report. Texts are made valid UTF-8 first (base/text.h). Collective; MD_ENVIRONMENT when
 * the file cannot be written. */
md_status md_report_close(md_context *context, md_report *report, const char *path);

/* The same behind a step that ended with `status`: returns that, with its message, where it is not
 * MD_OK, so that a result that could not be written is still reported. Collective. */
md_status md_report_close_after(md_context *context, md_report *report, const char *path,
                                md_status status);
/* The end of a benchmark: `rows` as CSV and the report as JSON (NULL: nowhere) where it ended well
 * or a signal ended it, then frees the report. Returns `status` with its message where that is a
 * failure, else what became of the files. Collective. */
md_status md_report_finish(md_context *context, md_report *report, const cJSON *rows,
                           const char *csv, const char *json, md_status status);

/* Writes the objects of the array `rows` as CSV: a header line with the keys of all rows, in the
 * order in which rows first have them, then a line per row, empty where it lacks a key; arrays
 * inside a row are joined with 'x', objects inside it left out. path NULL: nowhere. Collective. */
md_status md_report_csv(md_context *context, const cJSON *rows, const char *path);

/* A number under `key`; null for NaN and Inf, for which JSON has no word. */
void md_report_real(cJSON *object, const char *key, double value);
/* Array of `count` doubles / integers under `key`; returns the array. Values that JSON has no
 * word for (NaN, Inf) become null. */
cJSON *md_report_reals(cJSON *object, const char *key, const double *values, int count);
cJSON *md_report_integers(cJSON *object, const char *key, const int *values, int count);
/* The same for counts below 10^15. */
cJSON *md_report_counts(cJSON *object, const char *key, const long long *values, int count);

/* Adds `machine` to a report: rank 0's host, CPU, cores, memory, kernel, job and network, the GPUs
 * and cores of all ranks, compiler and flags, libraries, date, command line and commit.
 * docs/report.schema.json says what each key means; what the system does not tell is null. Bytes
 * are as the system gave them: closing the report makes them printable. Collective. */
md_status md_machine_report(md_context *context, cJSON *root);

/* The arguments of this process as a shell takes them; NULL where the system does not tell. The
 * caller frees it. Local. */
char *md_command_line(void);
/* Now, as 2026-01-31T23:59:59Z; empty where the clock does not tell. Local. */
void md_date_utc(char *date, size_t bytes);
