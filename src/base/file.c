#include "base/file.h"
#include "base/text.h"
#include "base/waiting.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { LINKS_MOST = 40, PERMISSIONS = 07777, NAME_TAIL = 64 };
static const char suffix[] = ".partial";

/* Who wrote a temporary: its name says so. */
typedef struct owner {
  uint32_t machine;
  long pid;
  uint64_t start; /* of the process, ticks since boot */
} owner;

void md_files_hold_standard(void) {
  for (int file = 0; file <= 2; file++) /* open takes the lowest number that is free */
    if (fcntl(file, F_GETFD) < 0) (void)!open("/dev/null", file == 0 ? O_WRONLY : O_RDONLY);
}

void md_folder_of(const char *path, char folder[PATH_MAX]) {
  const char *slash = strrchr(path, '/');
  const size_t length = slash ? (size_t)(slash - path) : 0;
  if (!slash)
    strcpy(folder, ".");
  else if (length == 0)
    strcpy(folder, "/");
  else
    snprintf(folder, PATH_MAX, "%.*s", (int)length, path);
}

const char *md_file_kind(mode_t mode) {
  return S_ISDIR(mode)    ? "a directory"
         : S_ISFIFO(mode) ? "a pipe"
         : S_ISSOCK(mode) ? "a socket"
                          : "a device";
}

md_status md_file_length(md_context *context, const char *path, int64_t *bytes) {
  struct stat there;
  *bytes = 0;
  if (stat(path, &there) != 0) return md_fail_open(context, "", path, errno);
  if (!S_ISREG(there.st_mode))
    return md_fail(context, MD_INPUT, "%s must be a file, it is %s", path,
                   md_file_kind(there.st_mode));
  *bytes = (int64_t)there.st_size;
  return MD_OK;
}

static md_status too_long(md_context *context, const char *path) {
  return md_fail(context, MD_INPUT, "a path must be shorter than %d bytes, got %zu: %.60s...",
                 PATH_MAX, strlen(path), path);
}

/* The last part of a name that is written needs room for what the name of its temporary adds. */
static md_status check_length(md_context *context, const char *target) {
  const char *base = md_base_of(target);
  if (!*target)
    return md_fail(context, MD_INPUT, "a file to write must have a name, got an empty one");
  if (strlen(base) + NAME_TAIL > NAME_MAX)
    return md_fail(context, MD_INPUT,
                   "the name of a file to write must have at most %d bytes, got %zu: %.60s...; "
                   "give a shorter one",
                   NAME_MAX - NAME_TAIL, strlen(base), base);
  return strlen(target) + NAME_TAIL < PATH_MAX ? MD_OK : too_long(context, target);
}

/* Names there, and in /dev/fd, which leads there, stand for files that are open: what their links
 * read may be no name. */
static bool is_in_proc(const char *path) {
  char folder[PATH_MAX];
  struct statfs of;
  md_folder_of(path, folder);
  return statfs(folder, &of) == 0 && of.f_type == PROC_SUPER_MAGIC;
}

md_status md_follow_links(md_context *context, const char *path, char target[PATH_MAX]) {
  char link[PATH_MAX], folder[PATH_MAX];
  if ((size_t)snprintf(target, PATH_MAX, "%s", path) >= PATH_MAX) return too_long(context, path);
  for (int i = 0; i < LINKS_MOST; i++) {
    const ssize_t length = readlink(target, link, sizeof link - 1);
    if (length < 0 || is_in_proc(target)) return MD_OK; /* no link: a file, or nothing yet */
    link[length] = '\0';
    md_folder_of(target, folder);
    const int whole = *link == '/' ? snprintf(target, PATH_MAX, "%s", link)
                                   : snprintf(target, PATH_MAX, "%s/%s", folder, link);
    if (whole >= PATH_MAX) return too_long(context, path);
  }
  return md_fail(context, MD_INPUT, "%s: more than %d symbolic links lead from one to the next",
                 path, LINKS_MOST);
}

