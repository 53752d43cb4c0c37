/* Preloaded into the program and its readers by bad_disk.sh: a file under its temporary name that
 * is opened to be read is not there (BAD_DISK=lost), or has other numbers in it (BAD_DISK=changed);
 * or a file of the suite has them once it has its name (BAD_DISK=named). */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#pragma GCC visibility push(default) /* what takes the place of functions of libraries */

typedef int open_function(const char *, int, ...);

static void change(open_function *really, const char *path) {
  const double other = 1.25;
  const int file = really(path, O_RDWR);
  struct stat there;
  if (file < 0 || fstat(file, &there) != 0 ||
      pwrite(file, &other, sizeof other, there.st_size / 4 * 3) != sizeof other)
    abort();
  close(file);
}

int rename(const char *from, const char *to) {
  int (*really)(const char *, const char *);
  open_function *opens_really;
  const char *how = getenv("BAD_DISK");
  *(void **)&really = dlsym(RTLD_NEXT, "rename");
  *(void **)&opens_really = dlsym(RTLD_NEXT, "open");
  const int result = really(from, to);
  if (how && strcmp(how, "named") == 0 && result == 0 && strstr(to, "minidirac-suite"))
    change(opens_really, to);
  return result;
}

static int opens(const char *name, const char *path, int flags, mode_t mode) {
  const char *how = getenv("BAD_DISK"), suffix[] = ".partial";
  const size_t length = strlen(path), end = sizeof suffix - 1;
  open_function *really;
  *(void **)&really = dlsym(RTLD_NEXT, name);
  if (how && strcmp(how, "named") != 0 && length > end &&
      strcmp(path + length - end, suffix) == 0 && (flags & O_ACCMODE) == O_RDONLY) {
    if (strcmp(how, "lost") == 0) {
      errno = ENOENT;
      return -1;
    }
    change(really, path);
  }
  return really(path, flags, mode);
}

#define OPEN(NAME)                                                                                 \
  int NAME(const char *path, int flags, ...) {                                                     \
    va_list more;                                                                                  \
    va_start(more, flags);                                                                         \
    const mode_t mode = (flags & O_CREAT) ? va_arg(more, mode_t) : 0;                              \
    va_end(more);                                                                                  \
    return opens(#NAME, path, flags, mode);                                                        \
  }
OPEN(open)
OPEN(open64)
