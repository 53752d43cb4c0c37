/* The option table: lists, choices, positional words, decks with their lines. */
#include "base/options.h"
#include "base/waiting.h"
#include "support.h"

#include <fcntl.h>
#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct values {
  md_common_options common;
  const char *file, *kind;
  md_integers counts;
  md_reals masses;
  md_choices words;
  int dims[4];
  bool fast, seen_file, seen_counts;
} values;

enum { MOST_ARGUMENTS = 8 };

/* Reads the words "a b c" as a command line. */
static md_status read_words(md_context *context, const char *line, values *v) {
  static char copy[512];
  char *argv[MOST_ARGUMENTS] = {"test"};
  int argc = 1;
  snprintf(copy, sizeof copy, "%s", line);
  for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) argv[argc++] = word;
  *v = (values){.kind = "one"};
  md_option options[] = {{.name = "file",
                          .type = MD_OPTION_TEXT,
                          .target = &v->file,
                          .argument = "FILE",
                          .help = "",
                          .positional = true,
                          .required = true},
                         {.name = "kind",
                          .type = MD_OPTION_CHOICE,
                          .target = &v->kind,
                          .choices = "one|two",
                          .help = ""},
                         {.name = "counts",
                          .type = MD_OPTION_INTEGERS,
                          .target = &v->counts,
                          .initial = "1,8",
                          .low = 1,
                          .high = 64,
                          .argument = "N",
                          .help = ""},
                         {.name = "masses",
                          .type = MD_OPTION_REALS,
                          .target = &v->masses,
                          .argument = "M",
                          .help = ""},
                         {.name = "words",
                          .type = MD_OPTION_CHOICES,
                          .target = &v->words,
                          .initial = "all",
                          .choices = "red|green|blue",
                          .help = ""},
                         {.name = "dims",
                          .type = MD_OPTION_DIMS,
                          .target = v->dims,
                          .low = 1,
                          .high = 32767,
                          .argument = "AxBxCxD",
                          .help = ""},
                         {.name = "fast", .type = MD_OPTION_FLAG, .target = &v->fast, .help = ""},
                         MD_COMMON_OPTIONS(v->common)};
  const md_command_text text = {"test", "", NULL, NULL};
  enum { COUNT = sizeof options / sizeof *options };
  const md_status status = md_options_read(context, &text, options, COUNT, &v->common, argc, argv);
  v->seen_file = md_option_seen(options, COUNT, "file");
  v->seen_counts = md_option_seen(options, COUNT, "counts");
  return status;
}

static void refuses(md_context *context, const char *line, const char *message) {
  values v;
  const md_status status = read_words(context, line, &v);
  if (status != MD_INPUT || !strstr(context->message, message))
    fail_msg("'%s': %d, %s", line, (int)status, status ? context->message : "");
}

static void takes_lists_and_words(void **state) {
  md_context *context = *state;
  values v;
  MD_REQUIRE(context,
             read_words(context, "x.h5 --counts 3,64 --masses=0.5,-1 --words blue,red", &v));
  assert_string_equal(v.file, "x.h5");
  assert_int_equal(v.counts.count, 2);
  assert_int_equal(v.counts.value[1], 64);
  assert_true(v.masses.value[1] == -1.0);
  assert_false(v.words.all);
  assert_int_equal(v.words.value[0] * 10 + v.words.value[1], 20);
  MD_REQUIRE(context, read_words(context, "--file y.h5 --dims 4x4x4x8", &v));
  assert_string_equal(v.file, "y.h5");
  assert_int_equal(v.dims[3], 8);
  assert_int_equal(v.counts.value[1], 8);
  assert_true(v.words.all && v.words.count == 3);
}

