#ifndef MD_BASE_WATCH_H
#define MD_BASE_WATCH_H

#include "base/context.h"

/* A way out for a rank that knows that another one does not answer: the collective in which it is
 * to tell the others might never return. A watch that runs out prints the failure and ends the
 * process with MD_ENVIRONMENT, and mpirun then ends the others. */
typedef struct md_watch md_watch;

/* How long a rank waits for what the others should do at once; longer than a GPU waits for the
 * flags of others, which then names a rank. */
#define MD_PATIENCE_S 45.0

/* Whom md_watch_begin gives up. */
typedef enum md_watch_kind {
  MD_WATCH_RANKS, /* a rank that is blocked: over with the next agreement */
  MD_WATCH_DEVICE /* and this rank's GPU, which waits for it: nothing that waits for the GPU
                     returns, so the process has to end */
} md_watch_kind;

/* Starts a watch of `patience_s` with the context's message, unless one runs; lower ranks lose
 * patience first, so that one of them speaks for all. With one rank it does nothing. Returns
 * `status`, so that `return md_watch_begin(...)` is one line. Local. */
md_status md_watch_begin(md_context *context, md_watch_kind kind, double patience_s,
                         md_status status);
/* The ranks have agreed: ends a watch of MD_WATCH_RANKS. Without one it does nothing. Local. */
void md_watch_agreed(md_context *context);
/* Ends any. Local. */
void md_watch_end(md_context *context);

#endif
