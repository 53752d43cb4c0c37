#include "base/file.h"
#include "support.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Temporary files: exclusive, private, with permissions kept, and removed when their owner is
 * dead and only then. */

/* File systems that cannot rename to a new name in one step, and that have no second names. */
static bool no_new_names, no_links;

int renameat2(int from_folder, const char *from, int to_folder, const char *to,
              unsigned int flags) {
  if (!no_new_names) return (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
  errno = EINVAL;
  return -1;
}

int link(const char *from, const char *to) {
  if (!no_links) return (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
  errno = EPERM;
  return -1;
}

static char folder[] = "/tmp/minidirac-new-file-XXXXXX";
static const char target[] = "lattice.h5";

/* Entries of the folder whose name is longer than the target's and starts with it. */
static int temporaries(char name[NAME_MAX + 1]) {
  int count = 0;
  DIR *entries = opendir(".");
  for (const struct dirent *e = readdir(entries); e; e = readdir(entries))
    if (strncmp(e->d_name, target, strlen(target)) == 0 && e->d_name[strlen(target)]) {
      if (name) snprintf(name, NAME_MAX + 1, "%s", e->d_name);
      count++;
    }
  closedir(entries);
  return count;
}

static void put(md_context *context, const char *text) {
  MD_REQUIRE(context, md_write_file(context, target, text, strlen(text)));
}

static void require_content(const char *text) {
  char found[64] = "";
  FILE *file = fopen(target, "r");
  assert_non_null(file);
  assert_int_equal(fread(found, 1, sizeof found - 1, file), strlen(text));
  fclose(file);
  assert_string_equal(found, text);
}

/* A child that has a temporary open: it dies at once, or lives until it is killed. */
static pid_t owner(md_context *context, bool lives) {
  int ready[2];
  char byte;
  assert_int_equal(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    md_new_file file;
    const md_status status = md_new_file_begin(context, target, &file);
    if (write(ready[1], status == MD_OK ? "y" : "n", 1) != 1) _exit(1);
    while (lives) pause();
    _exit(0);
  }
  assert_int_equal(read(ready[0], &byte, 1), 1);
  assert_int_equal(byte, 'y');
  close(ready[0]);
  close(ready[1]);
  return child;
}

static void dead_owners_go(void **state) {
  const pid_t child = owner(*state, false);
  waitpid(child, NULL, 0);
  assert_int_equal(temporaries(NULL), 1);
  put(*state, "new");
  assert_int_equal(temporaries(NULL), 0);
}

static void unreaped_owners_go(void **state) {
  siginfo_t info;
  const pid_t child = owner(*state, false);
  waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
  put(*state, "new");
  assert_int_equal(temporaries(NULL), 0);
  waitpid(child, NULL, 0);
}

static void living_owners_stay(void **state) {
  const pid_t child = owner(*state, true);
  put(*state, "new");
  assert_int_equal(temporaries(NULL), 1);
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  put(*state, "newer");
  assert_int_equal(temporaries(NULL), 0);
  require_content("newer");
}

/* Of another machine, and of a pid that another process has by now. */
static void foreign_owners_stay(void **state) {
  char name[NAME_MAX + 1], other[2 * NAME_MAX];
  md_new_file file;
  md_context *context = *state;
  MD_REQUIRE(context, md_new_file_begin(context, target, &file));
  assert_int_equal(temporaries(name), 1);
  snprintf(other, sizeof other, "%s", name);
  char *digit = other + strlen(target) + 1;
  *digit = *digit == 'a' ? 'b' : 'a';
  assert_int_equal(rename(name, other), 0);
  assert_int_equal(md_new_file_end(context, &file, MD_OK), MD_ENVIRONMENT);
  put(context, "new");
  assert_int_equal(temporaries(NULL), 1);
  unlink(other);
  char *start = strchr(strchr(name, '-') + 1, '-') + 1;
  *start = *start == '1' ? '2' : '1';
  close(open(name, O_CREAT | O_WRONLY, 0600));
  snprintf(other, sizeof other, "%s.locktest.0", name); /* what MPI-IO makes beside it */
  close(open(other, O_CREAT | O_WRONLY, 0600));
  put(context, "new");
  assert_int_equal(temporaries(NULL), 0);
}

/* Names of others that only look alike. */
static void alike_names_stay(void **state) {
  static const char *const names[] = {"lattice.h5.partial", "lattice.h5.copy",
                                      "lattice.h5.1.partial", "lattice.h5.00000000-1-2-zz.partial"};
  for (int i = 0; i < 4; i++) close(open(names[i], O_CREAT | O_WRONLY, 0600));
  put(*state, "new");
  assert_int_equal(temporaries(NULL), 4);
  for (int i = 0; i < 4; i++) unlink(names[i]);
}

static void two_writers_succeed(void **state) {
  md_context *context = *state;
  md_new_file a, b;
  MD_REQUIRE(context, md_new_file_begin(context, target, &a));
  MD_REQUIRE(context, md_new_file_begin(context, target, &b));
  assert_string_not_equal(a.path, b.path);
  assert_int_equal(write(b.file, "b", 1), 1);
  assert_int_equal(write(a.file, "a", 1), 1);
  MD_REQUIRE(context, md_new_file_end(context, &b, MD_OK));
  MD_REQUIRE(context, md_new_file_end(context, &a, MD_OK));
  require_content("a");
  assert_int_equal(temporaries(NULL), 0);
}

/* Of a name that is to be new the first writer stays, and what the second wrote is kept. */
static void new_names_are_taken_once(void **state) {
  md_context *context = *state;
  for (int way = 0; way < 3; way++) {
    char kept[NAME_MAX + 1];
    md_new_file a, b;
    no_new_names = way > 0;
    no_links = way > 1;
    unlink(target);
    MD_REQUIRE(context, md_new_file_begin(context, target, &a));
    MD_REQUIRE(context, md_new_file_begin(context, target, &b));
    a.keep_old = b.keep_old = true;
    assert_int_equal(write(a.file, "a", 1), 1);
    assert_int_equal(write(b.file, "b", 1), 1);
    MD_REQUIRE(context, md_new_file_end(context, &b, MD_OK));
    assert_int_equal(md_new_file_end(context, &a, MD_OK), MD_ENVIRONMENT);
    require_content("b");
    assert_int_equal(temporaries(kept), 1);
    assert_non_null(strstr(context->message, kept));
    put(context, "c"); /* which removes what dead writers left, and not this */
    assert_int_equal(temporaries(NULL), 1);
    MD_REQUIRE(context, md_new_file_begin(context, target, &a)); /* once more: the last is kept */
    a.keep_old = true;
    assert_int_equal(write(a.file, "last", 4), 4);
    assert_int_equal(md_new_file_end(context, &a, MD_OK), MD_ENVIRONMENT);
    require_content("c");
    assert_int_equal(temporaries(kept), 1);
    assert_int_equal(rename(kept, target), 0);
    require_content("last");
  }
  no_new_names = no_links = false;
}

/* A name that cannot be opened: the name's fault, or the system's. */
static void failures_are_blamed(void **state) {
  md_context *context = *state;
  int64_t bytes;
  assert_int_equal(md_file_length(context, "none", &bytes), MD_INPUT);
  assert_int_equal(md_fail_open(context, "", "x", EACCES), MD_INPUT);
  static const int system[] = {EMFILE, ENFILE, ENOMEM, EIO, ESTALE};
  for (size_t i = 0; i < sizeof system / sizeof *system; i++)
    assert_int_equal(md_fail_open(context, "", "x", system[i]), MD_ENVIRONMENT);
  assert_int_equal(md_fail_open(context, "deck", "x", EMFILE), MD_ENVIRONMENT);
  assert_string_equal(context->message,
                      "deck x cannot be read: Too many open files; raise the limit (ulimit -n)");
}

static void failures_keep_the_old_file(void **state) {
  md_context *context = *state;
  md_new_file file;
  put(context, "old");
  MD_REQUIRE(context, md_new_file_begin(context, target, &file));
  assert_int_equal(write(file.file, "new", 3), 3);
  assert_int_equal(md_new_file_end(context, &file, MD_UNREACHED), MD_UNREACHED);
  require_content("old");
  assert_int_equal(temporaries(NULL), 0);
}

static void permissions_stay(void **state) {
  struct stat there;
  md_context *context = *state;
  md_new_file file;
  unlink(target);
  const mode_t mask = umask(027);
  put(context, "first");
  stat(target, &there);
  assert_int_equal(there.st_mode & 07777, 0640);
  chmod(target, 0600);
  umask(0);
  MD_REQUIRE(context, md_new_file_begin(context, target, &file));
  fstat(file.file, &there);
  assert_int_equal(there.st_mode & 07777, 0600); /* private before it is complete, too */
  MD_REQUIRE(context, md_new_file_end(context, &file, MD_OK));
  chmod(target, 0464);
  umask(077);
  put(context, "second");
  stat(target, &there);
  assert_int_equal(there.st_mode & 07777, 0464);
  umask(mask);
}

static void links_are_followed(void **state) {
  struct stat there;
  mkdir("far", 0700);
  unlink(target);
  assert_int_equal(symlink("far/file", target), 0);
  put(*state, "through"); /* a link to nothing makes its file */
  lstat(target, &there);
  assert_true(S_ISLNK(there.st_mode));
  require_content("through");
  unlink(target);
  unlink("far/file");
  rmdir("far");
  assert_int_equal(symlink(target, target), 0);
  assert_int_equal(md_write_file(*state, target, "x", 1), MD_INPUT);
  unlink(target);
}

static void names_are_not_empty(void **state) {
  const md_named_file file = {"OUT", "", MD_FILE_RESULT, NULL};
  assert_int_equal(md_write_file(*state, "", "x", 1), MD_INPUT);
  assert_int_equal(md_outputs_check(*state, &file, 1, true), MD_INPUT);
}

static int enter(void **state) {
  (void)state;
  return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int leave(void **state) {
  (void)state;
  unlink(target);
  return chdir("/") == 0 && rmdir(folder) == 0 ? 0 : -1;
}

int main(void) {
  static md_context context = {.ranks = 1, .threads = 1}; /* one process without MPI */
  struct CMUnitTest tests[] = {cmocka_unit_test(dead_owners_go),
                               cmocka_unit_test(unreaped_owners_go),
                               cmocka_unit_test(living_owners_stay),
                               cmocka_unit_test(foreign_owners_stay),
                               cmocka_unit_test(alike_names_stay),
                               cmocka_unit_test(two_writers_succeed),
                               cmocka_unit_test(new_names_are_taken_once),
                               cmocka_unit_test(failures_are_blamed),
                               cmocka_unit_test(failures_keep_the_old_file),
                               cmocka_unit_test(permissions_stay),
                               cmocka_unit_test(links_are_followed),
                               cmocka_unit_test(names_are_not_empty)};
  for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) tests[i].initial_state = &context;
  return cmocka_run_group_tests(tests, enter, leave);
}
