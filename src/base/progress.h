#pragma once

#include "base/context.h"

/* How far long work is, on rank 0's stderr, in the way that the context has from --progress: one
 * line of a terminal that is rewritten at most ten times a second, or a line a minute that stays.
 * A line of a terminal is shorter than that is wide, so that it stays one: times that do not fit
 * are left out, the rest is cut. Nothing of it reaches stdout, a report or a number. */
typedef struct md_progress {
  md_context *context;
  const char *label;
  double start_s;
} md_progress;

/* Empties the terminal's line. */
#define MD_PROGRESS_CLEAR "\r\033[K"

/* The way of --progress: never; always, a line at once and then one a minute, wherever it goes and
 * also when quiet; auto: none when quiet, else as stderr is a terminal or not. Local. */
void md_progress_choose(md_context *context, const char *wish);

md_progress md_progress_start(md_context *context, const char *label);
/* For work that is met in many places: its time is that of the run. */
md_progress md_progress_of_run(md_context *context, const char *label);
/* `fraction` of the work that is done, 0..1, gives the estimate of what is left; negative: no
 * estimate. `format` is what to show beside it. */
void md_progress_update(md_progress *progress, double fraction, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Empties the line. */
void md_progress_stop(md_progress *progress);

/* Work of many pieces, such as lattices: from now on the lines of all work in this context begin
 * with the piece, and their times are those of the whole since the first piece was named. This one
 * is the part `begin` to `begin + share` of it; begin < 0: nobody knows, and times are those of the
 * work at hand. */
void md_progress_piece(md_context *context, double begin, double share, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The end of the whole. */
void md_progress_pieces_end(md_context *context);
