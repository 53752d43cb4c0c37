#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

md_status md_temporary_name(md_context *context, const char *path, char *name, size_t name_bytes) {
  const int length = snprintf(name, name_bytes, "%s.partial", path);
  if (length < 0 || (size_t)length >= name_bytes)
    return md_fail(context, MD_INPUT, "a file name must be shorter than %zu bytes, got %d",
                   name_bytes - 9, length);
  return MD_OK;
}

/* The rename itself is durable only when the directory is flushed too. */
static void flush_directory(const char *path) {
  char copy[PATH_MAX];
  snprintf(copy, sizeof copy, "%s", path);
  const int folder = open(dirname(copy), O_RDONLY | O_DIRECTORY);
  if (folder < 0) return;
  (void)fsync(folder);
  close(folder);
}

md_status md_commit_file(md_context *context, const char *temporary, const char *path) {
  const int file = open(temporary, O_RDONLY);
  struct stat there;
  const char *step = NULL;
  if (file < 0 || fsync(file) != 0)
    step = "flushed";
  else if (stat(path, &there) == 0 && S_ISDIR(there.st_mode)) {
    errno = EISDIR;
    step = "renamed";
  } else if (rename(temporary, path) != 0)
    step = "renamed";
  const int reason = errno;
  if (file >= 0) close(file);
  if (step) {
    unlink(temporary);
    return md_fail(context, MD_ENVIRONMENT, "%s cannot be %s to %s: %s", temporary, step, path,
                   strerror(reason));
  }
  flush_directory(path);
  return MD_OK;
}

md_status md_write_file(md_context *context, const char *path, const void *data, size_t bytes) {
  char temporary[PATH_MAX];
  struct stat there;
  /* A device or a pipe (/dev/stdout, /dev/full) has no name to swap: write straight to it. */
  const bool special = stat(path, &there) == 0 && !S_ISREG(there.st_mode);
  MD_TRY(md_temporary_name(context, path, temporary, sizeof temporary));
  const char *target = special ? path : temporary;
  FILE *file = fopen(target, "wb");
  if (!file)
    return md_fail(context, MD_ENVIRONMENT, "%s cannot be created: %s", target, strerror(errno));
  const bool written = fwrite(data, 1, bytes, file) == bytes && fflush(file) == 0;
  const int reason = errno;
  fclose(file);
  if (!written) {
    if (!special) unlink(temporary);
    return md_fail(context, MD_ENVIRONMENT, "%s cannot be written: %s", target, strerror(reason));
  }
  return special ? MD_OK : md_commit_file(context, temporary, path);
}
