/* INI decks: rank 0 reads the file, every rank its text. */
#include "base/options_read.h"

#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DECK_BYTES = 1 << 16, LABEL_BYTES = 512 };

typedef struct deck {
  md_options_reader *reader;
  const char *path, *next; /* the text that is left */
  int line, too_long;      /* the present one; the first that the parser cannot hold, 0: none */
  int line_bytes;          /* that it can */
  md_status status;
} deck;

static md_status load(md_context *context, const char *path, char *text) {
  if (context->rank != 0) return MD_OK;
  FILE *file = fopen(path, "r");
  if (!file) return md_fail(context, MD_INPUT, "deck %s cannot be opened: %m", path);
  const size_t bytes = fread(text, 1, DECK_BYTES, file);
  const bool bad = ferror(file) != 0;
  fclose(file);
  if (bad) return md_fail(context, MD_INPUT, "deck %s cannot be read", path);
  if (bytes == DECK_BYTES)
    return md_fail(context, MD_INPUT, "deck %s is longer than %d bytes", path, DECK_BYTES - 1);
  if (memchr(text, '\0', bytes))
    return md_fail(context, MD_INPUT, "deck %s is not a text file", path);
  text[bytes] = '\0';
  return MD_OK;
}

/* fgets from the text, which counts lines. */
static char *read_line(char *buffer, int bytes, void *user) {
  deck *d = user;
  if (*d->next == '\0') return NULL;
  const size_t length = strcspn(d->next, "\n"), room = (size_t)bytes - 1;
  d->line++;
  d->line_bytes = bytes - 1;
  if (length > room && d->too_long == 0) d->too_long = d->line;
  snprintf(buffer, (size_t)bytes, "%.*s", (int)length, d->next);
  d->next += length + (d->next[length] == '\n');
  return buffer;
}

static md_status take(deck *d, const char *section, const char *name, const char *value) {
  md_options_reader *r = d->reader;
  md_context *context = r->context;
  md_option *option = md_option_find(r, name, strlen(name));
  char label[LABEL_BYTES], nearest[LABEL_BYTES];
  snprintf(label, sizeof label, "deck %.300s, line %d:", d->path, d->line);
  if (*section && strcmp(section, r->text->command) != 0)
    return md_fail(context, MD_INPUT, "%s section [%s] is not the command [%s] that reads it",
                   label, section, r->text->command);
  if (!option || strcmp(name, "config") == 0 || strcmp(name, "help") == 0) {
    md_option_suggest(r, name, strlen(name), nearest, sizeof nearest);
    return md_fail(context, MD_INPUT, "%s %s does not know the key '%s'; see minidirac %s --help%s",
                   label, r->text->command, name, r->text->command, nearest);
  }
  const ptrdiff_t k = option - r->options;
  if (r->from_deck[k]) return md_fail(context, MD_INPUT, "%s key '%s' is given twice", label, name);
  r->from_deck[k] = true;
  if (r->on_line[k]) return MD_OK;
  char *kept = strdup(value); /* targets point to it for the rest of the run */
  if (!kept) return md_fail_memory(context, strlen(value), "deck value");
  const size_t used = strlen(label);
  snprintf(label + used, sizeof label - used, " %s", option->name);
  const md_status status = md_option_store(context, option, label, kept);
  option->seen = true;
  if (option->type != MD_OPTION_TEXT && option->type != MD_OPTION_CHOICE) free(kept);
  return status;
}

static int take_line(void *user, const char *section, const char *name, const char *value) {
  deck *d = user;
  if (d->status == MD_OK && d->too_long == 0) d->status = take(d, section, name, value);
  return d->status == MD_OK;
}

md_status md_options_read_deck(md_options_reader *reader, const char *path) {
  md_context *context = reader->context;
  char *text = calloc(1, DECK_BYTES);
  md_status status = text ? load(context, path, text) : md_fail_memory(context, DECK_BYTES, "deck");
  status = md_agree(context, status);
  if (status == MD_OK) {
    md_broadcast(context, text, DECK_BYTES);
    deck d = {.reader = reader, .path = path, .next = text};
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
