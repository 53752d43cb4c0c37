#include "base/tune.h"
#include "base/file.h"
#include "md_version.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FORMAT "minidirac tuning 1"
enum { MOST_BYTES = 1 << 24 };

struct md_tune {
  char *path;
  cJSON *table;  /* as in the file: {"format": FORMAT, "choices": [...]} */
  cJSON *chosen; /* in this run, for its report */
  bool writes;   /* rank 0 of the run, and not of a group of ranks */
};

/* The texts of a choice; beside them stands the number `time_s`. */
enum { BUILD, GPU, WORK, CHOICE, TEXTS };
static const char *const keys[TEXTS] = {"build", "gpu", "work", "choice"};
#define BUILD_WORDS MD_VERSION " " MD_COMMIT

static const char *text_of(const cJSON *choice, int key) {
  return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(choice, keys[key]));
}

static cJSON *choices_of(const cJSON *table) {
  return cJSON_GetObjectItemCaseSensitive(table, "choices");
}

/* NULL, or what is wrong. */
static const char *damage_of(const cJSON *table) {
  const char *format = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(table, "format"));
  const cJSON *choice;
  if (!table) return "is not whole JSON";
  if (!format || strcmp(format, FORMAT) != 0) return "has not the format '" FORMAT "'";
  if (!cJSON_IsArray(choices_of(table))) return "has no list of choices";
  cJSON_ArrayForEach(choice, choices_of(table)) {
    for (int k = 0; k < TEXTS; k++)
      if (!text_of(choice, k)) return "has a choice without one of its texts";
    if (!cJSON_IsNumber(cJSON_GetObjectItemCaseSensitive(choice, "time_s")))
      return "has a choice without its time";
  }
  return NULL;
}

/* The bytes of a file with a zero behind them; NULL for none of that name or an empty one. */
static md_status read_whole(md_context *context, const char *path, char **text, int64_t *bytes) {
  if (access(path, F_OK) != 0 && errno == ENOENT) return MD_OK;
  MD_TRY(md_file_length(context, path, bytes));
  if (*bytes > MOST_BYTES)
    return md_fail(context, MD_INPUT, "--tune takes files of at most %d bytes, %s has %lld",
                   MOST_BYTES, path, (long long)*bytes);
  FILE *file = fopen(path, "rb");
  if (!file) return md_fail_open(context, "--tune", path, errno);
  *text = *bytes > 0 ? calloc(1, (size_t)*bytes + 1) : NULL;
  const size_t got = *text ? fread(*text, 1, (size_t)*bytes, file) : 0;
  fclose(file);
  if (*bytes > 0 && !*text) return md_fail_memory(context, (size_t)*bytes, "choices");
  if (got == (size_t)*bytes) return MD_OK;
  return md_fail(context, MD_ENVIRONMENT, "--tune %s cannot be read whole", path);
}

static md_status begin(md_context *context, const char *path, const char *text) {
  struct md_tune *tune = context->tune = calloc(1, sizeof *tune);
  if (!tune) return md_fail_memory(context, sizeof *tune, "choices");
  tune->path = strdup(path);
  tune->writes = context->rank == 0;
  tune->chosen = cJSON_CreateArray();
  tune->table = text ? cJSON_ParseWithOpts(text, NULL, true) : cJSON_CreateObject();
  if (!text) {
    cJSON_AddStringToObject(tune->table, "format", FORMAT);
    cJSON_AddArrayToObject(tune->table, "choices");
  }
  const char *damage = damage_of(tune->table);
  if (!tune->path || !tune->chosen) return md_fail_memory(context, strlen(path), "choices");
  if (!damage) return MD_OK;
  return md_fail(context, MD_INPUT,
                 "--tune must name a file that --tune wrote, but %s %s; remove it or give another "
                 "name",
                 path, damage);
}

md_status md_tune_open(md_context *context, const char *path) {
  char *text = NULL;
  int64_t bytes = 0;
  md_tune_close(context);
  if (!path) return MD_OK;
  MD_TRY(md_agree(context, context->rank == 0 ? read_whole(context, path, &text, &bytes) : MD_OK));
  md_broadcast(context, &bytes, sizeof bytes);
  if (context->rank > 0 && bytes > 0) text = calloc(1, (size_t)bytes + 1);
  md_status status = bytes > 0 && !text ? md_fail_memory(context, (size_t)bytes, "choices") : MD_OK;
  status = md_agree(context, status);
  if (status == MD_OK) {
    md_broadcast(context, text, (size_t)bytes);
    status = md_agree(context, begin(context, path, text));
  }
  free(text);
  if (status != MD_OK) md_tune_close(context);
  return status;
}

