#include "base/options.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/progress.h"
#include "base/text.h"
#include "base/tune.h"
#include "base/waiting.h"

#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <ini.h>
#include <limits.h>
#include <math.h>
#include <omp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What reading one command line shares. */
typedef struct reader {
  md_context *context;
  const md_command_text *text;
  md_option *options;
  int count;
  const md_common_options *common;
  bool *from_deck; /* per option: already set by this deck */
  bool *on_line;   /* per option: set by the command line, which stands above the deck */
} reader;

/* The option whose name is the first `length` bytes; NULL: there is none. */
static md_option *find_option(const reader *r, const char *name, size_t length) {
  for (int i = 0; i < r->count; i++)
    if (strlen(r->options[i].name) == length && strncmp(r->options[i].name, name, length) == 0)
      return &r->options[i];
  return NULL;
}

/* Options that a deck may not hold. */
static bool is_of_line(const char *name) {
  return md_choice_of("config|help|print-config", name) >= 0;
}

/* The same for a name that no option has, or none of a deck: one to suggest. */
static md_suggestion suggest_option(const reader *r, bool in_deck, const char *name) {
  md_suggestion nearest = md_suggest(name);
  for (int i = 0; i < r->count; i++)
    if (!in_deck || !is_of_line(r->options[i].name))
      md_suggest_name(&nearest, r->options[i].name, strlen(r->options[i].name));
  return nearest;
}

/* The values of options: texts as numbers, lists and choices. */

static bool any_value(const md_option *option) {
  return option->low == 0.0 && option->high == 0.0;
}

/* [low, high] as integers: they are doubles in the table. */
static long long lowest(const md_option *option) {
  return any_value(option) || option->low <= -0x1p63 ? LLONG_MIN : (long long)option->low;
}
static long long highest(const md_option *option) {
  return any_value(option) || option->high >= 0x1p63 ? LLONG_MAX : (long long)option->high;
}

/* One number of the option's type into *integer or *real. */
static md_status read_number(md_context *context, const md_option *option, const char *label,
                             const char *word, long long *integer, double *real) {
  static const char *const kinds[] = {[MD_OPTION_INTEGER] = "an integer",
                                      [MD_OPTION_REAL] = "a finite decimal number",
                                      [MD_OPTION_INTEGERS] = "a list of integers A,B,...",
                                      [MD_OPTION_REALS] = "a list of finite numbers A,B,..."};
  const double least = any_value(option) ? -HUGE_VAL : option->low;
  const double most = any_value(option) ? HUGE_VAL : option->high;
  const md_number found = integer
                              ? md_number_integer(word, lowest(option), highest(option), integer)
                              : md_number_real(word, least, most, real);
  const int digits = integer ? DBL_DIG + 1 : 6;
  if (found == MD_NUMBER_OK) return MD_OK;
  if (found == MD_NUMBER_OUTSIDE)
    return md_fail(context, MD_INPUT, "%s must lie in %.*g to %.*g, got %.200s", label, digits,
                   option->low, digits, option->high, word);
  return md_fail(context, MD_INPUT, "%s must be %s, got '%.200s'", label, kinds[option->type],
                 word);
}

static md_status read_dims(md_context *context, const md_option *option, const char *label,
                           const char *value) {
  long long dims[4];
  const md_number found = md_number_integers(value, 'x', 4, lowest(option), highest(option), dims);
  if (found == MD_NUMBER_MALFORMED)
    return md_fail(context, MD_INPUT, "%s must be four integers AxBxCxD, got '%.200s'", label,
                   value);
  if (found == MD_NUMBER_OUTSIDE)
    return md_fail(context, MD_INPUT, "%s takes %.0f to %.0f in each direction, got '%.200s'",
                   label, option->low, option->high, value);
  for (int d = 0; d < 4; d++) ((int *)option->target)[d] = (int)dims[d];
  return MD_OK;
}

int md_choice_of(const char *choices, const char *word) {
  const size_t length = strlen(word);
  for (int at = 0; *choices; at++) {
    const size_t here = strcspn(choices, "|");
    if (here == length && strncmp(choices, word, length) == 0) return at;
    choices += here + (choices[here] == '|');
  }
  return -1;
}

md_status md_fail_choice(md_context *context, const char *label, const char *choices,
                         const char *word) {
  md_suggestion nearest = md_suggest(word);
  md_suggest_choices(&nearest, choices);
  return md_fail(context, MD_INPUT, "%s must be one of %s, got '%.200s'%s", label, choices, word,
                 nearest.text);
}

