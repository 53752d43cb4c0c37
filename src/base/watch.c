#include "base/watch.h"
#include "base/timer.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct md_watch {
  pthread_t thread;
  md_watch_kind kind;
  struct timespec until;
  void (*give_up)(const char *failure);
  char message[sizeof((md_context *)NULL)->message];
};

static void *wait(void *user) {
  md_watch *w = user;
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &w->until, NULL) == EINTR) {
  }
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL); /* md_watch_end then waits for it */
  w->give_up(w->message);
  return NULL;
}

bool md_watch_due(const md_context *context, double start_s) {
  return context->ranks > 1 && context->give_up && context->patience_s > 0.0 &&
         md_time_s() - start_s >= context->patience_s;
}

md_status md_watch_begin(md_context *context, md_watch_kind kind, double patience_s,
                         md_status status) {
  if (context->ranks == 1 || context->watch || !context->give_up || !(patience_s > 0.0))
    return status;
  md_watch *w = calloc(1, sizeof *w);
  if (!w) return status;
  clock_gettime(CLOCK_MONOTONIC, &w->until);
  const double later_s = patience_s * (1.0 + 0.2 * context->rank / context->ranks);
  const long long then_ns = w->until.tv_nsec + (long long)(1e9 * later_s);
  w->until.tv_sec += (time_t)(then_ns / 1000000000);
  w->until.tv_nsec = (long)(then_ns % 1000000000);
  w->kind = kind;
  w->give_up = context->give_up;
  memcpy(w->message, context->message, sizeof w->message);
  if (pthread_create(&w->thread, NULL, wait, w) == 0)
    context->watch = w;
  else
    free(w);
  return status;
}

void md_watch_end(md_context *context) {
  md_watch *w = context->watch;
  if (!w) return;
  pthread_cancel(w->thread); /* in its sleep */
  pthread_join(w->thread, NULL);
  free(w);
  context->watch = NULL;
}

void md_watch_agreed(md_context *context) {
  if (context->watch && context->watch->kind == MD_WATCH_RANKS) md_watch_end(context);
}
