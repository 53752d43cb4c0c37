#include "base/file.h"
#include "base/memory_need.h"
#include "base/progress.h"
#include "base/text.h"
#include "base/timer.h"

#include <errno.h>
#include <math.h>
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

/* No context is made const; who only speaks does not change what the caller sees of it. */
static void clear_line(const md_context *context) {
  if (!context->progress.drawn) return;
  fputs(MD_PROGRESS_CLEAR, stderr);
  ((md_context *)context)->progress.drawn = false;
}

void md_warn(const md_context *context, const char *format, ...) {
  if (context->rank != 0) return;
  va_list arguments;
  va_start(arguments, format);
  char *text = printable(false, format, arguments);
  va_end(arguments);
  clear_line(context);
  if (text) fprintf(stderr, "minidirac: warning: %s\n", text);
  free(text);
}

void md_show(void) {
  if (fflush(stdout) != 0 && errno == EPIPE) clearerr(stdout);
}

void md_say(const md_context *context, const char *format, ...) {
  if (context->rank != 0 || context->quiet) return;
  va_list arguments;
  va_start(arguments, format);
  char *text = printable(true, format, arguments);
  va_end(arguments);
  clear_line(context);
  if (text) fputs(text, stdout);
  if (text && strchr(text, '\n')) md_show();
  free(text);
}

enum { LINE_BYTES = 256, USUAL_COLUMNS = 80 };
#define LINE_EVERY_S 0.1
#define LOG_EVERY_S 60.0

void md_progress_choose(md_context *context, const char *wish) {
  const bool always = strcmp(wish, "always") == 0, never = strcmp(wish, "never") == 0;
  context->progress = (md_progress_state){.said_s = always ? -LOG_EVERY_S : md_time_s()};
  if (context->rank != 0 || never || (context->quiet && !always)) return;
  context->progress.way = !always && isatty(STDERR_FILENO) ? MD_PROGRESS_LINE : MD_PROGRESS_LOG;
}

md_progress md_progress_start(md_context *context, const char *label) {
  return (md_progress){context, label, md_time_s()};
}

md_progress md_progress_of_run(md_context *context, const char *label) {
  return (md_progress){context, label, context->start_s};
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

/* What has passed, and what is left of a whole of which `fraction` is done. */
static void append_times(char *line, size_t most, double spent_s, double fraction) {
  static const char *const units[] = {"s", "min", "h"};
  const bool known = fraction > 0.0 && fraction <= 1.0;
  double time[] = {spent_s, known ? spent_s * (1.0 - fraction) / fraction : 0.0};
  for (int k = 0; k <= known; k++) {
    char part[LINE_BYTES];
    int unit = 0;
    for (; unit < 2 && time[k] >= 120.0; unit++) time[k] /= 60.0;
    snprintf(part, sizeof part, k ? ", about %.*f %s left" : ", %.*f %s", unit > 0 || k == 0,
             time[k], units[unit]);
    append(line, most, part);
  }
}

void md_progress_update(md_progress *progress, double fraction, const char *format, ...) {
  md_progress_state *state = &progress->context->progress;
  if (state->way == MD_PROGRESS_NONE || md_counts(progress->context)) return;
  char line[LINE_BYTES], text[LINE_BYTES / 2];
  const bool log = state->way == MD_PROGRESS_LOG;
  const double now_s = md_time_s();
  if (now_s - state->said_s < (log ? LOG_EVERY_S : LINE_EVERY_S)) return;
  state->said_s = now_s;
  /* A line that wraps could not be rewritten; some terminals do so at the last column already. */
  const size_t last = log ? LINE_BYTES : (size_t)columns() - 1;
  const size_t most = last < LINE_BYTES ? last : LINE_BYTES - 1;
  const bool of_whole = *state->piece && state->begin >= 0.0;
  const double spent_s = now_s - (of_whole ? state->whole_s : progress->start_s);
  if (of_whole)
    fraction = state->begin + state->share * (fraction > 0.0 ? fmin(fraction, 1.0) : 0.0);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  snprintf(line, sizeof line, "%s: %s", progress->label, *state->piece ? state->piece : text);
  line[most] = '\0';
  append_times(line, most, spent_s, fraction);
  if (*state->piece) md_append(line, most + 1, ", %s", text);
  fprintf(stderr, log ? "%s\n" : MD_PROGRESS_CLEAR "%s", line);
  fflush(stderr);
  state->drawn = !log;
}

void md_progress_stop(md_progress *progress) {
  clear_line(progress->context);
}

void md_progress_piece(md_context *context, double begin, double share, const char *format, ...) {
  md_progress_state *state = &context->progress;
  if (!*state->piece) state->whole_s = md_time_s();
  state->begin = begin;
  state->share = share;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(state->piece, sizeof state->piece, format, arguments);
  va_end(arguments);
}

void md_progress_pieces_end(md_context *context) {
  *context->progress.piece = '\0';
}
