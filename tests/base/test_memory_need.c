#include "base/memory.h"
#include "base/memory_need.h"
#include "base/waiting.h"
#include "support.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* What is available, read from made-up trees of /proc and /sys: the tightest limit counts, of
 * whichever group of whichever version. */

static char root[PATH_MAX];

static void put(const char *name, const char *text) {
  char path[2 * PATH_MAX];
  snprintf(path, sizeof path, "%s%s", root, name);
  for (char *slash = strchr(path + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    mkdir(path, 0700);
    *slash = '/';
  }
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

static int begin(void **state) {
  (void)state;
  snprintf(root, sizeof root, "/tmp/minidirac-memory-XXXXXX");
  if (!mkdtemp(root)) return -1;
  put("/proc/meminfo", "MemTotal:  9000 kB\nMemFree: 1 kB\nMemAvailable:    1000 kB\n");
  return 0;
}

static int end(void **state) {
  char command[PATH_MAX + 16];
  (void)state;
  snprintf(command, sizeof command, "rm -r '%s'", root);
  return system(command);
}

static void expect(int64_t bytes, const char *limit) {
  md_memory_available found;
  md_memory_look(root, &found);
  assert_int_equal(found.host, bytes);
  assert_string_equal(found.limit, limit);
}

static void without_groups(void **state) {
  (void)state;
  expect(1024000, "MemAvailable");
  put("/proc/self/cgroup", "0::/not/there\n9:name=systemd:/\nrubbish\n");
  expect(1024000, "MemAvailable");
}

static void version_2_and_its_ancestors(void **state) {
  (void)state;
  put("/proc/self/cgroup", "0::/job/step\n");
  put("/sys/fs/cgroup/job/step/memory.max", "max\n");
  put("/sys/fs/cgroup/job/step/memory.current", "5\n");
  expect(1024000, "MemAvailable");
  put("/sys/fs/cgroup/job/memory.max", "500000\n");
  put("/sys/fs/cgroup/job/memory.current", "300000\n");
  put("/sys/fs/cgroup/job/memory.stat", "anon 100\nfile 900\ninactive_file 1000\nactive_file 20\n");
  expect(201020, "/sys/fs/cgroup/job/memory.max");
  put("/sys/fs/cgroup/job/step/memory.max", "100\n");
  expect(95, "/sys/fs/cgroup/job/step/memory.max");
  put("/sys/fs/cgroup/job/step/memory.current", "500\n"); /* over its limit: nothing, not less */
  expect(0, "/sys/fs/cgroup/job/step/memory.max");
}

static void version_1(void **state) {
  (void)state;
  put("/proc/self/cgroup", "5:cpuset:/other\n4:hugetlb,memory:/job\n3:memoryless:/x\n");
  put("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712\n");
  put("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "1\n");
  expect(1024000, "MemAvailable");
  /* Read a moment later, the cache can be more than the usage. */
  put("/sys/fs/cgroup/memory/job/memory.stat", "total_inactive_file 9000\n");
  expect(1024000, "MemAvailable");
  put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1000\n");
  put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "900\n");
  put("/sys/fs/cgroup/memory/memory.stat", "inactive_file 7\ntotal_inactive_file 50\n");
  expect(150, "/sys/fs/cgroup/memory/memory.limit_in_bytes");
}

/* A container sees its own group as the mount, though its name is one of the host. */
static void hidden_names(void **state) {
  (void)state;
  put("/proc/self/cgroup", "0::/docker/1234\n");
  put("/sys/fs/cgroup/memory.max", "1000\n");
  put("/sys/fs/cgroup/memory.current", "400\n");
  expect(600, "/sys/fs/cgroup/memory.max");
}

/* Of version 1 only the group of the cpu controller has a quota of this process. */
static void cores_of_version_1(void **state) {
  md_cores cores;
  (void)state;
  put("/proc/self/cgroup", "9:memory:/a\n4:cpu,cpuacct:/b\n");
  put("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "100000\n");
  put("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
  md_cores_look(root, &cores);
  assert_int_equal(cores.quota, INT_MAX);
  put("/sys/fs/cgroup/cpu/b/cpu.cfs_quota_us", "300000\n");
  put("/sys/fs/cgroup/cpu/b/cpu.cfs_period_us", "100000\n");
  md_cores_look(root, &cores);
  assert_int_equal(cores.quota, 3);
}

static void limit_of_the_process(void **state) {
  md_memory_available found;
  struct rlimit old, low;
  (void)state;
  getrlimit(RLIMIT_AS, &old);
  low = old;
  low.rlim_cur = (rlim_t)1 << 42;
  assert_int_equal(setrlimit(RLIMIT_AS, &low), 0);
  md_memory_look(root, &found);
  setrlimit(RLIMIT_AS, &old);
  assert_true(found.process < (int64_t)1 << 42);
  assert_true(found.process > (int64_t)1 << 40);
}

static void refusals_name_both_numbers(void **state) {
  static md_context context = {.ranks = 1};
  const md_memory_need none = {.host = 1 << 20}, all = {.host = (int64_t)1 << 50};
  (void)state;
  assert_int_equal(md_memory_require(&context, &none, "little"), MD_OK);
  assert_int_equal(md_memory_require(&context, &all, "much"), MD_ENVIRONMENT);
  assert_non_null(
      strstr(context.message, "much needs 1125899.907 GB of memory for 1 rank of host"));
  assert_non_null(strstr(context.message, "available are"));
  assert_int_equal(context.host_need, (int64_t)1 << 50);
}

static md_status allocate_one(md_context *context, void *user) {
  void *memory;
  (void)user;
  return md_allocate(context, 128, "one", &memory);
}

/* Allocates beside what stays: two, then one in their place; a dry run in it is not part of it. */
static md_status allocate_in_turn(md_context *context, void *user) {
  void *memory;
  MD_TRY(md_allocate(context, (size_t)1 << 50, "what stays", &memory));
  assert_null(memory);
  const md_memory_need mark = md_memory_mark(context);
  for (int k = 0; k < 2; k++) MD_TRY(md_allocate(context, 6400, "two", &memory));
  md_memory_return_to(context, mark);
  MD_TRY(md_allocate(context, 64, "one", &memory));
  md_memory_need inner;
  MD_TRY(md_memory_foresee(context, allocate_one, NULL, &inner));
  assert_int_equal(inner.host, 128);
  assert_true(context->quiet);
  assert_int_equal(md_memory_mark(context).host, mark.host + 64);
  assert_int_equal(md_memory_require(context, &mark, "a part"), MD_OK);
  md_count_memory(context, (md_memory_need){.device = 5});
  return *(md_status *)user;
}

/* A dry run counts what is there at once, hands out nothing and refuses nothing. */
static void dry_runs_count(void **state) {
  static md_context context = {.ranks = 1};
  md_memory_need need = {0};
  md_status ends = MD_OK;
  void *memory = NULL;
  (void)state;
  assert_int_equal(md_memory_foresee(&context, allocate_in_turn, &ends, &need), MD_OK);
  assert_int_equal(need.host, ((int64_t)1 << 50) + 2 * 6400);
  assert_int_equal(need.device, 5);
  ends = MD_INPUT;
  assert_int_equal(md_memory_foresee(&context, allocate_in_turn, &ends, &need), MD_INPUT);
  assert_false(md_counts(&context));
  assert_false(context.quiet);
  assert_int_equal(md_memory_mark(&context).host, 0);
  assert_int_equal(md_allocate(&context, 64, "memory", &memory), MD_OK);
  assert_non_null(memory);
  free(memory);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(without_groups, begin, end),
      cmocka_unit_test_setup_teardown(version_2_and_its_ancestors, begin, end),
      cmocka_unit_test_setup_teardown(version_1, begin, end),
      cmocka_unit_test_setup_teardown(hidden_names, begin, end),
      cmocka_unit_test_setup_teardown(cores_of_version_1, begin, end),
      cmocka_unit_test_setup_teardown(limit_of_the_process, begin, end),
      cmocka_unit_test(dry_runs_count),
      cmocka_unit_test(refusals_name_both_numbers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
