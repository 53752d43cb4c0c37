#pragma once

#include "base/context.h"

/* One line on the terminal that is rewritten as the work goes on: rank 0, stderr, only when
 * stderr is a terminal and the context is not quiet; at most ten times a second. It is shorter than
 * the terminal is wide, so that it stays one line: times that do not fit are left out, the rest is
 * cut. */
typedef struct md_progress {
  const char *label;
  double start_s, shown_s;
  bool active, drawn;
} md_progress;

/* Empties the terminal's line. */
#define MD_PROGRESS_CLEAR "\r\033[K"

md_progress md_progress_start(const md_context *context, const char *label);
/* `fraction` of the work that is done, 0..1, gives the estimate of what is left; negative: no
 * estimate. `format` is what to show beside it. */
void md_progress_update(md_progress *progress, double fraction, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Empties the line. */
void md_progress_stop(md_progress *progress);
