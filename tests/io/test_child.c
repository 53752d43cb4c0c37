#include "hdf5_layouts.h"
#include "io/child.h"
#include "io/modes_file.h"
#include "io/propagator.h"
#include "io_support.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The process that reads an HDF5 file: it is started, not forked, and nothing of it stays. */

static bool forked;
static void note_fork(void) {
  forked = true;
}

static void make_lattice(md_context *context, char path[256]) {
  io_test_name(context, ".child.h5", path, 256);
  for (int i = 0; i < hdf5_layout_count; i++)
    if (hdf5_layout_at(i).good) {
      assert_true(hdf5_layout_write(i, path));
      return;
    }
  fail_msg("no layout is good");
}

static md_status load(md_context *context, const char *path) {
  const int grid[MD_DIMS] = {0};
  md_geometry *geometry = NULL;
  md_gauge gauge;
  md_lattice_info info;
  const md_status status = md_lattice_load(context, path, grid, false, &geometry, &gauge, &info);
  if (status == MD_OK) {
    md_gauge_destroy(&gauge);
    md_geometry_destroy(geometry);
  }
  md_lattice_info_destroy(&info);
  return status;
}

/* Whatever reads: lattices, checkpoints, results and modes. */
static void nothing_forks(void **state) {
  md_context *context = *state;
  char path[256];
  double value = 2.5, values[3] = {1, 2, 3};
  md_field field;
  md_modes_info info;
  const md_named_field named = {"x", &field};
  const md_array array = {.name = "a", .rank = 1, .extent = {3}, .data = values};
  const md_attribute attribute = {"value", MD_ATTRIBUTE_REAL, 1, &value};
  make_lattice(context, path);
  assert_int_equal(pthread_atfork(note_fork, NULL, NULL), 0);
  MD_REQUIRE(context, load(context, path));
  assert_int_equal(md_modes_describe(context, path, &info), MD_INPUT);
  MD_REQUIRE(context, md_arrays_write(context, path, false, "g", &array, 1, &attribute, 1));
  value = values[2] = 0;
  MD_REQUIRE(context, md_arrays_read(context, path, "g", &array, 1, &attribute, 1));
  assert_true(value == 2.5 && values[2] == 3);
  md_geometry *geometry = md_test_geometry(context, 4, 2, 2, 2, false);
  md_test_random_field(context, geometry, MD_DOUBLE, 1, MD_EVEN, 3, &field);
  MD_REQUIRE(context, md_checkpoint_write(context, path, &named, 1, &attribute, 1));
  MD_REQUIRE(context, md_checkpoint_read(context, path, geometry, &named, 1, &attribute, 1));
  md_field_destroy(&field);
  md_geometry_destroy(geometry);
  io_test_remove(context, path);
  assert_false(forked);
  const pid_t child = fork(); /* it would have been seen */
  if (child == 0) _exit(0);
  assert_int_equal(waitpid(child, NULL, 0), child);
  assert_true(forked);
}

/* Entries of a folder whose names have the text and that have changed since then: a process that
 * was killed long ago may have had the same number and left a file. */
static int entries(const char *folder, const char *text, time_t since) {
  int count = 0;
  struct stat entry;
  DIR *list = opendir(folder);
  assert_non_null(list);
  for (const struct dirent *one = readdir(list); one; one = readdir(list))
    count += strstr(one->d_name, text) &&
             fstatat(dirfd(list), one->d_name, &entry, AT_SYMLINK_NOFOLLOW) == 0 &&
             entry.st_ctime >= since;
  closedir(list);
  return count;
}

/* No descriptor, no process, and no file that its libraries would have named by its number. */
static void nothing_stays(void **state) {
  md_context *context = *state;
  char path[256], number[32];
  md_child child;
  const md_child_request request = {.what = MD_CHILD_DESCRIBE_LINKS};
  make_lattice(context, path);
  MD_REQUIRE(context, load(context, path)); /* what is opened once is open now */
  const int before = entries("/proc/self/fd", "", 0);
  const time_t begin = time(NULL);
  MD_REQUIRE(context, md_child_start(context, path, sizeof(md_h5_described), &child));
  MD_REQUIRE(context, md_child_ask(context, &child, &request));
  snprintf(number, sizeof number, "_%ld_", (long)child.process);
  md_child_stop(&child);
  assert_int_equal(entries("/proc/self/fd", "", 0), before);
  assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
  assert_int_equal(errno, ECHILD);
  assert_int_equal(entries("/dev/shm", number, begin), 0);
  io_test_remove(context, path);
}