enum { LIST_BYTES = 4096 };

/* The words of the value one by one, by the option's type. */
static md_status read_list(md_context *context, md_option *option, const char *label,
                           const char *value) {
  char copy[LIST_BYTES];
  const char *words[MD_LIST_MOST];
  md_integers *integers = option->target;
  md_reals *reals = option->target;
  md_choices *choices = option->target;
  const int count = md_words(value, copy, sizeof copy, words, MD_LIST_MOST);
  if (count < 0)
    return md_fail(context, MD_INPUT,
                   "%s must be a list of 1 to %d words A,B,..., none of them empty, got '%.200s'",
                   label, MD_LIST_MOST, value);
  for (int i = 0; i < count; i++) {
    if (option->type == MD_OPTION_INTEGERS)
      MD_TRY(read_number(context, option, label, words[i], &integers->value[i], NULL));
    else if (option->type == MD_OPTION_REALS)
      MD_TRY(read_number(context, option, label, words[i], NULL, &reals->value[i]));
    else if ((choices->value[i] = md_choice_of(option->choices, words[i])) < 0)
      return md_fail_choice(context, label, option->choices, words[i]);
  }
  *(option->type == MD_OPTION_INTEGERS ? &integers->count
    : option->type == MD_OPTION_REALS  ? &reals->count
                                       : &choices->count) = count;
  return MD_OK;
}

static md_status read_choices(md_context *context, md_option *option, const char *label,
                              const char *value) {
  md_choices *choices = option->target;
  *choices = (md_choices){.all = strcmp(value, "all") == 0};
  if (!choices->all) return read_list(context, option, label, value);
  choices->count = 1;
  for (const char *at = option->choices; *at; at++) choices->count += *at == '|';
  for (int i = 0; i < choices->count; i++) choices->value[i] = i;
  return MD_OK;
}

/* Checks a value and puts it into the option's target; NULL: a flag of the command line. `label`
 * begins the messages. MD_INPUT. */
