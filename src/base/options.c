#include "base/number.h"
#include "base/options_read.h"
#include "base/suggest.h"
#include "base/threads.h"

#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LABEL_BYTES = 128, MOST_THREADS = 4096 };

md_option *md_option_find(const md_options_reader *r, const char *name, size_t length) {
  for (int i = 0; i < r->count; i++)
    if (strlen(r->options[i].name) == length && strncmp(r->options[i].name, name, length) == 0)
      return &r->options[i];
  return NULL;
}

void md_option_suggest(const md_options_reader *r, const char *name, size_t length, char *text,
                       size_t text_bytes) {
  char word[MD_SUGGEST_BYTES];
  snprintf(word, sizeof word, "%.*s", (int)length, name);
  md_suggestion nearest = md_suggest(word);
  for (int i = 0; i < r->count; i++)
    md_suggest_name(&nearest, r->options[i].name, strlen(r->options[i].name));
  snprintf(text, text_bytes, "%s", nearest.text);
}

/* The option of argv word `-o`; NULL when the word is no such thing. */
static md_option *find_short(const md_options_reader *r, const char *word) {
  for (int i = 0; i < r->count && strlen(word) == 2; i++)
    if (r->options[i].short_name && word[0] == '-' && word[1] == r->options[i].short_name)
      return &r->options[i];
  return NULL;
}

static md_status unknown(const md_options_reader *r, const char *kind, const char *word) {
  const size_t dashes = strspn(word, "-");
  char nearest[LABEL_BYTES];
  md_option_suggest(r, word + dashes, strcspn(word + dashes, "="), nearest, sizeof nearest);
  return md_fail(r->context, MD_INPUT,
                 "%s does not know the %s '%.200s'; see minidirac %s --help%s", r->text->command,
                 kind, word, r->text->command, dashes ? nearest : "");
}

static md_status read_flag(md_options_reader *r, int argc, char **argv, int *at) {
  md_option *option = find_short(r, argv[*at]);
  const char *name = option ? option->name : argv[*at] + 2;
  const size_t length = strcspn(name, "=");
  char label[LABEL_BYTES];
  if (!option) option = md_option_find(r, name, length);
  if (!option) return unknown(r, "option", argv[*at]);
  snprintf(label, sizeof label, "--%s", option->name);
  if (option->seen) return md_fail(r->context, MD_INPUT, "%s is given twice; give it once", label);
  const char *value = name[length] == '=' ? name + length + 1 : NULL;
  if (option->type == MD_OPTION_FLAG && value)
    return md_fail(r->context, MD_INPUT, "%s takes no value, got '%.200s'", label, value);
  if (option->type != MD_OPTION_FLAG && !value) {
    if (*at + 1 >= argc)
      return md_fail(r->context, MD_INPUT, "%s needs a value (%s)", label,
                     option->argument ? option->argument : option->choices);
    value = argv[++*at];
  }
  option->seen = true;
  return md_option_store(r->context, option, label, value);
}

static md_status read_words(md_options_reader *r, int argc, char **argv) {
  for (int at = 1; at < argc; at++) {
    if (strncmp(argv[at], "--", 2) == 0 || find_short(r, argv[at])) {
      MD_TRY(read_flag(r, argc, argv, &at));
      continue;
    }
    if (argv[at][0] == '-' && argv[at][1]) return unknown(r, "option", argv[at]);
    int k = 0;
    while (k < r->count && (!r->options[k].positional || r->options[k].seen)) k++;
    if (k == r->count) return unknown(r, "argument", argv[at]);
    r->options[k].seen = true;
    MD_TRY(md_option_store(r->context, &r->options[k], r->options[k].argument, argv[at]));
  }
  return MD_OK;
}

static void print_help(const md_command_text *text, const md_option *options, int count) {
  printf("usage: minidirac %s", text->command);
  for (int i = 0; i < count; i++)
    if (options[i].positional) printf(" %s", options[i].argument);
  printf(" [options]\n\n%s\n\n", text->summary);
  for (int i = 0; i < count; i++) {
    const md_option *o = &options[i];
    const char *argument = o->argument ? o->argument : o->choices ? o->choices : "";
    char left[512];
    const char brief[] = {'-', o->short_name, ',', ' ', '\0'};
    snprintf(left, sizeof left, "%s--%s %s", o->short_name ? brief : "", o->name, argument);
    if (strlen(left) <= 30)
      printf("  %-30s %s\n", left, o->help);
    else
      printf("  %s\n  %-30s %s\n", left, "", o->help);
    if (o->type == MD_OPTION_CHOICES) printf("  %-30s of %s\n", "", o->choices);
  }
  for (int i = 0; i < count; i++)
    if (options[i].positional)
      printf("\n%s may stand without --%s.\n", options[i].argument, options[i].name);
  if (text->details) printf("\n%s\n", text->details);
}

/* All files that the options name, for common->files. */
static md_status check_files(const md_options_reader *r, md_common_options *common) {
  common->file_count = 0;
  for (int i = 0; i < r->count; i++) {
    const md_option *o = &r->options[i];
    if (strcmp(o->name, "force") == 0) common->force = *(const bool *)o->target;
    if (o->file == MD_FILE_NONE || !o->seen) continue;
    if (common->file_count == MD_OPTION_FILES)
      return md_fail(r->context, MD_INPUT, "%s takes at most %d files", r->text->command,
                     MD_OPTION_FILES);
    md_named_file *file = &common->files[common->file_count++];
    file->path = *(const char *const *)o->target;
    file->use = o->file;
    snprintf(file->option, sizeof file->option, "%s%s", o->positional ? "" : "--",
             o->positional ? o->argument : o->name);
  }
  return md_outputs_check(r->context, common->files, (size_t)common->file_count, common->force);
}

