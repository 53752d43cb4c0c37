#include "base/interrupt.h"
#include "base/timer.h"

#include <math.h>
#include <signal.h>
#include <stdatomic.h>

static const struct {
  int number;
  const char *name;
} SIGNALS[] = {{SIGINT, "SIGINT"}, {SIGTERM, "SIGTERM"}, {SIGUSR1, "SIGUSR1"}};
enum { SIGNAL_COUNT = sizeof SIGNALS / sizeof SIGNALS[0], MOST_CALLS = 1000 };

/* A handler has no argument to find a context by. */
static volatile sig_atomic_t caught;
static _Atomic double caught_s;

static void handle(int number) {
  const double now_s = md_time_s();
  if (!caught) {
    caught_s = now_s;
    caught = number;
  } else if (now_s - caught_s > MD_INTERRUPT_SAME_S) {
    signal(number, SIG_DFL);
    raise(number);
  }
}

void md_interrupt_catch(md_context *context) {
  struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
  sigfillset(&action.sa_mask); /* the handler is not interrupted by the next signal */
  for (int s = 0; s < SIGNAL_COUNT; s++) sigaction(SIGNALS[s].number, &action, NULL);
  context->signal = &caught;
  context->interrupt.looked_s = md_time_s();
}

/* The flags of all ranks, and the mean time of a call since the last look, which decides when to
 * look again: the same on all ranks. */
static void look(md_context *context) {
  md_interrupt *i = &context->interrupt;
  const double now_s = md_time_s(), per_call_s = (now_s - i->looked_s) / (i->calls ? i->calls : 1);
  const int flag = (int)*context->signal;
  long long sums[SIGNAL_COUNT + 1] = {[SIGNAL_COUNT] = (long long)(1e9 * fmin(per_call_s, 1e6))};
  for (int s = 0; s < SIGNAL_COUNT; s++) sums[s] = flag == SIGNALS[s].number;
  md_sum_integers(context, sums, SIGNAL_COUNT + 1);
  for (int s = 0; s < SIGNAL_COUNT && !i->by; s++)
    if (sums[s] > 0) i->by = SIGNALS[s].number;
  const double mean_s = 1e-9 * (double)sums[SIGNAL_COUNT] / context->ranks;
  i->calls = 0;
  i->looked_s = now_s;
  i->next = (int)fmin(fmax(MD_INTERRUPT_S / fmax(mean_s, 1e-9), 1.0), MOST_CALLS);
}

bool md_interrupted(md_context *context) {
  md_interrupt *i = &context->interrupt;
  if (!context->signal || i->by) return i->by != 0;
  if (++i->calls >= i->next || context->ranks == 1) look(context);
  return i->by != 0;
}

bool md_interrupted_now(md_context *context) {
  context->interrupt.next = 0;
  return md_interrupted(context);
}

md_status md_interrupt_check(md_context *context, const char *what) {
  if (!md_interrupted_now(context)) return MD_OK;
  return md_fail(context, MD_ENVIRONMENT, "%s ended %s early; the report has what was done",
                 md_interrupt_name(context), what);
}

const char *md_interrupt_name(const md_context *context) {
  for (int s = 0; s < SIGNAL_COUNT; s++)
    if (context->interrupt.by == SIGNALS[s].number) return SIGNALS[s].name;
  return NULL;
}

bool md_report_is_due(const md_context *context, md_status status) {
  return status == MD_OK || context->interrupt.by != 0;
}