static md_status store_value(md_context *context, md_option *option, const char *label,
                             const char *value) {
  if (value && *value == '\0')
    return md_fail(context, MD_INPUT, "%s needs a value that is not empty", label);
  switch (option->type) {
  case MD_OPTION_FLAG:
    if (value && strcmp(value, "true") != 0 && strcmp(value, "false") != 0)
      return md_fail(context, MD_INPUT, "%s must be true or false, got '%.200s'", label, value);
    *(bool *)option->target = !value || strcmp(value, "true") == 0;
    return MD_OK;
  case MD_OPTION_INTEGER:
    return read_number(context, option, label, value, option->target, NULL);
  case MD_OPTION_REAL:
    return read_number(context, option, label, value, NULL, option->target);
  case MD_OPTION_DIMS:
    return read_dims(context, option, label, value);
  case MD_OPTION_INTEGERS:
  case MD_OPTION_REALS:
    return read_list(context, option, label, value);
  case MD_OPTION_CHOICES:
    return read_choices(context, option, label, value);
  case MD_OPTION_PARSED:
    return option->parse(context, label, value, option->target);
  case MD_OPTION_CHOICE:
    if (md_choice_of(option->choices, value) < 0)
      return md_fail_choice(context, label, option->choices, value);
    break;
  case MD_OPTION_TEXT:
    break;
  }
  *(const char **)option->target = value;
  return MD_OK;
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

/* INI decks: rank 0 reads the file, every rank its text. */

enum { DECK_BYTES = 1 << 16, DECK_LABEL_BYTES = 512, LABEL_BYTES = 128, WAIT_MS = 100 };

typedef struct deck {
  reader *reader;
  const char *path, *next; /* the text that is left */
  int line, too_long;      /* the present one; the first that the parser cannot hold, 0: none */
  int line_bytes;          /* that it can */
  md_status status;
} deck;

/* A pipe is one too, so that a shell can make a deck: --config <(...). Opening it does not wait
 * for who writes. */
static md_status open_deck(md_context *context, const char *path, int *file) {
  struct stat there;
  *file = -1;
  if (stat(path, &there) == 0 && !S_ISREG(there.st_mode) && !S_ISFIFO(there.st_mode))
    return md_fail(context, MD_INPUT, "deck %s must be a file or a pipe, it is %s", path,
                   md_file_kind(there.st_mode));
  *file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  return *file < 0 ? md_fail_open(context, "deck", path, errno) : MD_OK;
}

/* Appends what is there within WAIT_MS to the text, on rank 0; *more: the end is not reached. */
static md_status read_part(md_context *context, const char *path, int file, char *text,
                           size_t *used, bool *more) {
  struct pollfd wait = {.fd = file, .events = POLLIN};
  const int ready = poll(&wait, 1, WAIT_MS);
  const ssize_t part = ready > 0 ? read(file, text + *used, DECK_BYTES - *used) : 0;
  if (ready == 0 || ((ready < 0 || part < 0) && (errno == EINTR || errno == EAGAIN))) return MD_OK;
  if (ready < 0 || part < 0)
    return md_fail(context, MD_ENVIRONMENT, "deck %s cannot be read: %m", path);
  *used += (size_t)part;
  *more = part > 0;
  if (*used == DECK_BYTES)
    return md_fail(context, MD_INPUT, "deck %s is longer than %d bytes", path, DECK_BYTES - 1);
  if (memchr(text, '\0', *used))
    return md_fail(context, MD_INPUT, "deck %s is not a text file", path);
  return MD_OK;
}

/* Rank 0 reads and the others wait, all for a signal too: a pipe may keep them for ever. */
static md_status load(md_context *context, const char *path, char *text) {
  int file = -1;
  size_t used = 0;
  bool more = true;
  md_status status =
      md_agree(context, context->rank == 0 ? open_deck(context, path, &file) : MD_OK);
  while (status == MD_OK && more) {
    if (context->rank == 0) status = read_part(context, path, file, text, &used, &more);
    status = md_agree(context, status);
    md_broadcast(context, &more, sizeof more);
    if (status == MD_OK && more && md_interrupted_now(context))
      status = md_fail(context, MD_ENVIRONMENT,
                       "%s ended the run, which was waiting for the end of deck %s",
                       md_interrupt_name(context), path);
  }
  if (file >= 0) close(file);
  return status;
}

/* From the bracket that ends a section: inih passes over what follows, which may be a comment. */
static md_status check_behind(const deck *d, const char *end) {
  if (*end == ']') end++;
  end += strspn(end, " \t\v\f\r");
  if (strchr(";#", *end)) return MD_OK; /* the zero byte too */
  return md_fail(d->reader->context, MD_INPUT,
                 "deck %.300s, line %d: nothing may follow the section, got '%.200s'", d->path,
                 d->line, end);
}

/* A line that heads a section: inih names sections with their keys alone, which may be none. Its
 * blanks, and the byte order mark of UTF-8, are passed over here too. */
static md_status check_head(const deck *d, const char *line) {
  const char *head = line + strspn(line, "\xEF\xBB\xBF \t\v\f\r");
  const char *command = d->reader->text->command;
  char section[LABEL_BYTES];
  if (*head != '[') return MD_OK;
  const size_t length = strcspn(head + 1, "]");
  snprintf(section, sizeof section, "%.*s", (int)length, head + 1);
  if (strcmp(section, MD_DECK_DEFAULTS) == 0 || strcmp(section, command) == 0)
    return check_behind(d, head + 1 + length);
  return md_fail(d->reader->context, MD_INPUT,
                 "deck %.300s, line %d: section [%s] is not the command [%s] that reads it",
                 d->path, d->line, section, command);
}

/* fgets from the text, which counts lines. Without the blanks in front, by which inih would take a
 * line for the rest of the one before. */
static char *read_line(char *buffer, int bytes, void *user) {
  deck *d = user;
  d->next += strspn(d->next, " \t\v\f");
  if (*d->next == '\0') return NULL;
  const size_t length = strcspn(d->next, "\n"), room = (size_t)bytes - 1;
  d->line++;
  d->line_bytes = bytes - 1;
  if (length > room && d->too_long == 0) d->too_long = d->line;
  snprintf(buffer, (size_t)bytes, "%.*s", (int)length, d->next);
  d->next += length + (d->next[length] == '\n');
  if (d->status == MD_OK) d->status = check_head(d, buffer);
  return buffer;
}

static md_status take(deck *d, const char *section, const char *name, const char *value) {
  reader *r = d->reader;
  md_context *context = r->context;
  md_option *option = find_option(r, name, strlen(name));
  char label[DECK_LABEL_BYTES];
  snprintf(label, sizeof label, "deck %.300s, line %d:", d->path, d->line);
  const bool given = strcmp(section, MD_DECK_DEFAULTS) != 0;
  if (!option || is_of_line(name))
    return md_fail(context, MD_INPUT, "%s %s does not know the key '%s'; see minidirac %s --help%s",
                   label, r->text->command, name, r->text->command,
                   suggest_option(r, true, name).text);
  const ptrdiff_t k = option - r->options;
  if (r->from_deck[k]) return md_fail(context, MD_INPUT, "%s key '%s' is given twice", label, name);
  r->from_deck[k] = true;
  if (r->on_line[k]) return MD_OK;
  char *kept = strdup(value); /* targets point to it for the rest of the run */
  if (!kept) return md_fail_memory(context, strlen(value), "deck value");
  const size_t used = strlen(label);
  snprintf(label + used, sizeof label - used, " %s", option->name);
  const md_status status = store_value(context, option, label, kept);
  option->seen = given;
  option->given = r->common->print_config ? kept : NULL;
  if (option->type != MD_OPTION_TEXT && option->type != MD_OPTION_CHOICE && !option->given)
    free(kept);
  return status;
}

static int take_line(void *user, const char *section, const char *name, const char *value) {
  deck *d = user;
  if (d->status == MD_OK && d->too_long == 0) d->status = take(d, section, name, value);
  return d->status == MD_OK;
}

/* The deck of that path, read by rank 0. Collective. */
static md_status read_deck(reader *r, const char *path) {
  md_context *context = r->context;
  char *text = calloc(1, DECK_BYTES);
  md_status status = md_agree(context, text ? MD_OK : md_fail_memory(context, DECK_BYTES, "deck"));
  if (status == MD_OK) status = load(context, path, text);
  if (status == MD_OK) {
    md_broadcast(context, text, DECK_BYTES);
    deck d = {.reader = r, .path = path, .next = text};
    const int line = ini_parse_stream(read_line, &d, take_line, &d);
    status = d.status;
    if (status == MD_OK && d.too_long)
      status = md_fail(context, MD_INPUT, "deck %s: line %d must have at most %d characters", path,
                       d.too_long, d.line_bytes);
    if (status == MD_OK && line != 0)
      status = md_fail(context, MD_INPUT, "deck %s: line %d is not 'name = value'", path, line);
  }
  free(text);
  return status;
}

enum { MOST_THREADS = 4096 };

/* The option of argv word `-o`; NULL when the word is no such thing. */
static md_option *find_short(const reader *r, const char *word) {
  for (int i = 0; i < r->count && strlen(word) == 2; i++)
    if (r->options[i].short_name && word[0] == '-' && word[1] == r->options[i].short_name)
      return &r->options[i];
  return NULL;
}

static md_status unknown(const reader *r, const char *kind, const char *word) {
  const size_t dashes = strspn(word, "-");
  char name[MD_SUGGEST_BYTES];
  snprintf(name, sizeof name, "%.*s", (int)strcspn(word + dashes, "="), word + dashes);
  return md_fail(r->context, MD_INPUT,
                 "%s does not know the %s '%.200s'; see minidirac %s --help%s", r->text->command,
                 kind, word, r->text->command, dashes ? suggest_option(r, false, name).text : "");
}

static md_status read_flag(reader *r, int argc, char **argv, int *at) {
  md_option *option = find_short(r, argv[*at]);
  const char *name = option ? option->name : argv[*at] + 2;
  const size_t length = strcspn(name, "=");
  char label[LABEL_BYTES];
  if (!option) option = find_option(r, name, length);
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
  option->given = value;
  return store_value(r->context, option, label, value);
}

static md_status read_words(reader *r, int argc, char **argv) {
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
    r->options[k].given = argv[at];
    MD_TRY(store_value(r->context, &r->options[k], r->options[k].argument, argv[at]));
  }
  return MD_OK;
}

