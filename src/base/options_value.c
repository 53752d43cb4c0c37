/* The values of options: texts as numbers, lists and choices. */
#include "base/number.h"
#include "base/options_read.h"
#include "base/suggest.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

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

/* What a value of the option must be: "an integer", "a list of numbers", ... */
static const char *kind_of(const md_option *option) {
  switch (option->type) {
  case MD_OPTION_INTEGER:
    return "an integer";
  case MD_OPTION_INTEGERS:
    return "a list of integers A,B,...";
  case MD_OPTION_REALS:
    return "a list of finite numbers A,B,...";
  default:
    return "a finite number";
  }
}

static md_status refuse(md_context *context, const md_option *option, const char *label,
                        md_number why, const char *word) {
  if (why == MD_NUMBER_MALFORMED)
    return md_fail(context, MD_INPUT, "%s must be %s, got '%.200s'", label, kind_of(option), word);
  return md_fail(context, MD_INPUT, "%s must lie in %g to %g, got %.200s", label, option->low,
                 option->high, word);
}

/* One number of the option's type into *integer or *real. */
static md_status read_number(md_context *context, const md_option *option, const char *label,
                             const char *word, long long *integer, double *real) {
  const double least = any_value(option) ? -HUGE_VAL : option->low;
  const double most = any_value(option) ? HUGE_VAL : option->high;
  const md_number found = integer
                              ? md_number_integer(word, lowest(option), highest(option), integer)
                              : md_number_real(word, least, most, real);
  return found == MD_NUMBER_OK ? MD_OK : refuse(context, option, label, found, word);
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
  if (option->type == MD_OPTION_INTEGERS)
    integers->count = count;
  else if (option->type == MD_OPTION_REALS)
    reals->count = count;
  else
    choices->count = count;
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

md_status md_option_store(md_context *context, md_option *option, const char *label,
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
