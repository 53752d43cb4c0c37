/* A signal that reaches one rank is agreed by all of them at the same call, soon, and stays. */
#include "base/interrupt.h"
#include "base/timer.h"
#include "support.h"

#include <signal.h>
#include <string.h>

enum { WHEN = 100, MOST = 100000 };

static void all_ranks_leave_the_same_loop(void **state) {
  md_context *context = *state;
  int calls = 0, loops = 0;
  assert_false(md_interrupted(context)); /* no signal is caught yet */
  md_interrupt_catch(context);
  for (; calls < MOST; calls++) {
    if (calls == WHEN && context->rank == context->ranks - 1) raise(SIGTERM);
    if (md_interrupted(context)) break;
  }
  long long sum = calls;
  md_sum_integers(context, &sum, 1);
  assert_int_equal(sum, (long long)context->ranks * calls);
  md_require_at_most(calls, WHEN + (context->ranks > 1 ? 2000 : 0), "calls until the end");
  assert_string_equal(md_interrupt_name(context), "SIGTERM");
  for (; loops < 10 && !md_interrupted(context); loops++) continue;
  assert_int_equal(loops, 0);
  assert_int_equal(md_interrupt_check(context, "the test"), MD_ENVIRONMENT);
  assert_string_equal(context->message,
                      "SIGTERM ended the test early; the report has what was done");
}

/* Calls that take long are looked at every time. */
static void slow_steps_end_at_once(void **state) {
  md_context *context = *state;
  context->interrupt = (md_interrupt){.looked_s = md_time_s(), .next = 1000};
  for (double until_s = md_time_s() + 2.0 * MD_INTERRUPT_S; md_time_s() < until_s;) continue;
  assert_true(md_interrupted_now(context));
}

int main(int argc, char **argv) {
  md_context *context = md_test_begin(&argc, &argv);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_prestate(all_ranks_leave_the_same_loop, context),
      cmocka_unit_test_prestate(slow_steps_end_at_once, context)};
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  return md_test_end(context, failed);
}
