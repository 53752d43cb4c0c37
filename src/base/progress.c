#include "base/progress.h"
#include "base/timer.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

md_progress md_progress_start(const md_context *context, const char *label) {
  const double now_s = md_time_s();
  return (md_progress){label, now_s, now_s,
                       context->rank == 0 && !context->quiet && isatty(STDERR_FILENO), false};
}

void md_progress_update(md_progress *progress, double fraction, const char *format, ...) {
  const double now_s = md_time_s();
  if (!progress->active || now_s - progress->shown_s < 0.1) return;
  progress->shown_s = now_s;
  progress->drawn = true;
  const double spent_s = now_s - progress->start_s;
  fprintf(stderr, "\r\033[K%s: ", progress->label);
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fprintf(stderr, ", %.1f s", spent_s);
  if (fraction > 0.0 && fraction <= 1.0)
    fprintf(stderr, ", about %.0f s left", spent_s * (1.0 - fraction) / fraction);
  fflush(stderr);
}

void md_progress_stop(md_progress *progress) {
  if (progress->drawn) fprintf(stderr, "\r\033[K");
  progress->drawn = false;
}
