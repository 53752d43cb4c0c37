#include "fuzz_support.h"
#include "kinds.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sanitizer/lsan_interface.h>

static md_context the_context;
static int the_file = -1;
static char the_name[64];

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void remove_file(void) {
  unlink(the_name);
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  __lsan_disable(); /* what MPI keeps */
  fuzz_require(md_context_open(&the_context, argc, argv) == MD_OK, "MPI starts");
  __lsan_enable();
  the_context.quiet = true;
  /* On tmpfs, with a name: HDF5 does not open what /proc/self/fd/N says of a memfd. */
  snprintf(the_name, sizeof the_name, "/dev/shm/minidirac_fuzz_%ld", (long)getpid());
  the_file = open(the_name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  fuzz_require(the_file >= 0, "a file in memory is to be had");
  atexit(remove_file);
  fuzz_prepare(&the_context);
  return 0;
}

const char *fuzz_file(const void *data, size_t bytes) {
  fuzz_require(ftruncate(the_file, 0) == 0 && pwrite(the_file, data, bytes, 0) == (ssize_t)bytes,
               "the file in memory can be written");
  return the_name;
}

unsigned char *fuzz_contents(const char *path, size_t *bytes) {
  struct stat there;
  const int from = open(path, O_RDONLY);
  fuzz_require(from >= 0 && fstat(from, &there) == 0, "a file that was made exists");
  *bytes = (size_t)there.st_size;
  unsigned char *data = malloc(*bytes);
  fuzz_require(data && read(from, data, *bytes) == (ssize_t)*bytes, "it can be read");
  close(from);
  return data;
}

unsigned char *fuzz_made(md_context *context, int kind, size_t *bytes) {
  char path[80];
  snprintf(path, sizeof path, "%s.%s", the_name, fuzz_kind_name(kind));
  fuzz_require(fuzz_kind_write(context, kind, path) == MD_OK, "a file of each kind can be written");
  unsigned char *data = fuzz_contents(path, bytes);
  unlink(path);
  return data;
}

void fuzz_require(bool holds, const char *text) {
  if (holds) return;
  fprintf(stderr, "fuzz: it does not hold that %s: %s\n", text, the_context.message);
  abort();
}

void fuzz_require_refusal(const md_context *context, md_status status) {
  fuzz_require(status == MD_OK || status == MD_INPUT, "the input is read or refused as input");
  if (status == MD_OK) return;
  fuzz_require(*context->message != 0, "a refusal has a message");
  for (const char *at = context->message; *at; at++)
    fuzz_require((unsigned char)*at >= ' ' && *at != 0x7f, "the message is printable");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
  the_context.message[0] = 0;
  fuzz_one(&the_context, data, bytes);
  return 0;
}