static int find_hdf5(struct dl_phdr_info *info, size_t bytes, void *name) {
  const char *last = strrchr(info->dlpi_name, '/');
  (void)bytes;
  if (!last || !strstr(last, "libhdf5")) return 0;
  snprintf(name, 128, "%s", last + 1);
  return 1;
}

/* A reader that cannot begin is no fault of the file: here its library is an empty file. */
static void file_is_not_blamed(void **state) {
  md_context *context = *state;
  char path[256], name[128] = "", folder[] = "minidirac_child_XXXXXX", library[256];
  const char *before = getenv("LD_LIBRARY_PATH");
  char *kept = before ? strdup(before) : NULL;
  if (!dl_iterate_phdr(find_hdf5, name)) skip(); /* linked statically */
  make_lattice(context, path);
  assert_non_null(mkdtemp(folder));
  snprintf(library, sizeof library, "%s/%s", folder, name);
  fclose(fopen(library, "w"));
  setenv("LD_LIBRARY_PATH", folder, 1);
  assert_int_equal(load(context, path), MD_ENVIRONMENT);
  if (kept)
    setenv("LD_LIBRARY_PATH", kept, 1);
  else
    unsetenv("LD_LIBRARY_PATH");
  free(kept);
  unlink(library);
  rmdir(folder);
  if (!strstr(context->message, "did not begin")) fail_msg("message '%s'", context->message);
  MD_REQUIRE(context, load(context, path));
  io_test_remove(context, path);
}

/* Nor are descriptors that have run out, wherever they do. */
static void limits_are_not_blamed_on_it(void **state) {
  md_context *context = *state;
  char path[256];
  int refused = 0, read = 0, told = 0;
  struct rlimit limit, lower;
  const md_child_request request = {.what = MD_CHILD_DESCRIBE_LINKS};
  make_lattice(context, path);
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
  lower = limit;
  for (lower.rlim_cur = 3; lower.rlim_cur < 64; lower.rlim_cur++) {
    md_child child;
    context->message[0] = 0;
    setrlimit(RLIMIT_NOFILE, &lower);
    md_status status = md_child_start(context, path, sizeof(md_h5_described), &child);
    if (status == MD_OK) status = md_child_ask(context, &child, &request);
    md_child_stop(&child);
    setrlimit(RLIMIT_NOFILE, &limit);
    if (status == MD_INPUT) fail_msg("%d files: %s", (int)lower.rlim_cur, context->message);
    refused += status == MD_ENVIRONMENT;
    told += strstr(context->message, "Too many open files; raise the limit") != NULL;
    read += status == MD_OK;
  }
  assert_true(refused > 0 && read > 0 && told > 0);
  io_test_remove(context, path);
}

/* A file that cannot be opened is told from one that the library does not take: here it has gone
 * since its length was looked at. */
static void reason_is_told(void **state) {
  md_context *context = *state;
  char path[256];
  md_child child;
  const md_child_request request = {.what = MD_CHILD_DESCRIBE_LINKS};
  make_lattice(context, path);
  MD_REQUIRE(context, md_child_start(context, path, sizeof(md_h5_described), &child));
  io_test_remove(context, path);
  assert_int_equal(md_child_ask(context, &child, &request), MD_INPUT);
  if (!strstr(context->message, "cannot be read: No such file"))
    fail_msg("message '%s'", context->message);
  md_child_stop(&child);
}

static struct CMUnitTest tests[] = {
    cmocka_unit_test(nothing_forks), cmocka_unit_test(nothing_stays),
    cmocka_unit_test(file_is_not_blamed), cmocka_unit_test(limits_are_not_blamed_on_it),
    cmocka_unit_test(reason_is_told)};
MD_RUN_TESTS(tests)
