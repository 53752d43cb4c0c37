#include "base/options.h"

#include <ini.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const heads[MD_GROUPS] = {[MD_GROUP_INPUT] = "Input",
                                             [MD_GROUP_PHYSICS] = "Physics",
                                             [MD_GROUP_TIMED] = "What is timed",
                                             [MD_GROUP_SOLVER] = "Solver",
                                             [MD_GROUP_MACHINE] =
                                                 "Machine: how the work is done, and where",
                                             [MD_GROUP_OUTPUT] = "Output",
                                             [MD_GROUP_GENERAL] = "General"};

static void print_option(const md_option *o) {
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

/* Those of one group. */
static void print_group(md_option_group group, const md_option *options, int count) {
  md_option_group here = MD_GROUP_GENERAL;
  bool any = false;
  for (int i = 0; i < count; i++) {
    if (options[i].group != MD_GROUP_AS_BEFORE) here = options[i].group;
    if (here != group) continue;
    if (!any) printf("%s\n", heads[group]);
    any = true;
    print_option(&options[i]);
  }
  if (any) printf("\n");
}

void md_options_print_help(const md_command_text *text, const md_option *options, int count) {
  printf("usage: minidirac %s", text->command);
  for (int i = 0; i < count; i++)
    if (options[i].positional) printf(" %s", options[i].argument);
  printf(" [options]\n\n%s\n\n", text->summary);
  for (int group = MD_GROUP_INPUT; group < MD_GROUPS; group++)
    print_group((md_option_group)group, options, count);
  for (int i = 0; i < count; i++)
    if (options[i].positional)
      printf("%s may stand without --%s.\n\n", options[i].argument, options[i].name);
  if (text->details) printf("%s\n\n", text->details);
  if (text->example) printf("Example\n  %s\n", text->example);
}

static bool within(const md_option *o, double value) {
  return isfinite(value) &&
         ((o->low == 0.0 && o->high == 0.0) || (value >= o->low && value <= o->high));
}

enum { VALUE_BYTES = 64 };

/* The value as a deck has it, which may be made in `room`; NULL: there is none, as that of what is
 * required and was not given, of a file that was not named, or of a number that is chosen later and
 * stands outside of its range now. */
static const char *value_of(const md_option *o, char room[VALUE_BYTES]) {
  const long long *integer = o->target;
  const double *real = o->target;
  const int *dims = o->target;
  if (o->given) return o->given;
  if (o->required) return NULL;
  switch (o->type) {
  case MD_OPTION_FLAG:
    return *(const bool *)o->target ? "true" : "false";
  case MD_OPTION_TEXT:
  case MD_OPTION_CHOICE:
    return *(const char *const *)o->target;
  case MD_OPTION_INTEGER:
    snprintf(room, VALUE_BYTES, "%lld", *integer);
    return within(o, (double)*integer) ? room : NULL;
  case MD_OPTION_REAL:
    snprintf(room, VALUE_BYTES, "%.15g", *real);
    if (strtod(room, NULL) != *real) snprintf(room, VALUE_BYTES, "%.17g", *real);
    return within(o, *real) ? room : NULL;
  case MD_OPTION_DIMS:
    snprintf(room, VALUE_BYTES, "%dx%dx%dx%d", dims[0], dims[1], dims[2], dims[3]);
    for (int d = 0; d < 4; d++)
      if (!within(o, dims[d])) return NULL;
    return room;
  default:
    return o->initial;
  }
}

/* What a deck that was written says when it is read: line by line the options that have a value. */
typedef struct reading {
  const md_option *options;
  int count, good; /* good: lines that say what they should */
} reading;

static int compare_line(void *user, const char *section, const char *name, const char *value) {
  reading *r = user;
  char room[VALUE_BYTES];
  (void)section;
  for (int i = 0; i < r->count; i++)
    if (strcmp(r->options[i].name, name) == 0) {
      const char *meant = value_of(&r->options[i], room);
      r->good += meant && strcmp(meant, value) == 0;
    }
  return 1;
}

/* Writes the line of an option that decks have, where there is a file for it; MD_INPUT where
 * reading it gives another value. */
static md_status write_line(md_context *context, const md_option *o, FILE *out) {
  char room[VALUE_BYTES], *line = NULL;
  const char *value = value_of(o, room);
  reading r = {o, 1, 0};
  const char *shown = value ? value : o->argument ? o->argument : o->choices;
  if (md_choice_of("config|help|print-config", o->name) >= 0) return MD_OK;
  if (asprintf(&line, "%s%s = %s\n", value ? "" : "; ", o->name, shown ? shown : "") < 0)
    return md_fail_memory(context, 1, "deck");
  const bool reads = !value || (ini_parse_string(line, compare_line, &r) == 0 && r.good == 1);
  if (reads && out) fputs(line, out);
  free(line);
  if (reads) return MD_OK;
  return md_fail(context, MD_INPUT,
                 "a deck has no way to say --%s '%.200s': it takes one line without blanks at its "
                 "ends, without ' ;' and not too long; give it on the command line",
                 o->name, value);
}

md_status md_options_print_deck(md_context *context, const md_command_text *text,
                                const md_option *options, int count) {
  FILE *out = context->rank == 0 ? stdout : NULL;
  for (int i = 0; i < count; i++) MD_TRY(write_line(context, &options[i], NULL));
  for (int seen = 1; seen >= 0; seen--) {
    if (out && seen) printf("[%s]\n", text->command);
    if (out && !seen)
      printf(
          "\n; Not given: these give way to what a file or another option says. Lines that begin\n"
          "; with ; have no value: there is none, or the run finds it.\n[%s]\n",
          MD_DECK_DEFAULTS);
    for (int i = 0; i < count; i++)
      if (options[i].seen == seen) MD_TRY(write_line(context, &options[i], out));
  }
  return MD_OK;
}
