/* What ranks agree on: the worst status with the message of the lowest rank that failed with it,
 * extremes that keep NaN, sums and broadcasts. */
#include "base/file.h"
#include "base/text.h"
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Each rank fails in turn, alone. */
static void one_failure_is_that_of_all(void **state) {
  md_context *context = *state;
  for (int bad = 0; bad < context->ranks; bad++) {
    char expected[64];
    snprintf(expected, sizeof expected, "rank %d has failed", bad);
    snprintf(context->message, sizeof context->message, "nothing");
    const md_status mine =
        context->rank == bad ? md_fail(context, MD_INPUT, "%s", expected) : MD_OK;
    assert_int_equal(md_agree(context, mine), MD_INPUT);
    assert_string_equal(context->message, expected);
  }
  assert_int_equal(md_agree(context, MD_OK), MD_OK);
}

/* All fail, the last one worst; then all alike. */
static void worst_failure_wins(void **state) {
  md_context *context = *state;
  const bool last = context->rank == context->ranks - 1;
  char expected[64];
  snprintf(expected, sizeof expected, "of rank %d", context->ranks - 1);
  md_status status = last ? MD_ENVIRONMENT : MD_INPUT;
  status = md_fail(context, status, "of rank %d", context->rank);
  assert_int_equal(md_agree(context, status), MD_ENVIRONMENT);
  assert_string_equal(context->message, expected);
  status = md_fail(context, MD_INPUT, "of rank %d", context->rank);
  assert_int_equal(md_agree(context, status), MD_INPUT);
  assert_int_equal(context->message[strlen(context->message) - 1], '0');
}

static void give_up(const char *failure) {
  print_error("%s\n", failure);
  abort();
}

/* Ranks that come late are waited for, first quietly and then under a watch, and agree as ever. */
static void late_ranks_agree(void **state) {
  md_context *context = *state;
  context->patience_s = 0.1;
  context->give_up = give_up;
  for (int failing = -1; failing < context->ranks; failing++) {
    md_status mine = MD_OK;
    if (context->rank == failing) mine = md_fail(context, MD_INPUT, "rank %d failed", failing);
    if (context->rank == context->ranks - 1) usleep(300000);
    const md_status all = md_agree_soon(context, mine, "a test");
    assert_int_equal(all, failing < 0 ? MD_OK : MD_INPUT);
    assert_null(context->watch);
    char expected[32];
    snprintf(expected, sizeof expected, "rank %d failed", failing);
    if (failing >= 0) assert_string_equal(context->message, expected);
  }
  context->give_up = NULL;
}

static volatile sig_atomic_t gave_up;
static void note(const char *failure) {
  gave_up = strcmp(failure, "nobody knows") == 0 ? 1 : 2;
}

/* At the end a rank whose failure the others do not know gives them up, and no other does. */
static void last_agreement_is_not_waited_for(void **state) {
  md_context *context = *state;
  const bool failed = context->rank == context->ranks - 1;
  context->patience_s = 0.1;
  context->give_up = note;
  if (!failed) usleep(1000000);
  const md_status mine = failed ? md_fail(context, MD_INPUT, "nobody knows") : MD_OK;
  assert_int_equal(md_agree_last(context, mine), MD_INPUT);
  if (failed || context->ranks > 1) assert_string_equal(context->message, "nobody knows");
  assert_int_equal(gave_up, failed && context->ranks > 1);
  context->give_up = NULL;
}

/* Before MPI starts: the environment of each rank says something else. */
__attribute__((constructor)) static void wish(void) {
  const char *rank = getenv("OMPI_COMM_WORLD_RANK");
  const bool first = !rank || strcmp(rank, "0") == 0;
  setenv("MINIDIRAC_RECORD", first ? "always" : "perhaps", 1);
  setenv("MINIDIRAC_TEST_GPU", first ? "4,99" : "few", 1);
  setenv("MINIDIRAC_TEST_NODE_SIZE", first ? "" : "1", 1);
}

static void wishes_are_those_of_rank_0(void **state) {
  const md_context *context = *state;
  assert_int_equal(context->wishes.record, MD_RECORD_ALWAYS);
  assert_int_equal(context->wishes.gpu.multiprocessors, 4);
  assert_int_equal(context->wishes.gpu.block_shared_kib, 99);
  assert_int_equal(context->wishes.gpu.l2_mib, 0);
  assert_int_equal(context->wishes.node_size, 0);
  assert_null(context->give_up); /* the library ends no process unasked */
  assert_true(context->patience_s == 0.0);
}

