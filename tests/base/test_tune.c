/* What a trial finds is remembered in the run and in its file, is the same on all ranks, and serves
 * no other build, GPU or list of candidates; a damaged file is refused. */
#include "base/tune.h"
#include "support.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CANDIDATES = 4 };
typedef struct fake {
  double time_s[CANDIDATES];
  int trials, failing; /* the candidate whose trial fails; -1: none */
} fake;

static void name(const void *user, int candidate, char text[MD_TUNE_NAME_BYTES]) {
  (void)user;
  snprintf(text, MD_TUNE_NAME_BYTES, "tile %d", candidate);
}

static md_status time_fake(md_context *context, void *user, int candidate, double *time_s) {
  fake *f = user;
  f->trials++;
  if (candidate == f->failing) return md_fail(context, MD_ENVIRONMENT, "it did not start");
  *time_s = f->time_s[candidate];
  return MD_OK;
}

/* Rank 0 finds number 2 the fastest, the others number 1. */
static fake fake_of(const md_context *context) {
  return (fake){{4e-6, context->rank == 0 ? 3e-6 : 1e-6, 2e-6, 5e-6}, 0, -1};
}

static md_status choose(md_context *context, fake *f, const char *work, int count, int *found) {
  const md_tune_case of = {work, count, f, name, time_fake};
  return md_tune_choose(context, &of, found);
}

static int chosen(md_context *context, fake *f, const char *work) {
  int found = -1;
  MD_REQUIRE(context, choose(context, f, work, CANDIDATES, &found));
  return found;
}

static char path[64];

/* Rank 0 writes `text`, NULL: removes the file, before anyone goes on. */
static void put(md_context *context, const char *text) {
  if (context->rank == 0) {
    unlink(path);
    FILE *file = text ? fopen(path, "w") : NULL;
    if (file) fputs(text, file), fclose(file);
  }
  md_barrier(context);
}

/* The file as JSON, on rank 0 alone; the caller frees it. */
static cJSON *get(const md_context *context) {
  static char text[1 << 16];
  if (context->rank > 0) return NULL;
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  text[fread(text, 1, sizeof text - 1, file)] = '\0';
  fclose(file);
  cJSON *root = cJSON_Parse(text);
  assert_non_null(root);
  return root;
}

static cJSON *choice_of(const cJSON *root, int n) {
  return cJSON_GetArrayItem(cJSON_GetObjectItem(root, "choices"), n);
}

/* Writes the file anew with another text under a key of its first choice. */
static void change(md_context *context, const char *key, const char *text) {
  cJSON *root = get(context);
  if (root) cJSON_SetValuestring(cJSON_GetObjectItem(choice_of(root, 0), key), text);
  char *printed = root ? cJSON_Print(root) : NULL;
  put(context, printed);
  cJSON_free(printed);
  cJSON_Delete(root);
}

/* Begins anew by the file; who chooses must or must not make trials, and number 2 is the answer. */
static void require_trials(md_context *context, bool expected) {
  fake f = fake_of(context);
  MD_REQUIRE(context, md_tune_open(context, path));
  assert_int_equal(chosen(context, &f, "hop"), 2);
  assert_int_equal(f.trials, expected && context->rank == 0 ? CANDIDATES : 0);
  cJSON *report = cJSON_CreateObject();
  md_tune_report(context, report);
  if (context->rank == 0) {
    const cJSON *told = cJSON_GetArrayItem(cJSON_GetObjectItem(report, "tuned"), 0);
    assert_string_equal(cJSON_GetObjectItem(told, "from")->valuestring,
                        expected ? "trial" : "file");
    assert_string_equal(cJSON_GetObjectItem(told, "choice")->valuestring, "tile 2");
  }
  cJSON_Delete(report);
}

static void no_trials_unasked(void **state) {
  md_context *context = *state;
  fake f = fake_of(context);
  assert_int_equal(chosen(context, &f, "hop"), 0);
  assert_int_equal(f.trials, 0);
}

