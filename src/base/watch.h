#pragma once

#include "base/context.h"

/* A way out for a rank that knows that another one does not answer: the collective in which it is
 * to tell the others might never return. A watch that runs out calls context->give_up with the
 * failure. The program ends its process there with MD_ENVIRONMENT, and mpirun then the others; the
 * library by itself has no watches. */
typedef struct md_watch md_watch;

/* Whom md_watch_begin gives up. */
typedef enum md_watch_kind {
  MD_WATCH_RANKS, /* a rank that is blocked: over with the next agreement */
  MD_WATCH_DEVICE /* and this rank's GPU, which waits for it: nothing that waits for the GPU
                     returns, so the process has to end */
} md_watch_kind;

/* True once what should have come at once, waited for since `start_s` (md_time_s), is later than
 * context->patience_s and a watch is in order. Local. */
bool md_watch_due(const md_context *context, double start_s);
/* Starts a watch of `patience_s` (of 0: none) with the context's message, unless one runs; lower
 * ranks lose patience first, so that one of them speaks for all. With one rank or without give_up
 * it does nothing. Returns `status`, so that `return md_watch_begin(...)` is one line. Local. */
md_status md_watch_begin(md_context *context, md_watch_kind kind, double patience_s,
                         md_status status);
/* The ranks have agreed: ends a watch of MD_WATCH_RANKS. Without one it does nothing. Local. */
void md_watch_agreed(md_context *context);
/* Ends any. Local. */
void md_watch_end(md_context *context);
