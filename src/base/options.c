#include "base/options.h"

#include <ini.h>
#include <limits.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
  md_context *context;
  const md_command_text *text;
  md_option *options;
  int count;
  bool *from_deck; /* per option: already set by this deck */
  bool *on_line;   /* per option: set by the command line, which stands above the deck */
  const char *deck;
  md_status status;
} reader;

static md_option *find(md_option *options, int count, const char *name, size_t length) {
  for (int i = 0; i < count; i++)
    if (strlen(options[i].name) == length && strncmp(options[i].name, name, length) == 0)
      return &options[i];
  return NULL;
}

/* The option of argv word `-o`; NULL when the word is no such thing. */
static md_option *find_short(md_option *options, int count, const char *word) {
  for (int i = 0; i < count && strlen(word) == 2; i++)
    if (options[i].short_name && word[0] == '-' && word[1] == options[i].short_name)
      return &options[i];
  return NULL;
}

static bool is_choice(const char *choices, const char *value) {
  const size_t length = strlen(value);
  for (const char *word = choices; word; word = strchr(word, '|') ? strchr(word, '|') + 1 : NULL)
    if (length == strcspn(word, "|") && strncmp(word, value, length) == 0) return true;
  return false;
}

static md_status read_dims(md_context *context, const md_option *option, const char *value) {
  int dims[4], used = 0;
  if (sscanf(value, "%dx%dx%dx%d%n", &dims[0], &dims[1], &dims[2], &dims[3], &used) != 4 ||
      value[used] != '\0')
    return md_fail(context, MD_INPUT, "--%s must be four integers AxBxCxD, got '%s'", option->name,
                   value);
  for (int d = 0; d < 4; d++)
    if (dims[d] < option->low || dims[d] > option->high)
      return md_fail(context, MD_INPUT, "--%s takes %.0f to %.0f in each direction, got %d in '%s'",
                     option->name, option->low, option->high, dims[d], value);
  memcpy(option->target, dims, sizeof dims);
  return MD_OK;
}

static md_status read_number(md_context *context, const md_option *option, const char *value) {
  char *end = NULL;
  const bool integer = option->type == MD_OPTION_INTEGER;
  const long long whole = integer ? strtoll(value, &end, 10) : 0;
  const double number = integer ? (double)whole : strtod(value, &end);
  if (end == value || *end != '\0' || !isfinite(number))
    return md_fail(context, MD_INPUT, "--%s must be %s, got '%s'", option->name,
                   integer ? "an integer" : "a finite number", value);
  if ((option->low != 0.0 || option->high != 0.0) &&
      !(number >= option->low && number <= option->high))
    return md_fail(context, MD_INPUT, "--%s must lie in %g to %g, got %s", option->name,
                   option->low, option->high, value);
  if (integer)
    *(long long *)option->target = whole;
  else
    *(double *)option->target = number;
  return MD_OK;
}

/* value NULL: a flag of the command line. */
static md_status store(md_context *context, md_option *option, const char *value) {
  if (value && *value == '\0')
    return md_fail(context, MD_INPUT, "--%s needs a value that is not empty", option->name);
  option->seen = true;
  switch (option->type) {
  case MD_OPTION_FLAG:
    if (value && strcmp(value, "true") != 0 && strcmp(value, "false") != 0)
      return md_fail(context, MD_INPUT, "%s must be true or false, got '%s'", option->name, value);
    *(bool *)option->target = !value || strcmp(value, "true") == 0;
    return MD_OK;
  case MD_OPTION_INTEGER:
  case MD_OPTION_REAL:
    return read_number(context, option, value);
  case MD_OPTION_DIMS:
    return read_dims(context, option, value);
  case MD_OPTION_CHOICE:
    if (!is_choice(option->choices, value))
      return md_fail(context, MD_INPUT, "--%s must be one of %s, got '%s'", option->name,
                     option->choices, value);
    *(const char **)option->target = value;
    return MD_OK;
  case MD_OPTION_TEXT:
  case MD_OPTION_POSITIONAL:
    *(const char **)option->target = value;
    return MD_OK;
  }
  return MD_OK;
}

static md_status unknown(const reader *r, const char *where, const char *name) {
  return md_fail(r->context, MD_INPUT, "%s does not know %s'%s'; see minidirac %s --help",
                 r->text->command, where, name, r->text->command);
}