static void choices_are_remembered(void **state) {
  md_context *context = *state;
  fake f = fake_of(context);
  put(context, NULL);
  require_trials(context, true);
  assert_int_equal(chosen(context, &f, "hop"), 2); /* in the run */
  assert_int_equal(f.trials, 0);
  assert_int_equal(chosen(context, &f, "another hop"), 2);
  assert_int_equal(f.trials, context->rank == 0 ? CANDIDATES : 0);
  cJSON *report = cJSON_CreateObject();
  md_tune_report(context, report);
  assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(report, "tuned")),
                   context->rank == 0 ? 2 : 0);
  cJSON_Delete(report);
  require_trials(context, false);
  cJSON *root = get(context);
  if (root) assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(root, "choices")), 2);
  cJSON_Delete(root);
  md_tune_close(context);
}

/* A choice of another build makes room, one on another GPU stays. */
static void stale_choices_are_left_alone(void **state) {
  md_context *context = *state;
  static const struct {
    const char *key, *text;
    int left;
  } changes[] = {{"build", "0.0 older", 1},
                 {"choice", "tile 9", 1},
                 {"gpu", "another", 2},
                 {"work", "what nobody does", 2}};
  for (size_t k = 0; k < sizeof changes / sizeof *changes; k++) {
    put(context, "");
    require_trials(context, true);
    change(context, changes[k].key, changes[k].text);
    require_trials(context, true);
    require_trials(context, false);
    cJSON *root = get(context);
    if (root)
      assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(root, "choices")), changes[k].left);
    cJSON_Delete(root);
  }
  md_tune_close(context);
}

static void damaged_files_are_refused(void **state) {
  md_context *context = *state;
  static const struct {
    const char *text, *reason;
  } files[] = {
      {"{\"format\": \"minidirac tun", "is not whole JSON"},
      {"{}", "has not the format"},
      {"[1, 2]", "has not the format"},
      {"{\"format\": \"minidirac tuning 1\"}", "has no list"},
      {"{\"format\": \"minidirac tuning 1\", \"choices\": [7]}", "without one of its texts"},
      {"{\"format\": \"minidirac tuning 1\", \"choices\": [{\"build\": \"\", \"gpu\": \"\", "
       "\"work\": \"\", \"choice\": 3, \"time_s\": 1}]}",
       "without one of its texts"},
      {"{\"format\": \"minidirac tuning 1\", \"choices\": [{\"build\": \"\", \"gpu\": \"\", "
       "\"work\": \"\", \"choice\": \"\", \"time_s\": null}]}",
       "without its time"}};
  for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
    put(context, files[k].text);
    assert_int_equal(md_tune_open(context, path), MD_INPUT);
    assert_non_null(strstr(context->message, files[k].reason));
    assert_null(context->tune);
  }
  put(context, NULL);
}

/* The fewest candidates of a rank count, and a failure of rank 0 is one of all. */
static void ranks_agree(void **state) {
  md_context *context = *state;
  fake f = fake_of(context);
  int found = -1;
  MD_REQUIRE(context, md_tune_open(context, path));
  const bool last = context->rank == context->ranks - 1;
  MD_REQUIRE(context, choose(context, &f, "few", last ? 2 : CANDIDATES, &found));
  assert_int_equal(found, 1);
  MD_REQUIRE(context, choose(context, &f, "one", last ? 1 : CANDIDATES, &found));
  assert_int_equal(found, 0);
  f.failing = 1;
  assert_int_equal(choose(context, &f, "fails", CANDIDATES, &found), MD_ENVIRONMENT);
  assert_string_equal(context->message, "it did not start");
  md_tune_close(context);
  put(context, NULL);
}

static struct CMUnitTest tests[] = {
    cmocka_unit_test(no_trials_unasked), cmocka_unit_test(choices_are_remembered),
    cmocka_unit_test(stale_choices_are_left_alone), cmocka_unit_test(damaged_files_are_refused),
    cmocka_unit_test(ranks_agree)};

int main(int argc, char **argv) {
  md_context *context = md_test_begin(&argc, &argv);
  if (context->rank == 0) snprintf(path, sizeof path, "/tmp/minidirac-tune-%d.json", (int)getpid());
  md_broadcast(context, path, sizeof path);
  for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) tests[i].initial_state = context;
  return md_test_end(context, cmocka_run_group_tests(tests, NULL, NULL));
}
