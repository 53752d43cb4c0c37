#ifndef MD_BASE_OPTIONS_READ_H
#define MD_BASE_OPTIONS_READ_H

#include "base/options.h"

/* Inside base/options*.c: what reading one command line shares. */
typedef struct md_options_reader {
  md_context *context;
  const md_command_text *text;
  md_option *options;
  int count;
  bool *from_deck; /* per option: already set by this deck */
  bool *on_line;   /* per option: set by the command line, which stands above the deck */
} md_options_reader;

/* The option whose name is the first `length` bytes; NULL: there is none. Local. */
md_option *md_option_find(const md_options_reader *reader, const char *name, size_t length);
/* The same for a name that no option has: one to suggest, as md_suggestion.text. Local. */
void md_option_suggest(const md_options_reader *reader, const char *name, size_t length, char *text,
                       size_t text_bytes);
/* Checks a value and puts it into the option's target; NULL: a flag of the command line. `label`
 * begins the messages. MD_INPUT. Local. */
md_status md_option_store(md_context *context, md_option *option, const char *label,
                          const char *value);
/* The deck of that path, read by rank 0. Collective. */
md_status md_options_read_deck(md_options_reader *reader, const char *path);

#endif
