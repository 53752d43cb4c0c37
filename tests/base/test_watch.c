/* A watch has its failure end the process when the ranks do not agree in time, as the context asks,
 * and leaves it alone when they do or nobody asks. Each case runs in a process of its own, as rank
 * 0 of two. */
#include "base/timer.h"
#include "base/watch.h"
#include "support.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct ending {
  int code; /* of the process */
  char said[256];
} ending;

static void give_up(const char *failure) {
  fprintf(stderr, "%s\n", failure);
  _exit(MD_ENVIRONMENT);
}

/* What becomes of a process that begins a watch of so many seconds, and then does `next`. */
static ending end_of(int ranks, bool asked, md_watch_kind kind, double patience_s,
                     void (*next)(md_context *context)) {
  ending e = {0};
  int status = 0, pipe_ends[2];
  assert_int_equal(pipe(pipe_ends), 0);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    md_context context = {.ranks = ranks, .give_up = asked ? give_up : NULL};
    dup2(pipe_ends[1], STDERR_FILENO);
    const md_status failed = md_fail(&context, MD_ENVIRONMENT, "rank 1 is silent");
    if (md_watch_begin(&context, kind, patience_s, failed) != MD_ENVIRONMENT) _exit(9);
    next(&context);
    _exit(7);
  }
  close(pipe_ends[1]);
  size_t used = 0;
  while (used < sizeof e.said - 1) {
    const ssize_t got = read(pipe_ends[0], e.said + used, sizeof e.said - 1 - used);
    if (got <= 0) break;
    used += (size_t)got;
  }
  close(pipe_ends[0]);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  e.code = WEXITSTATUS(status);
  return e;
}

static void stay(md_context *context) {
  (void)context;
  usleep(600000);
}
static void agree(md_context *context) {
  md_watch_agreed(context);
  usleep(600000);
}
static void close_all(md_context *context) {
  md_watch_end(context);
  usleep(600000);
}

static void silence_ends_the_process(void **state) {
  (void)state;
  const ending e = end_of(2, true, MD_WATCH_RANKS, 0.1, stay);
  assert_int_equal(e.code, MD_ENVIRONMENT);
  assert_string_equal(e.said, "rank 1 is silent\n");
}

static void agreement_ends_the_watch(void **state) {
  (void)state;
  assert_int_equal(end_of(2, true, MD_WATCH_RANKS, 0.1, agree).code, 7);
  assert_int_equal(end_of(2, true, MD_WATCH_DEVICE, 0.1, close_all).code, 7);
}

/* The GPU does not come back although the ranks agree. */
static void a_device_stays_lost(void **state) {
  (void)state;
  assert_int_equal(end_of(2, true, MD_WATCH_DEVICE, 0.1, agree).code, MD_ENVIRONMENT);
}

static void one_rank_waits_for_nobody(void **state) {
  (void)state;
  assert_int_equal(end_of(1, true, MD_WATCH_DEVICE, 0.1, agree).code, 7);
}

/* A host program that has not asked for it is never ended, nor one of endless patience. */
static void nobody_asked(void **state) {
  (void)state;
  const ending e = end_of(2, false, MD_WATCH_RANKS, 0.1, stay);
  assert_int_equal(e.code, 7);
  assert_string_equal(e.said, "");
  assert_int_equal(end_of(2, true, MD_WATCH_RANKS, 0.0, stay).code, 7);
}

static void patience_is_the_context_s(void **state) {
  (void)state;
  const double start_s = md_time_s() - 2.0;
  md_context context = {.ranks = 2, .give_up = give_up, .patience_s = 1.0};
  assert_true(md_watch_due(&context, start_s));
  assert_false(md_watch_due(&context, md_time_s()));
  context.patience_s = 0.0;
  assert_false(md_watch_due(&context, start_s));
  context = (md_context){.ranks = 2, .patience_s = 1.0};
  assert_false(md_watch_due(&context, start_s));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(silence_ends_the_process),
                                     cmocka_unit_test(agreement_ends_the_watch),
                                     cmocka_unit_test(a_device_stays_lost),
                                     cmocka_unit_test(one_rank_waits_for_nobody),
                                     cmocka_unit_test(nobody_asked),
                                     cmocka_unit_test(patience_is_the_context_s)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
