#include "base/memory_need.h"
#include "base/device.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* The number behind `key` (at the start of a line), in its unit; -1 when there is none. Without a
 * key: the first number of the file. */
static int64_t number_in(const char *file_name, const char *key) {
  char line[512];
  int64_t value = -1;
  const size_t length = key ? strlen(key) : 0;
  FILE *file = fopen(file_name, "r");
  while (file && value < 0 && fgets(line, sizeof line, file)) {
    char *end;
    if (key && (strncmp(line, key, length) != 0 || !strchr(" :\t", line[length]))) continue;
    const char *start = line + length + (key != NULL);
    const long long number = strtoll(start, &end, 10);
    if (end == start) break; /* "max" */
    value = number;
  }
  if (file) fclose(file);
  return value;
}

/* The names of one version of control groups. */
typedef struct cgroup {
  const char *mount, *limit, *usage, *cache[2];
} cgroup;

static void lower(md_memory_available *available, int64_t bytes, const char *limit) {
  if (bytes < 0) bytes = 0;
  if (bytes >= available->host) return;
  available->host = bytes;
  snprintf(available->limit, sizeof available->limit, "%.250s", limit);
}

/* One group and its ancestors; where a container hides their names, the mount itself is left. */
static void look_at_groups(const char *root, const cgroup *names, const char *path,
                           md_memory_available *available) {
  char folder[PATH_MAX], name[PATH_MAX + 64];
  snprintf(folder, sizeof folder, "%s%s%s", root, names->mount, path);
  const size_t top = strlen(root) + strlen(names->mount);
  for (;;) {
    size_t length = strlen(folder);
    while (length > top && folder[length - 1] == '/') folder[--length] = '\0';
    snprintf(name, sizeof name, "%s/%s", folder, names->usage);
    const int64_t usage = number_in(name, NULL);
    int64_t cache = 0;
    snprintf(name, sizeof name, "%s/memory.stat", folder);
    for (int i = 0; i < 2; i++) {
      const int64_t part = number_in(name, names->cache[i]);
      cache += part > 0 ? part : 0;
    }
    snprintf(name, sizeof name, "%s/%s", folder, names->limit);
    const int64_t limit = number_in(name, NULL);
    if (limit >= 0 && usage >= 0) lower(available, limit - usage + cache, name + strlen(root));
    if (length <= top) return;
    *strrchr(folder, '/') = '\0';
  }
}

static bool has_word(const char *list, const char *word) {
  const size_t length = strlen(word);
  for (const char *at = strstr(list, word); at; at = strstr(at + 1, word))
    if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == '\0')) return true;
  return false;
}

/* Lines of /proc/self/cgroup: "0::/path" (v2), "4:memory:/path" (v1). */
static void look_at_cgroups(const char *root, md_memory_available *available) {
  static const cgroup v1 = {"/sys/fs/cgroup/memory",
                            "memory.limit_in_bytes",
                            "memory.usage_in_bytes",
                            {"total_inactive_file", "total_active_file"}};
  static const cgroup v2 = {
      "/sys/fs/cgroup", "memory.max", "memory.current", {"inactive_file", "active_file"}};
  static const cgroup hybrid = {
      "/sys/fs/cgroup/unified", "memory.max", "memory.current", {"inactive_file", "active_file"}};
  char name[PATH_MAX], line[PATH_MAX];
  snprintf(name, sizeof name, "%s/proc/self/cgroup", root);
  FILE *file = fopen(name, "r");
  while (file && fgets(line, sizeof line, file)) {
    line[strcspn(line, "\n")] = '\0';
    char *controllers = strchr(line, ':'),
         *path = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!path) continue;
    *path++ = '\0';
    if (controllers[1] == '\0') {
      look_at_groups(root, &v2, path, available);
      look_at_groups(root, &hybrid, path, available);
    } else if (has_word(controllers + 1, "memory"))
      look_at_groups(root, &v1, path, available);
  }
  if (file) fclose(file);
}

void md_memory_look(const char *root, md_memory_available *available) {
  char name[PATH_MAX];
  struct rlimit limit;
  *available = (md_memory_available){.host = INT64_MAX, .process = INT64_MAX};
  snprintf(name, sizeof name, "%s/proc/meminfo", root);
  const int64_t kilobytes = number_in(name, "MemAvailable");
  if (kilobytes >= 0) lower(available, kilobytes * 1024, "MemAvailable");
  look_at_cgroups(root, available);
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    const int64_t pages = number_in("/proc/self/statm", NULL);
    available->process = (int64_t)limit.rlim_cur - (pages > 0 ? pages * sysconf(_SC_PAGESIZE) : 0);
    if (available->process < 0) available->process = 0;
  }
}

/* `host`: the need of all `ranks` of this host. */
static md_status compare(md_context *context, int64_t process, int64_t host, int ranks,
                         const char *what) {
  md_memory_available available;
  char name[256] = "";
  md_memory_look("", &available);
  gethostname(name, sizeof name - 1);
  if (host > available.host)
    return md_fail(
        context, MD_ENVIRONMENT,
        "%s needs %.3f GB of memory for %d rank%s of host %s, available are %.3f GB (%s); "
        "use more hosts or a smaller problem",
        what, (double)host * 1e-9, ranks, ranks > 1 ? "s" : "", name, (double)available.host * 1e-9,
        available.limit);
  if (process > available.process)
    return md_fail(
        context, MD_ENVIRONMENT,
        "%s needs %.3f GB of memory on rank %d, its limit RLIMIT_AS leaves %.3f GB; raise "
        "it (ulimit -v), use more ranks or a smaller problem",
        what, (double)process * 1e-9, context->rank, (double)available.process * 1e-9);
  return MD_OK;
}

void md_count_memory(md_context *context, md_memory_need more) {
  md_memory_count *count = context->count;
  count->now.host += more.host;
  count->now.device += more.device;
  count->most = md_memory_larger(count->most, count->now);
}

md_memory_need md_memory_mark(const md_context *context) {
  return context->count ? context->count->now : (md_memory_need){0};
}

void md_memory_return_to(md_context *context, md_memory_need mark) {
  if (context->count) context->count->now = mark;
}

md_status md_memory_foresee(md_context *context, md_status (*work)(md_context *context, void *user),
                            void *user, md_memory_need *need) {
  md_memory_count count = {{0}, {0}};
  const bool quiet = context->quiet;
  context->count = &count;
  context->quiet = true;
  const md_status status = work(context, user);
  context->quiet = quiet;
  context->count = NULL;
  *need = count.most;
  return status;
}

md_status md_memory_require(md_context *context, const md_memory_need *need, const char *what) {
  int ranks = 1;
  if (md_counts(context)) return MD_OK;
  const int64_t all = md_sum_on_host(context, need->host, &ranks);
  if (need->host > context->host_need) context->host_need = need->host;
  if (need->device > context->device_need) context->device_need = need->device;
  md_status status = compare(context, need->host, all, ranks, what);
  if (status == MD_OK && need->device > 0)
    status = md_device_require(context, (size_t)need->device, what);
  return md_agree(context, status);
}

md_status md_memory_check(md_context *context, size_t bytes, const char *what) {
  return compare(context, (int64_t)bytes, (int64_t)bytes, 1, what);
}

int64_t md_memory_resident(void) {
  const int64_t kilobytes = number_in("/proc/self/status", "VmRSS");
  return kilobytes > 0 ? kilobytes * 1024 : 0;
}

int64_t md_memory_peak(void) {
  struct rusage usage;
  return getrusage(RUSAGE_SELF, &usage) == 0 ? (int64_t)usage.ru_maxrss * 1024 : 0;
}