md_status md_options_check_made(md_context *context, const md_common_options *common,
                                md_made_files *made, md_status status) {
  for (int i = 0; i < common->file_count && status == MD_OK; i++)
    status = md_made_files_add(context, made, common->files[i].option, common->files[i].path,
                               common->files[i].use);
  status = md_agree(context, status);
  if (status == MD_OK) status = md_outputs_check(context, made->file, made->count, common->force);
  md_made_files_free(made);
  return status;
}

/* OpenMP takes the variable only where it can, and says nothing of the rest. Lists (one number for
 * each level of nesting) begin with the number that counts here. */
static md_status check_threads(md_context *context) {
  const char *value = getenv("OMP_NUM_THREADS");
  char word[32];
  long long threads;
  if (!value || !*value) return MD_OK;
  const char *first = value + strspn(value, " ");
  snprintf(word, sizeof word, "%.*s", (int)strcspn(first, ", "), first);
  if (md_number_integer(word, 1, MOST_THREADS, &threads) == MD_NUMBER_OK) return MD_OK;
  return md_fail(
      context, MD_INPUT,
      "OMP_NUM_THREADS must be an integer from 1 to %d, got '%.60s'; set or unset it, or "
      "give --threads N",
      MOST_THREADS, value);
}

/* What is left on this rank when the words are read. Local. */
static md_status finish(md_options_reader *r, md_common_options *common) {
  const char *command = r->text->command;
  for (int i = 0; i < r->count; i++) {
    md_option *o = &r->options[i];
    char label[LABEL_BYTES];
    snprintf(label, sizeof label, "--%s", o->name);
    if (o->required && !o->seen)
      return md_fail(r->context, MD_INPUT, "%s needs --%s %s%s; see minidirac %s --help", command,
                     o->name, o->argument, o->positional ? ", with or without the flag" : "",
                     command);
    if (o->initial && !o->seen) MD_TRY(md_option_store(r->context, o, label, o->initial));
  }
  if (common->threads == 0) MD_TRY(check_threads(r->context));
  if (common->threads > 0) omp_set_num_threads((int)common->threads);
  r->context->threads = omp_get_max_threads();
  r->context->patience_s = common->patience_s;
  r->context->quiet = common->quiet || (common->json && strcmp(common->json, "-") == 0);
  return MD_OK;
}

/* Fowler-Noll-Vo hash of a word's bytes, and how it begins; of a word behind the last: no hash. */
typedef struct word {
  uint64_t hash;
  char start[200];
} word;

static word word_of(const char *text) {
  word w = {.hash = text ? 0xcbf29ce484222325u : 0};
  for (const char *byte = text; byte && *byte; byte++)
    w.hash = (w.hash ^ (unsigned char)*byte) * 0x100000001b3u;
  snprintf(w.start, sizeof w.start, "%s", text ? text : "(no more)");
  return w;
}

md_status md_arguments_check(md_context *context, int argc, char **argv) {
  md_status status = MD_OK;
  int words = argc;
  if (context->ranks == 1) return MD_OK;
  md_broadcast(context, &words, sizeof words);
  for (int i = 1; i <= words; i++) {
    const word mine = word_of(i < argc ? argv[i] : NULL);
    word first = mine;
    md_broadcast(context, &first, sizeof first);
    if (status == MD_OK && first.hash != mine.hash)
      status = md_fail(context, MD_INPUT,
                       "all ranks must be started with the same arguments, but rank %d has '%s' "
                       "where rank 0 has '%s'",
                       context->rank, mine.start, first.start);
  }
  return md_agree(context, status);
}

md_status md_options_read(md_context *context, const md_command_text *text, md_option *options,
                          int count, md_common_options *common, int argc, char **argv) {
  bool *marks = calloc(2 * (size_t)count, sizeof *marks);
  md_options_reader r = {context, text, options, count, marks, marks ? marks + count : NULL};
  md_status status =
      marks ? read_words(&r, argc, argv) : md_fail_memory(context, 2 * (size_t)count, "options");
  for (int i = 0; marks && i < count; i++) r.on_line[i] = options[i].seen;
  status = md_agree(context, status);
  if (status == MD_OK && common->help) {
    if (context->rank == 0) print_help(text, options, count);
  } else {
    if (status == MD_OK && common->config) status = md_options_read_deck(&r, common->config);
    if (status == MD_OK) status = finish(&r, common);
    status = md_agree(context, status);
    if (status == MD_OK) status = md_threads_check(context, context->threads);
    if (status == MD_OK) status = check_files(&r, common);
  }
  free(marks);
  return status;
}

bool md_option_seen(const md_option *options, int count, const char *name) {
  for (int i = 0; i < count; i++)
    if (strcmp(options[i].name, name) == 0) return options[i].seen;
  return false;
}

md_status md_options_allow(md_context *context, const md_option *options, int count,
                           const char *allowed, const char *what) {
  for (int i = 0; i < count; i++)
    if (options[i].seen &&
        md_choice_of("config|json|threads|patience|quiet|help", options[i].name) < 0 &&
        md_choice_of(allowed, options[i].name) < 0)
      return md_fail(context, MD_INPUT, "--%s has no effect with %s; leave it out", options[i].name,
                     what);
  return MD_OK;
}
