#include "base/progress.h"
#include "base/timer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { LINE_BYTES = 256, USUAL_COLUMNS = 80 };

md_progress md_progress_start(const md_context *context, const char *label) {
  const double now_s = md_time_s();
  return (md_progress){label, now_s, now_s,
                       context->rank == 0 && !context->quiet && isatty(STDERR_FILENO), false};
}

/* Of the terminal as it is now; a user may have changed it. */
static int columns(void) {
  struct winsize size;
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char *text = getenv("COLUMNS");
  return text && atoi(text) > 0 ? atoi(text) : USUAL_COLUMNS;
}

/* A part that does not fit whole is left out. */
static void append(char *line, size_t most, const char *part) {
  const size_t used = strlen(line);
  if (used + strlen(part) <= most) strcpy(line + used, part);
}

void md_progress_update(md_progress *progress, double fraction, const char *format, ...) {
  char line[LINE_BYTES], part[LINE_BYTES];
  const double now_s = md_time_s();
  if (!progress->active || now_s - progress->shown_s < 0.1) return;
  progress->shown_s = now_s;
  progress->drawn = true;
  /* A line that wraps could not be rewritten; some terminals do so at the last column already. */
  const size_t last = (size_t)columns() - 1, most = last < LINE_BYTES ? last : LINE_BYTES - 1;
  const double spent_s = now_s - progress->start_s;
  const int used = snprintf(line, sizeof line, "%s: ", progress->label);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line + used, sizeof line - (size_t)used, format, arguments);
  va_end(arguments);
  line[most] = '\0';
  snprintf(part, sizeof part, ", %.1f s", spent_s);
  append(line, most, part);
  snprintf(part, sizeof part, ", about %.0f s left", spent_s * (1.0 - fraction) / fraction);
  if (fraction > 0.0 && fraction <= 1.0) append(line, most, part);
  fprintf(stderr, MD_PROGRESS_CLEAR "%s", line);
  fflush(stderr);
}

void md_progress_stop(md_progress *progress) {
  if (progress->drawn) fputs(MD_PROGRESS_CLEAR, stderr);
  progress->drawn = false;
}