static void refuses_on_the_line(void **state) {
  md_context *context = *state;
  refuses(context, "", "test needs --file FILE, with or without the flag");
  refuses(context, "x y", "does not know the argument 'y'");
  refuses(context, "x --file y", "--file is given twice");
  refuses(context, "x --dims 4294967300x4x4x4", "--dims takes 1 to 32767 in each direction");
  refuses(context, "x --dims 4x4x4", "--dims must be four integers");
  refuses(context, "x --grid 4294967297x1x1x1", "--grid takes 1 to");
  refuses(context, "x --counts 1,65", "--counts must lie in 1 to 64, got 65");
  refuses(context, "x --counts 1,,2", "none of them empty");
  refuses(context, "x --counts 1,2a", "--counts must be a list of integers A,B,..., got '2a'");
  refuses(context, "x --masses 1,nan", "--masses must be a list of finite numbers");
  refuses(context, "x --words red,gren", "got 'gren'; did you mean 'green'?");
  refuses(context, "x --fsat", "option '--fsat'; see minidirac test --help; did you mean 'fast'?");
  refuses(context, "x --kind tow", "--kind must be one of one|two, got 'tow'; did you mean 'two'?");
}

static void deck_says(md_context *context, const char *deck, const char *message) {
  char path[] = "/tmp/deckXXXXXX", line[64], expected[256];
  if (context->rank == 0) {
    const int file = mkstemp(path);
    assert_true(file >= 0 && write(file, deck, strlen(deck)) == (ssize_t)strlen(deck));
    close(file);
  }
  md_broadcast(context, path, sizeof path);
  snprintf(line, sizeof line, "--config %s", path);
  snprintf(expected, sizeof expected, "deck %s%s", path, message);
  refuses(context, line, expected);
  md_barrier(context);
  if (context->rank == 0) unlink(path);
}

static void refuses_in_a_deck_with_the_line(void **state) {
  md_context *context = *state;
  char deck[1200];
  deck_says(context, "file = x\n\n; two\ndims = 4x4x4x99999\n", ", line 4: dims takes 1 to 32767");
  deck_says(context, "file = x\nkind = tow\n", ", line 2: kind must be one of one|two");
  deck_says(context, "[test]\nfile = x\nfast = yes\n", ", line 3: fast must be true or false");
  deck_says(context, "file = x\ncuonts = 1\n", ", line 2: test does not know the key 'cuonts'");
  deck_says(context, "file = x\nfile = y\n", ", line 2: key 'file' is given twice");
  deck_says(context, "file = x\n[solve]\nfast = true\n", ", line 2: section [solve]");
  deck_says(context, "file = x\n\n[tset]\n", ", line 3: section [tset]");
  deck_says(context, " [tset]\n[test]\nfile = x\n", ", line 1: section [tset]");
  deck_says(context, "[test] file = x\n",
            ", line 1: nothing may follow the section, got 'file = x'");
  deck_says(context, "[test] \t; one\n[defaults]# two\r\nfile = x\n[test] ] ; three\n",
            ", line 4: nothing may follow the section, got '] ; three'");
  snprintf(deck, sizeof deck, "; one\nfile = %01000d\n", 7);
  deck_says(context, deck, ": line 2 must have at most");
}

/* Values of [defaults] are taken, and stand below a word; they do not count as given. */
static void defaults_of_a_deck_are_not_given(void **state) {
  md_context *context = *state;
  char path[] = "/tmp/deckXXXXXX", line[64];
  const char deck[] = "[test]\ncounts = 7\n[defaults]\nfile = x\nkind = two\nfast = true\n";
  values v;
  if (context->rank == 0) {
    const int file = mkstemp(path);
    assert_true(file >= 0 && write(file, deck, strlen(deck)) == (ssize_t)strlen(deck));
    close(file);
  }
  md_broadcast(context, path, sizeof path);
  snprintf(line, sizeof line, "--config %s --kind one", path);
  MD_REQUIRE(context, read_words(context, line, &v));
  assert_true(v.counts.count == 1 && v.counts.value[0] == 7 && v.fast);
  assert_string_equal(v.kind, "one");
  assert_string_equal(v.file, "x");
  assert_true(v.seen_counts && !v.seen_file);
  md_barrier(context);
  if (context->rank == 0) unlink(path);
}

