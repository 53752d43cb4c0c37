/* Lines of progress that stay: one a minute over all work of a run, none when quiet or never. */
#include "base/progress.h"
#include "support.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What an update at the fraction writes on stderr, which is a file. */
static const char *written(md_progress *progress, double fraction) {
  static char text[512];
  FILE *file = tmpfile();
  const int before = dup(STDERR_FILENO);
  fflush(stderr);
  dup2(fileno(file), STDERR_FILENO);
  md_progress_update(progress, fraction, "step %d", 7);
  fflush(stderr);
  dup2(before, STDERR_FILENO);
  close(before);
  rewind(file);
  text[fread(text, 1, sizeof text - 1, file)] = '\0';
  fclose(file);
  return text;
}

/* As if the last line and the start of the work were older. */
static void grow_older(md_progress *progress, double by_s) {
  progress->start_s -= by_s;
  progress->context->progress.said_s -= by_s;
  progress->context->progress.whole_s -= by_s;
}

static void choose(md_context *context, const char *wish, bool quiet) {
  const int before = dup(STDERR_FILENO);
  FILE *file = tmpfile(); /* no terminal */
  dup2(fileno(file), STDERR_FILENO);
  context->quiet = quiet;
  md_progress_choose(context, wish);
  dup2(before, STDERR_FILENO);
  close(before);
  fclose(file);
}

static void one_line_a_minute(void **state) {
  md_context *context = *state;
  choose(context, "auto", false);
  md_progress one = md_progress_start(context, "one"), two = md_progress_start(context, "two");
  assert_string_equal(written(&one, 0.25), "");
  grow_older(&one, 59.0);
  assert_string_equal(written(&one, 0.25), "");
  grow_older(&one, 1.0);
  assert_string_equal(written(&one, 0.25), "one: step 7, 60.0 s, about 3.0 min left\n");
  grow_older(&two, 30.0);
  assert_string_equal(written(&two, 0.25), ""); /* the minute is the run's */
  grow_older(&two, 30.0);
  assert_string_equal(written(&two, -1.0), "two: step 7, 60.0 s\n");
  md_progress_stop(&two);
}

static void as_asked(void **state) {
  md_context *context = *state;
  md_progress p = md_progress_start(context, "p");
  choose(context, "auto", true);
  grow_older(&p, 1000.0);
  assert_string_equal(written(&p, 0.5), "");
  choose(context, "never", false);
  grow_older(&p, 1000.0);
  assert_string_equal(written(&p, 0.5), "");
  choose(context, "always", true);
  assert_string_equal(written(&p, 0.5), "p: step 7, 33.3 min, about 33.3 min left\n");
  assert_string_equal(written(&p, 0.5), "");
  context->rank = 1;
  choose(context, "always", false);
  assert_string_equal(written(&p, 0.5), "");
  context->rank = 0;
}

/* A quarter of the third of four pieces: 9/16 of all. */
static void pieces_of_a_whole(void **state) {
  md_context *context = *state;
  choose(context, "always", false);
  md_progress_piece(context, 0.0, 0.25, "piece 1 of 4");
  md_progress p = md_progress_start(context, "p");
  md_progress_piece(context, 0.5, 0.25, "piece 3 of 4");
  grow_older(&p, 90.0);
  p.start_s += 80.0;
  assert_string_equal(written(&p, 0.25), "p: piece 3 of 4, 90.0 s, about 70 s left, step 7\n");
  grow_older(&p, 60.0);
  md_progress_piece(context, -1.0, 0.0, "piece 4 of 4");
  assert_string_equal(written(&p, 0.25), "p: piece 4 of 4, 70.0 s, about 3.5 min left, step 7\n");
  md_progress_pieces_end(context);
  grow_older(&p, 60.0);
  assert_string_equal(written(&p, -1.0), "p: step 7, 2.2 min\n");
}

int main(int argc, char **argv) {
  md_context *context = md_test_begin(&argc, &argv);
  const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(one_line_a_minute, context),
                                     cmocka_unit_test_prestate(as_asked, context),
                                     cmocka_unit_test_prestate(pieces_of_a_whole, context)};
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  return md_test_end(context, failed);
}
