#pragma once

#include "base/context.h"
#include "base/file.h"

/* Command line and INI deck, from one table. `--name VALUE` and `--name=VALUE` are the same; a
 * deck holds `name = value` lines (also under a section [command], or [defaults]). What the command
 * line says stands above the deck. Unknown or repeated names are errors in both; messages name the
 * flag, or the deck, its line and the key. Numbers are read whole and within their range. */
typedef enum md_option_type {
  MD_OPTION_FLAG,     /* bool *: no value on the command line; true|false in a deck */
  MD_OPTION_INTEGER,  /* long long * within [low, high] */
  MD_OPTION_REAL,     /* double *, finite, within [low, high] */
  MD_OPTION_TEXT,     /* const char **, not empty */
  MD_OPTION_CHOICE,   /* const char **: one of the words of `choices`, "a|b|c" */
  MD_OPTION_DIMS,     /* int[4]: AxBxCxD, each within [low, high] */
  MD_OPTION_INTEGERS, /* md_integers *: a,b,... each as MD_OPTION_INTEGER */
  MD_OPTION_REALS,    /* md_reals *: a,b,... each as MD_OPTION_REAL */
  MD_OPTION_CHOICES,  /* md_choices *: a,b,... of the words of `choices`, or all */
  MD_OPTION_PARSED    /* whatever `parse` makes of the text */
} md_option_type;

enum { MD_LIST_MOST = 64 };
typedef struct md_integers {
  long long value[MD_LIST_MOST];
  int count;
} md_integers;
typedef struct md_reals {
  double value[MD_LIST_MOST];
  int count;
} md_reals;
typedef struct md_choices {
  int value[MD_LIST_MOST]; /* which word of `choices`, from 0 */
  int count;
  bool all; /* "all": every word */
} md_choices;

/* The heads that --help puts its options under, in this order. */
typedef enum md_option_group {
  MD_GROUP_AS_BEFORE, /* that of the row before */
  MD_GROUP_INPUT,
  MD_GROUP_PHYSICS,
  MD_GROUP_TIMED,
  MD_GROUP_SOLVER,
  MD_GROUP_MACHINE,
  MD_GROUP_OUTPUT,
  MD_GROUP_GENERAL,
  MD_GROUPS
} md_option_group;

typedef struct md_option {
  const char *name; /* without the dashes */
  md_option_type type;
  void *target;         /* holds the default before the call, unless `initial` does */
  const char *argument; /* for --help: FILE, N, ...; NULL: the choices */
  const char *help;     /* one line; the default in brackets */
  double low, high;     /* both 0: any value */
  const char *choices;
  const char *initial; /* read like a value where none is given; NULL: the target as it is */
  /* Reads `text` into the target; `label` begins its messages: "--name". Local. */
  md_status (*parse)(md_context *context, const char *label, const char *text, void *target);
  char short_name; /* 'o': `-o VALUE` is the same as `--output VALUE`; 0: none */
  bool positional; /* text: a word without a flag is its value too, in the table's order */
  bool required;
  md_file_use file; /* what is done with the file that it names; outputs are checked at once */
  md_option_group group;
  bool seen;         /* set by md_options_read: given on the command line or in the deck */
  const char *given; /* with --print-config: the text of its value, where there is one */
} md_option;

/* A row of a table of options; further fields follow as `.low = 1`. */
#define MD_OPTION(type_, name_, target_, argument_, help_, ...)                                    \
  {                                                                                                \
    .name = (name_), .type = MD_OPTION_##type_, .target = (target_), .argument = (argument_),      \
    .help = (help_), __VA_ARGS__                                                                   \
  }

enum { MD_OPTION_FILES = 16 };
/* The options that every subcommand has: append MD_COMMON_OPTIONS(common) to its table, or
 * MD_COMMON_OPTIONS_WITHOUT_LATTICE(common), which has no --grid, where no lattice is cut. */