/* Writes a deck into the pipe, a moment after it was opened, in two parts. */
static void *write_deck(void *path) {
  static const char *const part[] = {"file = x\ncou", "nts = 7\n"};
  const int file = open(path, O_WRONLY);
  for (int i = 0; i < 2 && file >= 0; i++) {
    usleep(200000);
    if (write(file, part[i], strlen(part[i])) < 0) break;
  }
  close(file);
  return NULL;
}

/* A pipe is read to its end, or until a signal reaches some rank; a limit is nobody's deck. */
static void reads_decks_of_pipes(void **state) {
  md_context *context = *state;
  const bool first = context->rank == 0;
  char path[] = "/tmp/deckXXXXXX", line[64];
  values v;
  pthread_t writer;
  if (first) {
    close(mkstemp(path));
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(pthread_create(&writer, NULL, write_deck, path), 0);
  }
  md_broadcast(context, path, sizeof path);
  snprintf(line, sizeof line, "--config %s", path);
  MD_REQUIRE(context, read_words(context, line, &v));
  assert_string_equal(v.file, "x");
  assert_int_equal(v.counts.value[0], 7);
  if (first) pthread_join(writer, NULL);
  volatile sig_atomic_t signalled = context->rank == context->ranks - 1 ? SIGTERM : 0;
  context->signal = &signalled;
  assert_int_equal(read_words(context, line, &v), MD_ENVIRONMENT);
  assert_non_null(strstr(context->message, "SIGTERM ended the run, which was waiting for"));
  context->signal = NULL;
  context->interrupt = (md_interrupt){0};
  struct rlimit before, none;
  getrlimit(RLIMIT_NOFILE, &before);
  none = before;
  if (first) none.rlim_cur = 0;
  setrlimit(RLIMIT_NOFILE, &none);
  const md_status limited = read_words(context, line, &v);
  setrlimit(RLIMIT_NOFILE, &before);
  assert_int_equal(limited, MD_ENVIRONMENT);
  assert_non_null(strstr(context->message, "Too many open files"));
  if (first) unlink(path);
  refuses(context, "--config /dev/zero", "deck /dev/zero must be a file or a pipe, it is a device");
  refuses(context, "--config /tmp", "deck /tmp must be a file or a pipe, it is a directory");
}

static void threads_of_the_environment(void **state) {
  md_context *context = *state;
  values v;
  static const char *const bad[] = {"many", "0",  "-2",  "4097", "99999999999",
                                    "2x",   "1,", "2,x", "2 3"};
  const char *before = getenv("OMP_NUM_THREADS");
  char kept[64];
  snprintf(kept, sizeof kept, "%s", before ? before : "1");
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    setenv("OMP_NUM_THREADS", bad[i], 1);
    refuses(context, "x", "OMP_NUM_THREADS must be an integer from 1 to 4096, got");
    MD_REQUIRE(context, read_words(context, "x --threads 1", &v));
  }
  setenv("OMP_NUM_THREADS", " 3 , 2", 1);
  MD_REQUIRE(context, read_words(context, "x", &v));
  setenv("OMP_NUM_THREADS", kept, 1);
}

/* What fails on one rank alone, in its words or its environment, ends all. */
static void one_rank_fails_for_all(void **state) {
  md_context *context = *state;
  char kept[64];
  snprintf(kept, sizeof kept, "%s", getenv("OMP_NUM_THREADS") ? getenv("OMP_NUM_THREADS") : "1");
  for (int bad = 0; bad < context->ranks; bad++) {
    const bool mine = context->rank == bad;
    refuses(context, mine ? "x --dims 4x4x4" : "x", "--dims must be four integers");
    if (mine) setenv("OMP_NUM_THREADS", "100000", 1);
    refuses(context, "x", "OMP_NUM_THREADS must be an integer from 1 to 4096, got '100000'");
    setenv("OMP_NUM_THREADS", kept, 1);
  }
}