/* Start time of a process; 0 when there is none of that pid, or only a zombie. */
static uint64_t start_of(long pid) {
  char name[64], text[1024];
  snprintf(name, sizeof name, "/proc/%ld/stat", pid);
  FILE *file = fopen(name, "r");
  if (!file) return 0;
  const size_t bytes = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[bytes] = '\0';
  /* The second field is the program's name in parentheses, whatever is in it; start is the 22nd. */
  const char *at = strrchr(text, ')');
  if (at && strchr("ZX", at[2])) return 0;
  for (int field = 2; at && field < 22; field++) at = strchr(at + 1, ' ');
  return at ? strtoull(at, NULL, 10) : 0;
}

static uint32_t hash(uint32_t sum, const char *text) {
  for (; *text; text++) sum = (sum ^ (unsigned char)*text) * 16777619u; /* FNV-1a */
  return sum;
}

/* Processes see each other's pids when host, boot and pid namespace are the same. */
static owner self(void) {
  char host[256] = "", names[256] = "", boot[64];
  gethostname(host, sizeof host - 1);
  if (readlink("/proc/self/ns/pid", names, sizeof names - 1) < 0) *names = '\0';
  md_line_in("/proc/sys/kernel/random/boot_id", boot, sizeof boot);
  const uint32_t machine = hash(hash(hash(2166136261u, host), names), boot);
  const long pid = (long)getpid();
  return (owner){hash(machine, *boot ? "\n" : ""), pid, start_of(pid)};
}

/* The owner of the temporary `name` of a target called `base`, or of a file that MPI-IO made beside
 * it (NAME.locktest.0); false when it is no such name. */
static bool read_owner(const char *name, const char *base, owner *of) {
  const size_t length = strlen(base);
  int used = 0;
  if (strncmp(name, base, length) != 0 || name[length] != '.') return false;
  const char *tail = name + length + 1;
  if (sscanf(tail, "%8" SCNx32 "-%ld-%" SCNx64 "-%*[0-9a-f]%n", &of->machine, &of->pid, &of->start,
             &used) != 3 ||
      used == 0)
    return false;
  const char *end = tail + used;
  if (strncmp(end, suffix, sizeof suffix - 1) != 0) return false;
  return strchr(".", end[sizeof suffix - 1]) != NULL; /* '\0', or a '.' */
}

static void remove_stale(const char *target, const owner *me) {
  char folder[PATH_MAX];
  const char *base = md_base_of(target);
  md_folder_of(target, folder);
  DIR *entries = opendir(folder);
  if (!entries) return;
  for (const struct dirent *entry = readdir(entries); entry; entry = readdir(entries)) {
    owner of;
    if (read_owner(entry->d_name, base, &of) && of.machine == me->machine && of.start != 0 &&
        of.pid > 0 && start_of(of.pid) != of.start)
      unlinkat(dirfd(entries), entry->d_name, 0);
  }
  closedir(entries);
}

/* Rank 0. */
static md_status create(md_context *context, const char *path, md_new_file *file) {
  struct stat there;
  MD_TRY(md_follow_links(context, path, file->target));
  MD_TRY(check_length(context, file->target));
  const bool old = stat(file->target, &there) == 0;
  if (old && !S_ISREG(there.st_mode))
    return md_fail(context, MD_INPUT, "%s must be a file, it is %s", path,
                   md_file_kind(there.st_mode));
  const owner me = self();
  remove_stale(file->target, &me);
  for (int attempt = 0; attempt < 16 && file->file < 0; attempt++) {
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, 0) != sizeof random)
      return md_fail(context, MD_ENVIRONMENT, "%s: no random name could be had: %m", path);
    const int length =
        snprintf(file->path, PATH_MAX, "%s.%08" PRIx32 "-%ld-%" PRIx64 "-%012" PRIx64 "%s",
                 file->target, me.machine, me.pid, me.start, random >> 16, suffix);
    if (length >= PATH_MAX) return too_long(context, path);
    /* Nobody may read more of the new file than of the old one, not even before it is complete. */
    file->file = open(file->path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                      old ? (there.st_mode & 0777) | 0600 : 0666);
    if (file->file < 0 && errno != EEXIST) break;
  }
  if (file->file < 0 || (!old && fstat(file->file, &there) != 0))
    return md_fail(context, MD_ENVIRONMENT, "%s cannot be created: %m", path);
  file->mode = there.st_mode & PERMISSIONS;
  return MD_OK;
}

