#ifndef MD_BASE_PROGRESS_H
#define MD_BASE_PROGRESS_H

#include "base/context.h"

/* One line on the terminal that is rewritten as the work goes on: rank 0, stderr, only when
 * stderr is a terminal and the context is not quiet; at most ten times a second. */
typedef struct md_progress {
  const char *label;
  double start_s, shown_s;
  bool active, drawn;
} md_progress;

md_progress md_progress_start(const md_context *context, const char *label);
/* `fraction` of the work that is done, 0..1, gives the estimate of what is left; negative: no
 * estimate. `format` is what to show beside it. */
void md_progress_update(md_progress *progress, double fraction, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Clears the line. */
void md_progress_stop(md_progress *progress);

#endif