void md_tune_close(md_context *context) {
  struct md_tune *tune = context->tune;
  if (!tune) return;
  cJSON_Delete(tune->table);
  cJSON_Delete(tune->chosen);
  MD_FREE(tune->path, tune);
  context->tune = NULL;
}

/* The one of the list for that work on that GPU, of whatever build; NULL: none. */
static cJSON *find(const cJSON *list, const char *gpu, const char *work) {
  cJSON *choice = list->child;
  while (choice &&
         (strcmp(text_of(choice, WORK), work) != 0 || strcmp(text_of(choice, GPU), gpu) != 0))
    choice = choice->next;
  return choice;
}

/* Which of `count` candidates a choice of this build names; -1: none. */
static int candidate_of(const cJSON *choice, const md_tune_case *of, int count) {
  char name[MD_TUNE_NAME_BYTES];
  if (!choice || strcmp(text_of(choice, BUILD), BUILD_WORDS) != 0) return -1;
  for (int k = 0; k < count; k++) {
    of->name(of->user, k, name);
    if (strcmp(name, text_of(choice, CHOICE)) == 0) return k;
  }
  return -1;
}

static md_status write_table(md_context *context, const struct md_tune *tune) {
  char *text = cJSON_Print(tune->table);
  const md_status status = text ? md_write_file(context, tune->path, text, strlen(text))
                                : md_fail_memory(context, 1, "choices");
  cJSON_free(text);
  return status;
}

/* The fastest of them, which joins the table. */
static md_status try_all(md_context *context, const md_tune_case *of, int count, const char *gpu,
                         int *candidate) {
  struct md_tune *tune = context->tune;
  cJSON *choices = choices_of(tune->table);
  double best_s = INFINITY;
  char name[MD_TUNE_NAME_BYTES];
  for (int k = 0; k < count; k++) {
    double time_s = NAN;
    MD_TRY(of->time(context, of->user, k, &time_s));
    if (time_s < best_s) *candidate = k, best_s = time_s;
  }
  of->name(of->user, *candidate, name);
  const char *const texts[TEXTS] = {BUILD_WORDS, gpu, of->work, name};
  cJSON_Delete(cJSON_DetachItemViaPointer(choices, find(choices, gpu, of->work)));
  cJSON *choice = cJSON_CreateObject();
  for (int k = 0; k < TEXTS; k++) cJSON_AddStringToObject(choice, keys[k], texts[k]);
  cJSON_AddNumberToObject(choice, "time_s", best_s);
  cJSON_AddItemToArray(choices, choice);
  return tune->writes ? write_table(context, tune) : MD_OK;
}

/* On rank 0. */
static md_status choose(md_context *context, const md_tune_case *of, int count, int *candidate) {
  struct md_tune *tune = context->tune;
  char gpu[MD_DEVICE_WORDS_BYTES];
  md_device_words(&context->gpu, gpu);
  const int known = candidate_of(find(choices_of(tune->table), gpu, of->work), of, count);
  if (known >= 0)
    *candidate = known;
  else
    MD_TRY(try_all(context, of, count, gpu, candidate));
  if (find(tune->chosen, gpu, of->work)) return MD_OK;
  cJSON *told = cJSON_Duplicate(find(choices_of(tune->table), gpu, of->work), true);
  cJSON_AddStringToObject(told, "from", known >= 0 ? "file" : "trial");
  cJSON_AddItemToArray(tune->chosen, told);
  return MD_OK;
}

md_status md_tune_choose(md_context *context, const md_tune_case *of, int *candidate) {
  double count = of->count;
  *candidate = 0;
  if (!context->tune) return MD_OK;
  md_minimum(context, &count, 1);
  if (count < 2) return MD_OK;
  MD_TRY(
      md_agree(context, context->rank == 0 ? choose(context, of, (int)count, candidate) : MD_OK));
  md_broadcast(context, candidate, sizeof *candidate);
  return MD_OK;
}

void md_tune_report(const md_context *context, cJSON *root) {
  if (!context->tune) return;
  if (!context->tune->chosen->child)
    md_warn(context, "--tune has no effect without hops on a GPU that have launch shapes");
  cJSON_AddItemToObject(root, "tuned", cJSON_Duplicate(context->tune->chosen, true));
}
