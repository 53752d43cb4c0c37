/* INI decks: rank 0 reads the file, every rank its text. */
#include "base/file.h"
#include "base/interrupt.h"
#include "base/options_read.h"

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DECK_BYTES = 1 << 16, LABEL_BYTES = 512, WAIT_MS = 100 };

typedef struct deck {
  md_options_reader *reader;
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
  md_status status = md_agree(context, text ? MD_OK : md_fail_memory(context, DECK_BYTES, "deck"));
  if (status == MD_OK) status = load(context, path, text);
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