static md_status read_flag(reader *r, int argc, char **argv, int *at) {
  md_option *option = find_short(r->options, r->count, argv[*at]);
  const char *name = option ? option->name : argv[*at] + 2;
  const size_t length = strcspn(name, "=");
  if (!option) option = find(r->options, r->count, name, length);
  if (!option || option->type == MD_OPTION_POSITIONAL) return unknown(r, "the option ", argv[*at]);
  if (option->seen)
    return md_fail(r->context, MD_INPUT, "--%s is given twice; give it once", option->name);
  const char *value = name[length] == '=' ? name + length + 1 : NULL;
  if (option->type == MD_OPTION_FLAG && value)
    return md_fail(r->context, MD_INPUT, "--%s takes no value, got '%s'", option->name, value);
  if (option->type != MD_OPTION_FLAG && !value) {
    if (*at + 1 >= argc)
      return md_fail(r->context, MD_INPUT, "--%s needs a value (%s)", option->name,
                     option->argument);
    value = argv[++*at];
  }
  return store(r->context, option, value);
}

static md_status read_line(reader *r, int argc, char **argv) {
  int position = 0;
  for (int at = 1; at < argc; at++) {
    if (strncmp(argv[at], "--", 2) == 0 || find_short(r->options, r->count, argv[at])) {
      MD_TRY(read_flag(r, argc, argv, &at));
      continue;
    }
    while (position < r->count && r->options[position].type != MD_OPTION_POSITIONAL) position++;
    if (position == r->count) return unknown(r, "the argument ", argv[at]);
    MD_TRY(store(r->context, &r->options[position++], argv[at]));
  }
  return MD_OK;
}

static int deck_line(void *user, const char *section, const char *name, const char *value) {
  reader *r = user;
  md_option *option = find(r->options, r->count, name, strlen(name));
  if (*section && strcmp(section, r->text->command) != 0)
    r->status =
        md_fail(r->context, MD_INPUT, "deck %s: section [%s] is not the command [%s] that reads it",
                r->deck, section, r->text->command);
  else if (!option || strcmp(name, "config") == 0 || strcmp(name, "help") == 0)
    r->status = unknown(r, "the deck key ", name);
  else if (r->from_deck[option - r->options])
    r->status = md_fail(r->context, MD_INPUT, "deck %s: key '%s' is given twice", r->deck, name);
  else if (r->from_deck[option - r->options] = true, !r->on_line[option - r->options]) {
    char *kept = strdup(value); /* targets point to it for the rest of the run */
    r->status = kept ? store(r->context, option, kept)
                     : md_fail_memory(r->context, strlen(value), "deck value");
    if (option->type != MD_OPTION_TEXT && option->type != MD_OPTION_CHOICE &&
        option->type != MD_OPTION_POSITIONAL)
      free(kept);
  }
  return r->status == MD_OK;
}

enum { DECK_BYTES = 1 << 16 };

static md_status load_deck(md_context *context, const char *path, char *deck) {
  if (context->rank != 0) return MD_OK;
  FILE *file = fopen(path, "r");
  if (!file) return md_fail(context, MD_INPUT, "deck %s cannot be opened: %m", path);
  const size_t bytes = fread(deck, 1, DECK_BYTES, file);
  const bool bad = ferror(file) != 0;
  fclose(file);
  if (bad) return md_fail(context, MD_INPUT, "deck %s cannot be read", path);
  if (bytes == DECK_BYTES)
    return md_fail(context, MD_INPUT, "deck %s is longer than %d bytes", path, DECK_BYTES - 1);
  if (memchr(deck, '\0', bytes))
    return md_fail(context, MD_INPUT, "deck %s is not a text file", path);
  deck[bytes] = '\0';
  return MD_OK;
}

static md_status read_deck(reader *r, const char *path) {
  char *deck = calloc(1, DECK_BYTES);
  md_status status =
      deck ? load_deck(r->context, path, deck) : md_fail_memory(r->context, DECK_BYTES, "deck");
  status = md_agree(r->context, status);
  if (status == MD_OK) {
    md_broadcast(r->context, deck, DECK_BYTES);
    const int line = ini_parse_string(deck, deck_line, r);
    status = r->status;
    if (status == MD_OK && line != 0)
      status = md_fail(r->context, MD_INPUT, "deck %s: line %d is not 'name = value'", path, line);
  }
  free(deck);
  return status;
}