typedef struct md_common_options {
  const char *config, *json, *progress;
  /* help is set for --print-config too: all is said, and the command ends. */
  bool quiet, help, print_config;
  int grid[4];       /* ranks along x,y,z,t; all 0: chosen for the cheapest faces */
  long long threads; /* 0: OMP_NUM_THREADS or one per core */
  double patience_s; /* of the context */
  const char *tune;  /* of MD_HALO_OPTIONS, of those that make operators; NULL: none */
  /* Set by md_options_read: the files that the given options name, and the flag --force. */
  md_named_file files[MD_OPTION_FILES];
  int file_count;
  bool force;
} md_common_options;

/* clang-format off */
#define MD_COMMON_OPTIONS(common)                                                                  \
  MD_OPTION(DIMS, "grid", (common).grid, "AxBxCxD", "ranks along x,y,z,t [cheapest faces]",        \
            .low = 1, .high = 1 << 20, .group = MD_GROUP_MACHINE),                                 \
  MD_COMMON_OPTIONS_WITHOUT_LATTICE(common)
#define MD_COMMON_OPTIONS_WITHOUT_LATTICE(common)                                                  \
  MD_OPTION(INTEGER, "threads", &(common).threads, "N",                                            \
            "OpenMP threads of each rank [OMP_NUM_THREADS]", .low = 1, .high = 4096,               \
            .group = MD_GROUP_MACHINE),                                                            \
  MD_OPTION(REAL, "patience", &(common).patience_s, "SECONDS",                                     \
            "a rank on a GPU, or that failed, waits so long for others; 0: for ever [45]",         \
            .initial = "45", .low = 0, .high = 1e6),                                               \
  MD_OPTION(TEXT, "json", &(common).json, "FILE",                                                  \
            "machine-readable report; - for stdout (implies --quiet)", .file = MD_FILE_REPORT,     \
            .group = MD_GROUP_OUTPUT),                                                             \
  MD_OPTION(FLAG, "quiet", &(common).quiet, NULL, "no tables and no lines of progress"),           \
  MD_OPTION(CHOICE, "progress", &(common).progress, NULL,                                          \
            "auto: one line of a terminal, else one a minute; always: also when quiet [auto]",     \
            .choices = "auto|always|never", .initial = "auto"),                                    \
  MD_OPTION(TEXT, "config", &(common).config, "FILE",                                              \
            "INI deck, a file or a pipe, with the names of the flags", .file = MD_FILE_INPUT,      \
            .group = MD_GROUP_GENERAL),                                                            \
  MD_OPTION(FLAG, "print-config", &(common).print_config, NULL,                                    \
            "write all options with their values as a deck, and end"),                             \
  MD_OPTION(FLAG, "help", &(common).help, NULL, "this text", .short_name = 'h')
/* clang-format on */

/* Options of several commands, with the same words in each; `halo` is an md_halo_request. */
/* clang-format off */
#define MD_CSV_OPTION(path)                                                                        \
  MD_OPTION(TEXT, "csv", &(path), "FILE", "the rows as CSV", .file = MD_FILE_REPORT,               \
            .group = MD_GROUP_OUTPUT)
#define MD_FORCE_OPTION(flag)                                                                      \
  MD_OPTION(FLAG, "force", &(flag), NULL, "replace the file of --output where it is there",        \
            .group = MD_GROUP_OUTPUT)
#define MD_IGNORE_CHECKSUM_OPTION(flag)                                                            \
  MD_OPTION(FLAG, "ignore-checksum", &(flag), NULL, "a checksum that does not fit is a warning",  \
            .group = MD_GROUP_INPUT)
#define MD_REPETITIONS_OPTION(count, help_)                                                        \
  MD_OPTION(INTEGER, "repetitions", &(count), "N", help_, .low = 1, .high = 1e6,                   \
            .group = MD_GROUP_TIMED)