/* OpenMP would end the process. */
static void threads_must_be_had(void **state) {
  md_context *context = *state;
  values v;
  const bool mine = context->rank == context->ranks - 1;
  char expected[64];
  if (mine) setenv("OMP_STACKSIZE", "1000000 G", 1);
  snprintf(expected, sizeof expected, "rank %d must have 3 threads, but", context->ranks - 1);
  assert_int_equal(read_words(context, "x --threads 3", &v), MD_ENVIRONMENT);
  if (!strstr(context->message, expected)) fail_msg("%s", context->message);
  if (mine) setenv("OMP_STACKSIZE", "512", 1);
  assert_int_equal(read_words(context, "x --threads 3", &v), MD_ENVIRONMENT);
  assert_non_null(strstr(context->message, "stacks of 2 MiB, got 512 KiB; raise OMP_STACKSIZE"));
  MD_REQUIRE(context, read_words(context, "x --threads 1", &v));
  if (mine) setenv("OMP_STACKSIZE", "2048", 1);
  MD_REQUIRE(context, read_words(context, "x --threads 3", &v));
  assert_true(md_number_in("/proc/self/status", "VmStk") >= 3 << 9); /* kB, and no limit stops it */
  unsetenv("OMP_STACKSIZE");
  omp_set_num_threads(1);
}

static void arguments_are_those_of_rank_0(void **state) {
  md_context *context = *state;
  char *argv[] = {"test", "--mass", "0.1", "more", NULL},
       *other[] = {"test", "--mass", "0.2", NULL};
  MD_REQUIRE(context, md_arguments_check(context, 3, argv));
  for (int bad = 1; bad < context->ranks; bad++) {
    const bool mine = context->rank == bad;
    assert_int_equal(md_arguments_check(context, 3, mine ? other : argv), MD_INPUT);
    assert_non_null(strstr(context->message, "has '0.2' where rank 0 has '0.1'"));
    assert_int_equal(md_arguments_check(context, mine ? 4 : 3, argv), MD_INPUT);
    assert_non_null(strstr(context->message, "has 'more' where rank 0 has '(no more)'"));
    assert_int_equal(md_arguments_check(context, mine ? 1 : 3, argv), MD_INPUT);
    assert_non_null(strstr(context->message, "has '(no more)' where rank 0 has '--mass'"));
  }
}

static void patience_is_that_of_the_context(void **state) {
  md_context *context = *state;
  values v;
  MD_REQUIRE(context, read_words(context, "x", &v));
  assert_true(context->patience_s == 45.0);
  MD_REQUIRE(context, read_words(context, "x --patience 0", &v));
  assert_true(context->patience_s == 0.0);
  refuses(context, "x --patience -1", "--patience must lie in 0 to 1e+06, got -1");
}

int main(int argc, char **argv) {
  md_context *context = md_test_begin(&argc, &argv);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_prestate(takes_lists_and_words, context),
      cmocka_unit_test_prestate(refuses_on_the_line, context),
      cmocka_unit_test_prestate(refuses_in_a_deck_with_the_line, context),
      cmocka_unit_test_prestate(defaults_of_a_deck_are_not_given, context),
      cmocka_unit_test_prestate(reads_decks_of_pipes, context),
      cmocka_unit_test_prestate(threads_of_the_environment, context),
      cmocka_unit_test_prestate(one_rank_fails_for_all, context),
      cmocka_unit_test_prestate(threads_must_be_had, context),
      cmocka_unit_test_prestate(arguments_are_those_of_rank_0, context),
      cmocka_unit_test_prestate(patience_is_that_of_the_context, context)};
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  return md_test_end(context, failed);
}