/* The rename itself is durable only when the folder is flushed too. */
static void flush_folder(const char *path) {
  char name[PATH_MAX];
  md_folder_of(path, name);
  const int folder = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  (void)fsync(folder);
  close(folder);
}

/* True when the temporary's name is still that of the file that was created. */
static bool is_ours(const md_new_file *file) {
  struct stat named, held;
  return lstat(file->path, &named) == 0 && fstat(file->file, &held) == 0 &&
         named.st_dev == held.st_dev && named.st_ino == held.st_ino;
}

/* Gives the temporary its name where no file has it, in one step. File systems that cannot (NFS,
 * Lustre) refuse a second name that is there; over a network that may be the one just given. */
static int rename_new(const md_new_file *file) {
  struct stat named, held;
  if (renameat2(AT_FDCWD, file->path, AT_FDCWD, file->target, RENAME_NOREPLACE) == 0) return 0;
  if (errno == EEXIST) return -1;
  if (link(file->path, file->target) != 0) {
    if (errno != EEXIST) /* no second names here: nearly one step */
      return access(file->target, F_OK) != 0 ? rename(file->path, file->target)
                                             : (errno = EEXIST, -1);
    const bool given = lstat(file->path, &held) == 0 && lstat(file->target, &named) == 0 &&
                       named.st_dev == held.st_dev && named.st_ino == held.st_ino;
    errno = EEXIST;
    if (!given) return -1;
  }
  return unlink(file->path);
}

/* Another has taken the name: what was written stays under one that nobody removes, the same for
 * all that this process writes, of which the last stays: a study tries again after each lattice. */
static md_status keep_aside(md_context *context, const md_new_file *file) {
  char aside[PATH_MAX];
  const ptrdiff_t stem = strrchr(file->path, '-') - file->path; /* without the random part */
  snprintf(aside, sizeof aside, "%.*s.kept", (int)stem, file->path);
  const bool renamed = rename(file->path, aside) == 0;
  flush_folder(file->path);
  return md_fail(context, MD_ENVIRONMENT,
                 "%s was made by another program meanwhile and stays; what this run wrote is %s",
                 file->target, renamed ? aside : file->path);
}

/* Rank 0: ends with the file renamed, or removed and the reason recorded. */
static md_status commit(md_context *context, md_new_file *file) {
  const char *step = NULL;
  const bool ours = is_ours(file);
  errno = ESTALE;
  if (!ours)
    step = "found again";
  else if (fchmod(file->file, file->mode) != 0 || fsync(file->file) != 0)
    step = "flushed to disk";
  int reason = errno;
  if (close(file->file) != 0 && !step) {
    step = "closed";
    reason = errno;
  }
  file->file = -1;
  if (!step && (file->keep_old ? rename_new(file) : rename(file->path, file->target)) != 0) {
    step = "renamed";
    reason = errno;
    if (file->keep_old && reason == EEXIST) return keep_aside(context, file);
  }
  if (!step) {
    flush_folder(file->target);
    return MD_OK;
  }
  if (ours) unlink(file->path);
  return md_fail(context, MD_ENVIRONMENT, "%s cannot be written: its temporary %s cannot be %s: %s",
                 file->target, file->path, step, strerror(reason));
}

static void discard(md_new_file *file) {
  if (file->file < 0) return;
  if (is_ours(file)) unlink(file->path);
  close(file->file);
  file->file = -1;
}

md_status md_new_file_begin(md_context *context, const char *path, md_new_file *file) {
  *file = (md_new_file){.file = -1};
  const md_status status = context->rank == 0 ? create(context, path, file) : MD_OK;
  const md_status agreed = md_agree(context, status);
  if (agreed != MD_OK) discard(file);
  MD_TRY(agreed);
  md_broadcast(context, file->target, sizeof file->target);
  md_broadcast(context, file->path, sizeof file->path);
  return MD_OK;
}

md_status md_new_file_end(md_context *context, md_new_file *file, md_status status) {
  status = md_agree(context, status);
  if (context->rank == 0 && status == MD_OK)
    status = commit(context, file);
  else
    discard(file);
  return md_agree(context, status);
}