#define MD_HALO_OPTIONS(halo, common)                                                              \
  MD_OPTION(PARSED, "transport", &(halo).transport, "NAME",                                        \
            "of halos: auto, or a name of docs/backends.md [auto]", .group = MD_GROUP_MACHINE,     \
            .initial = "auto", .parse = md_halo_read_transport),                                   \
  MD_OPTION(FLAG, "check-halo", &(halo).check, NULL,                                               \
            "verify number and hash of every halo message"),                                       \
  MD_OPTION(TEXT, "tune", &(common).tune, "FILE",                                                  \
            "launch shapes by trials, kept in FILE; same bits; --tune=FILE under mpirun",           \
            .file = MD_FILE_STATE, .group = MD_GROUP_MACHINE)
/* clang-format on */

typedef struct md_command_text {
  const char *command; /* "solve" */
  const char *summary; /* one sentence */
  const char *details; /* further lines of --help, or NULL */
  const char *example; /* a whole command line, the last of --help */
} md_command_text;

/* Of md_options_read, on this rank: the help, and what --print-config writes. MD_INPUT for a value
 * that no deck can hold. */
void md_options_print_help(const md_command_text *text, const md_option *options, int count);
md_status md_options_print_deck(md_context *context, const md_command_text *text,
                                const md_option *options, int count);
/* Keys of this section have values, but count as not given: they give way to what a file or another
 * option says, as the defaults do that --print-config writes there. */
#define MD_DECK_DEFAULTS "defaults"

/* MD_INPUT with both words where a rank was started with other arguments than rank 0; all that
 * reads them may then count on one command line. Collective. */
md_status md_arguments_check(md_context *context, int argc, char **argv);

/* Reads argv[1..argc-1] (argv[0] is the command) and the deck of --config, checks, stores, and
 * applies quiet, progress, patience, threads and tune to the context; the files that options name
 * for writing are checked (md_outputs_check; the flag --force of the table is its `force`). Strings
 * point into argv or into memory that lives as long as the process. With --help it prints the help
 * on rank 0 and sets common->help; with --print-config the deck, no file being looked at, and sets
 * that too. argv is the same on all ranks. Collective (the deck is read by rank 0); all ranks
 * return the same, also where one alone fails. MD_INPUT on bad usage, MD_ENVIRONMENT where
 * md_outputs_check finds no place for a file or a rank cannot have its threads. */
md_status md_options_read(md_context *context, const md_command_text *text, md_option *options,
                          int count, md_common_options *common, int argc, char **argv);

/* For a command that makes names of given ones: checks them as md_options_read did the given ones,
 * and together with those, before the work. Frees `made`, whose `status` is how its making ended.
 * Collective. */
md_status md_options_check_made(md_context *context, const md_common_options *common,
                                md_made_files *made, md_status status);

/* True when the option of that name was given. */
bool md_option_seen(const md_option *options, int count, const char *name);

/* MD_INPUT for the first option that was given and is none of "a|b|c" nor one that every command
 * has (those of MD_COMMON_OPTIONS but --grid): "--rhs has no effect with WHAT; leave it out".
 * Local. */
md_status md_options_allow(md_context *context, const md_option *options, int count,
                           const char *allowed, const char *what);

/* MD_INPUT for the first option of "a|b|c" that was given, unless what it needs is there: "--beta
 * has no effect without NEEDED; leave it out". Local. */
md_status md_options_need(md_context *context, const md_option *options, int count,
                          const char *names, bool there, const char *needed);

/* MD_INPUT for a word that is none of "a|b|c": "LABEL must be one of ..., got 'word'", with the
 * nearest one. Local. */
md_status md_fail_choice(md_context *context, const char *label, const char *choices,
                         const char *word);
/* The place of the word among "a|b|c", from 0; -1: it is none of them. Local. */
int md_choice_of(const char *choices, const char *word);

/* Splits "a,b,c" into words: at most `most` pointers into `copy` (the caller's buffer, which
 * receives the text). Returns the count, or -1 when a word is empty or there are too many. */
int md_words(const char *text, char *copy, size_t copy_bytes, const char **words, int most);
