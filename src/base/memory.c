#include "base/memory.h"
#include "base/device.h"
#include "base/memory_need.h"
#include "base/waiting.h"

#include <limits.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* The names of one version of control groups. */
typedef struct cgroup {
  const char *limit, *usage, *cache[2];
} cgroup;

static void lower(md_memory_available *available, int64_t bytes, const char *limit) {
  if (bytes < 0) bytes = 0;
  if (bytes >= available->host) return;
  available->host = bytes;
  snprintf(available->limit, sizeof available->limit, "%.250s", limit);
}

typedef struct look {
  size_t root; /* its length */
  md_memory_available *available;
} look;

static void look_at_group(void *user, const char *controllers, const char *folder) {
  static const cgroup v1 = {"memory.limit_in_bytes",
                            "memory.usage_in_bytes",
                            {"total_inactive_file", "total_active_file"}};
  static const cgroup v2 = {"memory.max", "memory.current", {"inactive_file", "active_file"}};
  const look *l = user;
  const bool second = strcmp(controllers, ",,") == 0;
  const cgroup *names = second ? &v2 : &v1;
  char name[PATH_MAX];
  int64_t cache = 0;
  if (!second && !strstr(controllers, ",memory,")) return;
  snprintf(name, sizeof name, "%s/%s", folder, names->usage);
  const int64_t usage = md_number_in(name, NULL);
  snprintf(name, sizeof name, "%s/memory.stat", folder);
  for (int i = 0; i < 2; i++) {
    const int64_t part = md_number_in(name, names->cache[i]);
    cache += part > 0 ? part : 0;
  }
  snprintf(name, sizeof name, "%s/%s", folder, names->limit);
  const int64_t limit = md_number_in(name, NULL);
  /* Read one after the other, the cache can be more than the usage, and no limit is 2^63 - 4096. */
  const int64_t used = usage > cache ? usage - cache : 0;
  if (limit >= 0 && usage >= 0) lower(l->available, limit - used, name + l->root);
}

void md_memory_look(const char *root, md_memory_available *available) {
  char name[PATH_MAX];
  struct rlimit limit;
  *available = (md_memory_available){.host = INT64_MAX, .process = INT64_MAX};
  snprintf(name, sizeof name, "%s/proc/meminfo", root);
  const int64_t kilobytes = md_number_in(name, "MemAvailable");
  if (kilobytes >= 0) lower(available, kilobytes * 1024, "MemAvailable");
  md_each_control_group(root, look_at_group, &(look){strlen(root), available});
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    const int64_t pages = md_number_in("/proc/self/statm", NULL);
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
  md_memory_count count = {{0}, {0}}, *outer = context->count;
  const bool quiet = context->quiet;
  context->count = &count;
  context->quiet = true;
  const md_status status = work(context, user);
  context->quiet = quiet;
  context->count = outer;
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
  const int64_t kilobytes = md_number_in("/proc/self/status", "VmRSS");
  return kilobytes > 0 ? kilobytes * 1024 : 0;
}

int64_t md_memory_peak(void) {
  struct rusage usage;
  return getrusage(RUSAGE_SELF, &usage) == 0 ? (int64_t)usage.ru_maxrss * 1024 : 0;
}

enum { HUGE_PAGE = 2 << 20, LARGE = 256 << 20 };

/* Large arrays are streamed through: on huge pages the hardware prefetcher need not stop at every
 * 4 KiB (one core of a Zen 4 reads a stream half as fast again). Advice: no failure if refused. */
static void *allocate_huge(size_t rounded) {
  void *memory = aligned_alloc(HUGE_PAGE, rounded);
#ifdef MADV_HUGEPAGE
  if (memory) madvise(memory, rounded, MADV_HUGEPAGE);
#endif
  return memory;
}

md_status md_allocate(md_context *context, size_t bytes, const char *what, void **memory) {
  *memory = NULL;
  if (bytes == 0) return MD_OK;
  const bool huge = bytes > 2 * HUGE_PAGE - MD_ALIGNMENT;
  const size_t unit = huge ? HUGE_PAGE : MD_ALIGNMENT, rounded = (bytes + unit - 1) / unit * unit;
  if (md_counts(context)) {
    md_count_memory(context, (md_memory_need){.host = (int64_t)rounded});
    return MD_OK;
  }
  if (bytes > (size_t)1 << 47) return md_fail_memory(context, bytes, what);
  if (bytes >= LARGE) MD_TRY(md_memory_check(context, bytes, what));
  *memory = huge ? allocate_huge(rounded) : aligned_alloc(MD_ALIGNMENT, rounded);
  return *memory ? MD_OK : md_fail_memory(context, bytes, what);
}

void md_memory_release(void) {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

void md_copy_parallel(const md_context *context, void *to, const void *from, size_t bytes) {
#pragma omp parallel num_threads(context->threads)
  {
    const size_t parts = (size_t)omp_get_num_threads(), i = (size_t)omp_get_thread_num();
    const size_t first = bytes / parts * i, last = i + 1 == parts ? bytes : bytes / parts * (i + 1);
    memcpy((char *)to + first, (const char *)from + first, last - first);
  }
}

void md_copy_rows_parallel(const md_context *context, void *to, size_t to_pitch, const void *from,
                           size_t from_pitch, size_t bytes, size_t count) {
#pragma omp parallel for schedule(static) num_threads(context->threads)
  for (size_t i = 0; i < count; i++)
    memcpy((char *)to + i * to_pitch, (const char *)from + i * from_pitch, bytes);
}

void md_free(void *const *memory, size_t count) {
  for (size_t i = 0; i < count; i++) free(memory[i]);
}
