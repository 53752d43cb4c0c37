/* A watch ends the process with its message when the ranks do not agree in time, and leaves it
 * alone when they do. Each case runs in a process of its own, as rank 0 of two. */
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

/* What becomes of a process that begins a watch of so many seconds, and then does `next`. */
static ending end_of(int ranks, md_watch_kind kind, double patience_s,
                     void (*next)(md_context *context)) {
  ending e = {0};
  int status = 0, pipe_ends[2];
  assert_int_equal(pipe(pipe_ends), 0);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    md_context context = {.ranks = ranks};
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
  sleep(10);
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
  const ending e = end_of(2, MD_WATCH_RANKS, 0.1, stay);
  assert_int_equal(e.code, MD_ENVIRONMENT);
  assert_string_equal(e.said, "minidirac: error: rank 1 is silent\n");
}

static void agreement_ends_the_watch(void **state) {
  (void)state;
  assert_int_equal(end_of(2, MD_WATCH_RANKS, 0.1, agree).code, 7);
  assert_int_equal(end_of(2, MD_WATCH_DEVICE, 0.1, close_all).code, 7);
}

/* The GPU does not come back although the ranks agree. */
static void a_device_stays_lost(void **state) {
  (void)state;
  assert_int_equal(end_of(2, MD_WATCH_DEVICE, 0.1, agree).code, MD_ENVIRONMENT);
}

static void one_rank_waits_for_nobody(void **state) {
  (void)state;
  assert_int_equal(end_of(1, MD_WATCH_DEVICE, 0.1, agree).code, 7);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(silence_ends_the_process), cmocka_unit_test(agreement_ends_the_watch),
      cmocka_unit_test(a_device_stays_lost), cmocka_unit_test(one_rank_waits_for_nobody)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