/* All files that the options name, for common->files. */
static md_status check_files(const reader *r, md_common_options *common) {
  common->file_count = 0;
  for (int i = 0; i < r->count; i++) {
    const md_option *o = &r->options[i];
    if (strcmp(o->name, "force") == 0) common->force = *(const bool *)o->target;
    if (o->file == MD_FILE_NONE || !(o->seen || r->from_deck[i])) continue;
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

/* OpenMP takes the variable only where it can, as a whole, and goes on with another number than the
 * first of a list (one for each level of nesting) where a later one is none. */
static md_status check_variable(md_context *context) {
  const char *value = getenv("OMP_NUM_THREADS");
  if (!value || !*value) return MD_OK;
  for (const char *at = value; at;) {
    char word[32];
    long long threads;
    at += strspn(at, " ");
    const size_t length = strcspn(at, ", ");
    snprintf(word, sizeof word, "%.*s", (int)length, at);
    at += length + strspn(at + length, " ");
    if (md_number_integer(word, 1, MOST_THREADS, &threads) != MD_NUMBER_OK || !strchr(",", *at))
      return md_fail(
          context, MD_INPUT,
          "OMP_NUM_THREADS must be an integer from 1 to %d, got '%.60s'; set or unset it, or "
          "give --threads N",
          MOST_THREADS, value);
    at = *at ? at + 1 : NULL;
  }
  return MD_OK;
}

/* Sets the number of --threads; OpenMP would give teams of fewer than it says beyond its limit. */
static md_status set_threads(md_context *context, long long asked) {
  if (asked == 0) MD_TRY(check_variable(context));
  if (asked > 0) omp_set_num_threads((int)asked);
  context->threads = omp_get_max_threads();
  if (context->threads <= omp_get_thread_limit()) return MD_OK;
  return md_fail(context, MD_ENVIRONMENT,
                 "threads must be within OMP_THREAD_LIMIT, %d, got %d; ask for fewer, or raise it",
                 omp_get_thread_limit(), context->threads);
}

/* What is left on this rank when the words are read. Local. */
static md_status finish(reader *r, md_common_options *common) {
  const char *command = r->text->command;
  for (int i = 0; i < r->count; i++) {
    md_option *o = &r->options[i];
    char label[LABEL_BYTES];
    snprintf(label, sizeof label, "--%s", o->name);
    if (o->required && !o->seen && !r->from_deck[i] && !common->print_config)
      return md_fail(r->context, MD_INPUT, "%s needs --%s %s%s; see minidirac %s --help", command,
                     o->name, o->argument ? o->argument : o->choices,
                     o->positional ? ", with or without the flag" : "", command);
    if (o->initial && !o->seen && !r->from_deck[i])
      MD_TRY(store_value(r->context, o, label, o->initial));
  }
  MD_TRY(set_threads(r->context, common->threads));
  r->context->patience_s = common->patience_s;
  r->context->quiet = common->quiet || (common->json && strcmp(common->json, "-") == 0);
  md_progress_choose(r->context, common->progress);
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
  reader r = {context, text, options, count, common, marks, marks ? marks + count : NULL};
  md_status status =
      marks ? read_words(&r, argc, argv) : md_fail_memory(context, 2 * (size_t)count, "options");
  for (int i = 0; marks && i < count; i++) r.on_line[i] = options[i].seen;
  status = md_agree(context, status);
  if (status == MD_OK && common->help) {
    if (context->rank == 0) md_options_print_help(text, options, count);
    md_show();
  } else {
    if (status == MD_OK && common->config) status = read_deck(&r, common->config);
    if (status == MD_OK) status = finish(&r, common);
    status = md_agree(context, status);
    common->help = common->print_config;
    if (status == MD_OK && common->print_config)
      status = md_options_print_deck(context, text, options, count);
    if (common->help) md_show();
    if (status == MD_OK && !common->help) status = md_threads_check(context, context->threads);
    if (status == MD_OK && !common->help) status = check_files(&r, common);
    if (status == MD_OK && !common->help) status = md_tune_open(context, common->tune);
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
        md_choice_of("config|json|threads|patience|quiet|progress|print-config|help",
                     options[i].name) < 0 &&
        md_choice_of(allowed, options[i].name) < 0)
      return md_fail(context, MD_INPUT, "--%s has no effect with %s; leave it out", options[i].name,
                     what);
  return MD_OK;
}

md_status md_options_need(md_context *context, const md_option *options, int count,
                          const char *names, bool there, const char *needed) {
  for (int i = 0; i < count && !there; i++)
    if (options[i].seen && md_choice_of(names, options[i].name) >= 0)
      return md_fail(context, MD_INPUT, "--%s has no effect without %s; leave it out",
                     options[i].name, needed);
  return MD_OK;
}
