#include "base/output.h"
#include "base/file.h"

#include <errno.h>
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

/* The same file through any path, or one name to be in the same folder. */
static md_status are_same(md_context *context, const md_named_file *a, const md_named_file *b,
                          bool *same) {
  char target[2][PATH_MAX], folder[2][PATH_MAX];
  const char *base[2];
  struct stat there[2], home[2];
  bool is_there[2];
  *same = is_stdout(a) && is_stdout(b);
  if (is_stdout(a) || is_stdout(b)) return MD_OK;
  for (int i = 0; i < 2; i++) {
    MD_TRY(md_follow_links(context, i ? b->path : a->path, target[i]));
    md_folder_of(target[i], folder[i]);
    const char *slash = strrchr(target[i], '/');
    base[i] = slash ? slash + 1 : target[i];
    is_there[i] = stat(target[i], &there[i]) == 0;
    if (stat(folder[i], &home[i]) != 0) return MD_OK;
  }
  if (is_there[0] && is_there[1])
    *same = there[0].st_dev == there[1].st_dev && there[0].st_ino == there[1].st_ino;
  else if (!is_there[0] && !is_there[1])
    *same = home[0].st_dev == home[1].st_dev && home[0].st_ino == home[1].st_ino &&
            strcmp(base[0], base[1]) == 0;
  return MD_OK;
}

static md_status check_all(md_context *context, const md_named_file *files, int count, bool force) {
  for (int i = 0; i < count; i++)
    for (int k = 0; is_output(&files[i]) && k < count; k++) {
      bool same = false;
      if (k == i || (is_output(&files[k]) && k > i)) continue;
      MD_TRY(are_same(context, &files[i], &files[k], &same));
      if (same)
        return md_fail(context, MD_INPUT, "%s and %s must be different files, both are %s",
                       files[k].option, files[i].option, files[i].path);
    }
  for (int i = 0; i < count; i++)
    if (is_output(&files[i])) MD_TRY(check_place(context, &files[i], force));
  return MD_OK;
}

md_status md_outputs_check(md_context *context, const md_named_file *files, int count, bool force) {
  return md_agree(context, context->rank == 0 ? check_all(context, files, count, force) : MD_OK);
}