static md_status write_all(md_context *context, const char *path, int file, const char *data,
                           size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    const ssize_t part = write(file, data + done, bytes - done);
    if (part < 0 && errno == EINTR) continue;
    if (part <= 0) return md_fail(context, MD_ENVIRONMENT, "%s cannot be written: %m", path);
    done += (size_t)part;
  }
  return MD_OK;
}

md_status md_write_file(md_context *context, const char *path, const void *data, size_t bytes) {
  md_new_file file = {.file = -1};
  md_status status = create(context, path, &file);
  if (status == MD_OK) status = write_all(context, path, file.file, data, bytes);
  if (status == MD_OK) return commit(context, &file);
  discard(&file);
  return status;
}

static bool is_output(const md_named_file *file) {
  return file->use >= MD_FILE_REPORT;
}

static bool is_stdout(const md_named_file *file) {
  return file->use == MD_FILE_REPORT && strcmp(file->path, "-") == 0;
}

bool md_begins_as_report(const char *head) {
  const size_t line = strspn(head, "abcdefghijklmnopqrstuvwxyz0123456789_,LM");
  return head[0] == '{' || (line > 0 && head[line] == '\n' && memchr(head, ',', line));
}

/* What no report and no table may replace: all but those, and files without a byte. One that
 * cannot be read may hold anything. */
static bool holds_data(const char *path) {
  char head[MD_REPORT_HEAD + 1] = "";
  FILE *file = fopen(path, "rb");
  if (!file) return true;
  const size_t bytes = fread(head, 1, MD_REPORT_HEAD, file);
  fclose(file);
  return bytes > 0 && (strlen(head) != bytes || !md_begins_as_report(head));
}

static md_status check_old(md_context *context, const md_named_file *file, const char *target,
                           const struct stat *old, bool force) {
  const bool report = file->use == MD_FILE_REPORT, whole = S_ISREG(old->st_mode);
  if (!whole || is_in_proc(target)) /* a rename would leave the open file as it is */
    return md_fail(context, MD_INPUT, "%s must be a file, but %s is %s%s", file->option, file->path,
                   whole ? "a descriptor" : md_file_kind(old->st_mode),
                   report ? "; '-' is standard output" : "");
  if (file->use == MD_FILE_RESULT && !force)
    return md_fail(context, MD_INPUT,
                   "%s replaces no file, but %s is there; add %s or give another name",
                   file->option, file->path, file->force ? file->force : "--force");
  if (report && holds_data(file->path))
    return md_fail(context, MD_INPUT,
                   "%s replaces reports and tables alone, but %s holds other data; give another "
                   "name",
                   file->option, file->path);
  if (access(file->path, W_OK) != 0)
    return md_fail(context, MD_ENVIRONMENT, "%s cannot be written: %m", file->path);
  return MD_OK;
}

static md_status check_place(md_context *context, const md_named_file *file, bool force) {
  char target[PATH_MAX], folder[PATH_MAX];
  struct stat old;
  if (is_stdout(file)) return MD_OK;
  if (strcmp(file->path, "-") == 0)
    return md_fail(context, MD_INPUT,
                   "%s must be a file: '-' is standard output, which takes reports alone; give a "
                   "file name",
                   file->option);
  MD_TRY(md_follow_links(context, file->path, target));
  MD_TRY(check_length(context, target));
  if (stat(target, &old) == 0) MD_TRY(check_old(context, file, target, &old, force));
  if (target[strlen(target) - 1] == '/')
    return md_fail(context, MD_INPUT, "%s must be a file, but %s is the name of a directory",
                   file->option, file->path);
  md_folder_of(target, folder);
  if (stat(folder, &old) == 0 ? !S_ISDIR(old.st_mode) : errno == ENOTDIR)
    return md_fail(context, MD_INPUT, "%s must lie in a folder, but %s is none; give another name",
                   file->path, folder);
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
  char target[PATH_MAX], folder[PATH_MAX];
  struct stat there;
  const char *base = "-";
  *known = true;
  if (is_stdout(file)) {
    there = (struct stat){0};
  } else {
    MD_TRY(md_follow_links(context, file->path, target));
    md_folder_of(target, folder);
    base = md_base_of(target);
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
  if (out == 0 && is_output(&files[of[1].index])) out = 1; /* the later one stands last */
  const md_named_file *output = &files[of[out].index], *other = &files[of[out == 0].index];
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