static void print_help(const md_command_text *text, const md_option *options, int count) {
  printf("usage: minidirac %s", text->command);
  for (int i = 0; i < count; i++)
    if (options[i].type == MD_OPTION_POSITIONAL) printf(" %s", options[i].argument);
  printf(" [options]\n\n%s\n\n", text->summary);
  for (int i = 0; i < count; i++) {
    const md_option *o = &options[i];
    const char *argument = o->argument ? o->argument : o->choices ? o->choices : "";
    char left[128];
    const bool flag = o->type != MD_OPTION_POSITIONAL;
    const char brief[] = {'-', o->short_name, ',', ' ', '\0'};
    snprintf(left, sizeof left, "%s%s%s %s", o->short_name ? brief : "", flag ? "--" : "",
             flag ? o->name : "", argument);
    if (strlen(left) <= 30)
      printf("  %-30s %s\n", left, o->help);
    else
      printf("  %s\n  %-30s %s\n", left, "", o->help);
  }
  if (text->details) printf("\n%s\n", text->details);
}

/* "--output"; a positional: its word in the usage. */
static const char *shown_name(const md_option *option, char *copy, size_t bytes) {
  const bool flag = option->type != MD_OPTION_POSITIONAL;
  snprintf(copy, bytes, "%s%s", flag ? "--" : "", flag ? option->name : option->argument);
  return copy;
}

static md_status check_files(reader *r) {
  enum { FILES = 16, NAME = 32 };
  md_named_file files[FILES];
  char names[FILES][NAME];
  int count = 0;
  bool force = false;
  for (int i = 0; i < r->count; i++) {
    const md_option *o = &r->options[i];
    if (strcmp(o->name, "force") == 0) force = *(const bool *)o->target;
    if (o->file != MD_FILE_NONE && o->seen && count < FILES) {
      files[count] = (md_named_file){shown_name(o, names[count], NAME),
                                     *(const char *const *)o->target, o->file};
      count++;
    }
  }
  return md_outputs_check(r->context, files, count, force);
}

static md_status finish(reader *r, md_common_options *common) {
  for (int i = 0; i < r->count; i++)
    if (r->options[i].type == MD_OPTION_POSITIONAL && !r->options[i].seen)
      return md_fail(r->context, MD_INPUT, "%s needs %s; see minidirac %s --help", r->text->command,
                     r->options[i].argument, r->text->command);
  if (common->threads > 0) omp_set_num_threads((int)common->threads);
  r->context->threads = omp_get_max_threads();
  r->context->quiet = common->quiet || (common->json && strcmp(common->json, "-") == 0);
  return check_files(r);
}

md_status md_options_read(md_context *context, const md_command_text *text, md_option *options,
                          int count, md_common_options *common, int argc, char **argv) {
  bool *marks = calloc(2 * (size_t)count, sizeof *marks);
  if (!marks) return md_fail_memory(context, 2 * (size_t)count, "options");
  reader r = {context, text, options, count, marks, marks + count, NULL, MD_OK};
  md_status status = read_line(&r, argc, argv);
  for (int i = 0; i < count; i++) r.on_line[i] = options[i].seen;
  if (status == MD_OK && common->help) {
    if (context->rank == 0) print_help(text, options, count);
  } else {
    if (status == MD_OK && common->config) {
      r.deck = common->config;
      status = read_deck(&r, common->config);
    }
    if (status == MD_OK) status = finish(&r, common);
  }
  free(marks);
  return status;
}

bool md_option_seen(const md_option *options, int count, const char *name) {
  for (int i = 0; i < count; i++)
    if (strcmp(options[i].name, name) == 0) return options[i].seen;
  return false;
}

int md_words(const char *text, char *copy, size_t copy_bytes, const char **words, int most) {
  if (strlen(text) + 1 > copy_bytes) return -1;
  strcpy(copy, text);
  int count = 0;
  for (char *word = copy; word; count++) {
    char *comma = strchr(word, ',');
    if (comma) *comma = '\0';
    if (*word == '\0' || count == most) return -1;
    words[count] = word;
    word = comma ? comma + 1 : NULL;
  }
  return count;
}