/* A deferred failure of each rank in turn ends all at the next agreement, once. */
static void deferred_failure_is_told(void **state) {
  md_context *context = *state;
  for (int bad = 0; bad < context->ranks; bad++) {
    char expected[64];
    snprintf(expected, sizeof expected, "rank %d has failed before", bad);
    if (context->rank == bad) {
      const md_status kept = md_defer(context, md_fail(context, MD_INPUT, "%s", expected));
      assert_int_equal(kept, context->ranks == 1 ? MD_INPUT : MD_OK);
      if (context->ranks == 1) return;
      (void)md_defer(context, md_fail(context, MD_INPUT, "what follows from it"));
    }
    assert_int_equal(md_agree(context, MD_OK), MD_INPUT);
    assert_string_equal(context->message, expected);
    assert_int_equal(md_agree(context, MD_OK), MD_OK);
    md_new_file file; /* whose temporary goes */
    if (context->rank == bad) (void)md_defer(context, md_fail(context, MD_INPUT, "%s", expected));
    assert_int_equal(md_new_file_begin(context, "/tmp/minidirac-deferred", &file), MD_INPUT);
    assert_true(file.file < 0 && access(file.path, F_OK) != 0);
  }
}

static void extremes_and_sums(void **state) {
  md_context *context = *state;
  const int last = context->ranks - 1;
  double high[3] = {context->rank, -context->rank, -2.5}, low[3] = {high[0], high[1], high[2]};
  long long counts[2] = {context->rank + 1, 1LL << 40};
  md_maximum(context, high, 3);
  md_minimum(context, low, 3);
  md_sum_integers(context, counts, 2);
  assert_true(high[0] == last && high[1] == 0.0 && high[2] == -2.5);
  assert_true(low[0] == 0.0 && low[1] == -last && low[2] == -2.5);
  assert_true(counts[0] == (last + 1) * (last + 2) / 2 && counts[1] == (1LL << 40) * (last + 1));
}

/* On each rank in turn, beside larger and smaller numbers. */
static void not_a_number_stays(void **state) {
  md_context *context = *state;
  for (int bad = 0; bad < context->ranks; bad++) {
    double high[2] = {context->rank == bad ? NAN : 1e300, 1.0}, low[2] = {high[0], 1.0};
    md_maximum(context, high, 2);
    md_minimum(context, low, 2);
    assert_true(isnan(high[0]) && isnan(low[0]) && high[1] == 1.0 && low[1] == 1.0);
  }
}

static void broadcast_is_of_rank_0(void **state) {
  md_context *context = *state;
  char text[32] = "";
  if (context->rank == 0) snprintf(text, sizeof text, "from the first");
  md_broadcast(context, text, sizeof text);
  assert_string_equal(text, "from the first");
}

static void messages_are_one_line(void **state) {
  md_context *context = *state;
  assert_int_equal(md_fail(context, MD_INPUT, "one\ntwo\r%d", 3), MD_INPUT);
  assert_string_equal(context->message, "one\\x0atwo\\x0d3");
}

/* Groups agree and add among themselves; the whole goes on as before. */
static void groups_are_runs_of_their_own(void **state) {
  md_context *context = *state, part;
  const int group = context->rank % 2, members = (context->ranks + 1 - group) / 2;
  MD_REQUIRE(context, md_context_split(context, group, &part));
  assert_int_equal(part.ranks, members);
  assert_int_equal(part.rank, context->rank / 2);
  long long sum = context->rank;
  md_sum_integers(&part, &sum, 1);
  assert_int_equal(sum, members * (members - 1) + group * members);
  const md_status mine = group ? md_fail(&part, MD_INPUT, "group 1") : MD_OK;
  assert_int_equal(md_agree(&part, mine), group ? MD_INPUT : MD_OK);
  md_context_join(context, &part);
  assert_int_equal(md_agree(context, MD_OK), MD_OK);
  sum = 1;
  md_sum_integers(context, &sum, 1);
  assert_int_equal(sum, context->ranks);
}

static void appending_stays_within(void **state) {
  (void)state;
  char text[8 + 1] = "ab";
  text[8] = 'X'; /* behind the eight bytes */
  assert_true(md_append(text, 8, "%s%d", "cd", 1));
  assert_string_equal(text, "abcd1");
  assert_false(md_append(text, 8, "|%s", "efgh"));
  assert_string_equal(text, "abcd1|e");
  assert_false(md_append(text, 8, "i"));
  assert_string_equal(text, "abcd1|e");
  assert_int_equal(text[8], 'X');
}

static struct CMUnitTest tests[] = {
    cmocka_unit_test(one_failure_is_that_of_all),
    cmocka_unit_test(worst_failure_wins),
    cmocka_unit_test(wishes_are_those_of_rank_0),
    cmocka_unit_test(late_ranks_agree),
    cmocka_unit_test(last_agreement_is_not_waited_for),
    cmocka_unit_test(deferred_failure_is_told),
    cmocka_unit_test(extremes_and_sums),
    cmocka_unit_test(not_a_number_stays),
    cmocka_unit_test(groups_are_runs_of_their_own),
    cmocka_unit_test(broadcast_is_of_rank_0),
    cmocka_unit_test(messages_are_one_line),
    cmocka_unit_test(appending_stays_within),
};
MD_RUN_TESTS(tests)
