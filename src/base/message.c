#include "base/file.h"
#include "base/progress.h"
#include "base/text.h"
#include "base/timer.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* What is said on the terminal and of failures: without MPI, for io/reader has none. */

static int newlines_of(const char *text) {
  int count = 0;
  for (; *text; text++) count += *text == '\n';
  return count;
}

/* The formatted text, printable whatever a file or a file name put into it; NULL without memory. As
 * lines: newlines of the format stay, and one at the end, those that a name brings do not. */
static char *printable(bool lines, const char *format, va_list arguments) {
  enum { LONGEST_ESCAPE = 4 }; /* \xNN for a byte */
  char *text = NULL;
  const int length = vasprintf(&text, format, arguments);
  char *shown = length < 0 ? NULL : malloc(LONGEST_ESCAPE * (size_t)length + 1);
  if (shown) {
    const bool ends = lines && length > 0 && text[length - 1] == '\n';
    const int own = newlines_of(format) > ends ? newlines_of(format) : ends;
    const bool keep = lines && newlines_of(text) <= own;
    if (ends && !keep) text[length - 1] = '\0';
    const size_t used = md_printable(text, keep, shown, LONGEST_ESCAPE * (size_t)length + 1);
    if (ends && !keep) strcpy(shown + used, "\n");
  }
  if (length >= 0) free(text);
  return shown;
}

md_status md_fail(md_context *context, md_status status, const char *format, ...) {
  char text[sizeof context->message];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  md_printable(text, false, context->message, sizeof context->message);
  return status;
}

md_status md_fail_memory(md_context *context, size_t bytes, const char *what) {
  return md_fail(context, MD_ENVIRONMENT,
                 "%s needs %.3f GB of memory on rank %d, which could not be had; use more ranks or "
                 "a smaller lattice",
                 what, (double)bytes * 1e-9, context->rank);
}

md_status md_open_blame(int reason) {
  static const int of_name[] = {ENOENT, ENOTDIR, EISDIR, EACCES,       EPERM,
                                ELOOP,  ENXIO,   ENODEV, ENAMETOOLONG, EINVAL};
  for (size_t i = 0; i < sizeof of_name / sizeof *of_name; i++)
    if (reason == of_name[i]) return MD_INPUT;
  return MD_ENVIRONMENT;
}

md_status md_fail_open(md_context *context, const char *what, const char *path, int reason) {
  return md_fail(context, md_open_blame(reason), "%s%s%s cannot be read: %s%s", what,
                 *what ? " " : "", path, strerror(reason),
                 reason == EMFILE ? "; raise the limit (ulimit -n)" : "");
}

void md_warn(const md_context *context, const char *format, ...) {
  if (context->rank != 0) return;
  va_list arguments;
  va_start(arguments, format);
  char *text = printable(false, format, arguments);
  va_end(arguments);
  const char *clear = isatty(STDERR_FILENO) ? MD_PROGRESS_CLEAR : ""; /* a line of progress */
  if (text) fprintf(stderr, "%sminidirac: warning: %s\n", clear, text);
  free(text);
}

void md_say(const md_context *context, const char *format, ...) {
  if (context->rank != 0 || context->quiet) return;
  va_list arguments;
  va_start(arguments, format);
  char *text = printable(true, format, arguments);
  va_end(arguments);
  if (text) fputs(text, stdout);
  free(text);
}

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
