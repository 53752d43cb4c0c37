#include "base/output.h"
#include "base/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_output(const md_named_file *file) {
  return file->use >= MD_FILE_REPORT;
}

static bool is_stdout(const md_named_file *file) {
  return file->use == MD_FILE_REPORT && strcmp(file->path, "-") == 0;
}

static md_status check_old(md_context *context, const md_named_file *file, const struct stat *old,
                           bool force) {
  const bool report = file->use == MD_FILE_REPORT;
  if (!S_ISREG(old->st_mode))
    return md_fail(context, MD_INPUT, "%s must be a file, but %s is %s%s", file->option, file->path,
                   md_file_kind(old->st_mode), report ? "; '-' is standard output" : "");
  if (file->use == MD_FILE_RESULT && !force)
    return md_fail(context, MD_INPUT,
                   "%s replaces no file, but %s is there; add --force or give another name",
                   file->option, file->path);
  if (access(file->path, W_OK) != 0)
    return md_fail(context, MD_ENVIRONMENT, "%s cannot be written: %m", file->path);
  return MD_OK;
}

static md_status check_place(md_context *context, const md_named_file *file, bool force) {
  char target[PATH_MAX], folder[PATH_MAX];
  struct stat old;
  if (is_stdout(file)) return MD_OK;
  MD_TRY(md_follow_links(context, file->path, target));
  if (stat(target, &old) == 0) MD_TRY(check_old(context, file, &old, force));
  if (target[strlen(target) - 1] == '/')
    return md_fail(context, MD_INPUT, "%s must be a file, but %s is the name of a directory",
                   file->option, file->path);
  md_folder_of(target, folder);
  if (access(folder, W_OK | X_OK) == 0) return MD_OK;
  return md_fail(context, MD_ENVIRONMENT, "%s cannot be written: its folder %s: %s", file->path,
                 folder, strerror(errno));
}

/* What tells whether two names are one file: the file that is there, or the folder and the name
 * in it of one to be. */
typedef struct identity {
  dev_t device;
  ino_t inode;
  char base[NAME_MAX + 1]; /* empty: the file is there */
  size_t index;            /* among the files */
} identity;

/* *known: false where the folder is not there. */
static md_status identify(md_context *context, const md_named_file *file, identity *of,
                          bool *known) {
  static const char standard_output[] = "-";
  char target[PATH_MAX], folder[PATH_MAX];
  struct stat there;
  const char *base = standard_output;
  *known = true;
  if (is_stdout(file)) {
    there = (struct stat){0};
  } else {
    MD_TRY(md_follow_links(context, file->path, target));
    md_folder_of(target, folder);
    const char *slash = strrchr(target, '/');
    base = slash ? slash + 1 : target;
    if (stat(target, &there) == 0)
      base = "";
    else
      *known = stat(folder, &there) == 0;
  }
  of->device = there.st_dev;
  of->inode = there.st_ino;
  snprintf(of->base, sizeof of->base, "%.*s", NAME_MAX, base);
  return MD_OK;
}

static int in_order(const identity *a, const identity *b) {
  if (a->device != b->device) return a->device < b->device ? -1 : 1;
  if (a->inode != b->inode) return a->inode < b->inode ? -1 : 1;
  return strcmp(a->base, b->base);
}

static int by_identity(const void *a, const void *b) {
  const identity *x = a, *y = b;
  const int order = in_order(x, y);
  return order ? order : x->index < y->index ? -1 : 1;
}

/* Of those that are one file: none may be written. */
static md_status check_group(md_context *context, const md_named_file *files, const identity *of,
                             size_t count) {
  size_t out = 0;
  while (out < count && !is_output(&files[of[out].index])) out++;
  if (count < 2 || out == count) return MD_OK;
  const md_named_file *output = &files[of[out].index], *other = &files[of[out == 0].index];
  if (out == 0 && is_output(other)) { /* the later one stands last */
    const md_named_file *first = output;
    output = other;
    other = first;
  }
  const bool alike = strcmp(output->path, other->path) == 0;
  return md_fail(context, MD_INPUT,
                 "%s and %s must be different files, both are %s%s%s%s; give another name",
                 other->option, output->option, output->path, alike ? "" : " (",
                 alike ? "" : other->path, alike ? "" : ")");
}

static md_status check_different(md_context *context, const md_named_file *files, size_t count) {
  identity *of = malloc((count + 1) * sizeof *of);
  if (!of) return md_fail_memory(context, count * sizeof *of, "file names");
  size_t found = 0;
  md_status status = MD_OK;
  for (size_t i = 0; i < count && status == MD_OK; i++) {
    bool known = false;
    of[found].index = i;
    status = identify(context, &files[i], &of[found], &known);
    found += known;
  }
  qsort(of, found, sizeof *of, by_identity);
  for (size_t i = 0, next; i < found && status == MD_OK; i = next) {
    for (next = i + 1; next < found && in_order(&of[i], &of[next]) == 0;) next++;
    status = check_group(context, files, &of[i], next - i);
  }
  free(of);
  return status;
}

static md_status check_all(md_context *context, const md_named_file *files, size_t count,
                           bool force) {
  MD_TRY(check_different(context, files, count));
  for (size_t i = 0; i < count; i++)
    if (is_output(&files[i])) MD_TRY(check_place(context, &files[i], force));
  return MD_OK;
}

md_status md_outputs_check(md_context *context, const md_named_file *files, size_t count,
                           bool force) {
  return md_agree(context, context->rank == 0 ? check_all(context, files, count, force) : MD_OK);
}

md_status md_made_files_add(md_context *context, md_made_files *files, const char *option,
                            const char *path, md_file_use use) {
  if (files->count == files->room) {
    const size_t room = 2 * files->room + 16;
    md_named_file *more = realloc(files->file, room * sizeof *more);
    if (!more) return md_fail_memory(context, room * sizeof *more, "file names");
    files->file = more;
    files->room = room;
  }
  md_named_file *next = &files->file[files->count];
  *next = (md_named_file){.path = strdup(path), .use = use};
  if (!next->path) return md_fail_memory(context, strlen(path), "file names");
  snprintf(next->option, sizeof next->option, "%s", option);
  files->count++;
  return MD_OK;
}

void md_made_files_free(md_made_files *files) {
  for (size_t i = 0; i < files->count; i++) free((char *)files->file[i].path);
  free(files->file);
  *files = (md_made_files){0};
}
