#include "base/options.h"
#include "base/text.h"
#include "fuzz_support.h"

#include <stdlib.h>
#include <string.h>

#include <sanitizer/lsan_interface.h>

/* The input is a command line, its words separated by newlines; what follows a first zero byte is
 * the deck that --config DECK of it means. */
enum { WORDS_MOST = 32, TEXT_MOST = 4096 };

typedef struct values {
  md_common_options common;
  const char *lattice, *output, *choice;
  long long count;
  double mass;
  int dims[4];
  bool flag;
} values;

static void read_both(md_context *context, int argc, char **argv) {
  static const char text[] = "solve";
  values v = {.choice = "one"};
  md_option options[] = {
      {.name = "lattice",
       .type = MD_OPTION_TEXT,
       .target = &v.lattice,
       .argument = "FILE",
       .positional = true,
       .required = true},
      {.name = "output", .type = MD_OPTION_TEXT, .target = &v.output, .short_name = 'o'},
      {.name = "choice", .type = MD_OPTION_CHOICE, .target = &v.choice, .choices = "one|two"},
      {.name = "count", .type = MD_OPTION_INTEGER, .target = &v.count, .low = 1, .high = 1000},
      {.name = "mass", .type = MD_OPTION_REAL, .target = &v.mass},
      {.name = "dims", .type = MD_OPTION_DIMS, .target = v.dims, .low = 2, .high = 32766},
      {.name = "flag", .type = MD_OPTION_FLAG, .target = &v.flag},
      MD_COMMON_OPTIONS(v.common)};
  enum { COUNT = sizeof options / sizeof *options };
  const md_command_text command = {text, "reads options", NULL, NULL};
  const md_status status =
      md_options_read(context, &command, options, COUNT, &v.common, argc, argv);
  const bool absent = status == MD_ENVIRONMENT && md_option_seen(options, COUNT, "json");
  fuzz_require_refusal(context, absent ? MD_INPUT : status); /* the folder of a deck's report */
  if (status == MD_OK && md_option_seen(options, COUNT, "count"))
    fuzz_require(v.count >= 1 && v.count <= 1000, "a count is in its range");
  if (status == MD_OK && md_option_seen(options, COUNT, "dims"))
    for (int d = 0; d < 4; d++)
      fuzz_require(v.dims[d] >= 2 && v.dims[d] <= 32766, "an extent is in its range");
}

void fuzz_prepare(md_context *context) {
  (void)context;
}

void fuzz_one(md_context *context, const uint8_t *data, size_t bytes) {
  char line[TEXT_MOST + 1], shown[4 * TEXT_MOST + 1], *argv[WORDS_MOST + 1] = {"solve"};
  const uint8_t *end = memchr(data, 0, bytes);
  const size_t length = end ? (size_t)(end - data) : bytes;
  if (length > TEXT_MOST) return;
  memcpy(line, data, length);
  line[length] = 0;
  md_printable(line, false, shown, sizeof shown);
  for (const char *at = shown; *at; at++)
    fuzz_require((unsigned char)*at >= ' ' && *at != 0x7f, "text is made printable");
  int argc = 1;
  char *rest = line;
  const char *deck = end ? fuzz_file(end + 1, bytes - length - 1) : "/nonexistent";
  while (argc < WORDS_MOST && rest) {
    char *word = strsep(&rest, "\n");
    argv[argc++] = strcmp(word, "DECK") ? word : (char *)deck;
    if (strncmp(word, "--config=", 9) == 0 || strncmp(word, "--json", 6) == 0 ||
        strncmp(word, "--threads", 9) == 0)
      return; /* no other files, no thousand threads */
  }
  __lsan_disable(); /* what a deck says is kept for the rest of the process, as options.h tells */
  read_both(context, argc, argv);
  __lsan_enable();
}
