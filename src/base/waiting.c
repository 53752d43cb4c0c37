#include "base/waiting.h"

#include <limits.h>
#include <omp.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char done[] = "MINIDIRAC_WAITING";
/* Of libgomp's loop: about 0.1 to 0.5 ms, more than the host's work between two parallel parts and
 * less than a time slice. */
static const char brief_spin[] = "10000";

typedef struct core_set {
  cpu_set_t *set;
  size_t bytes;
} core_set;

/* The cores that the calling thread may run on; a NULL set where the system does not tell. */
static core_set own_set(void) {
  for (int most = 1024; most <= 1 << 18; most *= 4) {
    const core_set own = {CPU_ALLOC((size_t)most), CPU_ALLOC_SIZE((size_t)most)};
    if (own.set && sched_getaffinity(0, own.bytes, own.set) == 0) return own;
    CPU_FREE(own.set);
  }
  return (core_set){0};
}

/* And those of the other places of OpenMP: a library that is to bind threads (OMP_PROC_BIND) has
 * bound the first one to the first place as it was loaded. */
static void add_places(core_set *cores) {
  for (int place = 0; cores->set && place < omp_get_num_places(); place++) {
    const int count = omp_get_place_num_procs(place);
    int *core = count > 0 ? malloc((size_t)count * sizeof *core) : NULL;
    if (core) omp_get_place_proc_ids(place, core);
    for (int i = 0; core && i < count; i++) CPU_SET_S((size_t)core[i], cores->bytes, cores->set);
    free(core);
  }
}

static int affinity(void) {
  core_set cores = own_set();
  add_places(&cores);
  const int count = cores.set ? CPU_COUNT_S(cores.bytes, cores.set) : 0;
  CPU_FREE(cores.set);
  return count > 0 ? count : 1;
}

/* Gives the first thread back the cores that the process was started with, without which its next
 * start would have the first place alone. False where the system refuses. */
static bool unbind(void) {
  core_set all = own_set();
  add_places(&all); /* LLVM's library binds the thread here */
  const core_set bound = own_set();
  const bool same = !bound.set || !all.set || CPU_EQUAL_S(bound.bytes, bound.set, all.set);
  const bool freed = same || sched_setaffinity(0, all.bytes, all.set) == 0;
  CPU_FREE(bound.set);
  CPU_FREE(all.set);
  return freed;
}

/* The first two numbers of a file; false without them ("max"). */
static bool two_numbers(const char *name, long long value[2]) {
  FILE *file = fopen(name, "r");
  const bool found = file && fscanf(file, "%lld %lld", &value[0], &value[1]) == 2;
  if (file) fclose(file);
  return found;
}

static bool one_number(const char *name, long long *value) {
  FILE *file = fopen(name, "r");
  const bool found = file && fscanf(file, "%lld", value) == 1;
  if (file) fclose(file);
  return found;
}

/* Cores that the quota in one group's folder allows; INT_MAX: no quota. */
static int quota_in(const char *folder) {
  char name[3 * PATH_MAX];
  long long value[2];
  snprintf(name, sizeof name, "%s/cpu.max", folder);
  bool found = two_numbers(name, value);
  if (!found) {
    snprintf(name, sizeof name, "%s/cpu.cfs_quota_us", folder);
    found = one_number(name, &value[0]);
    snprintf(name, sizeof name, "%s/cpu.cfs_period_us", folder);
    found = found && one_number(name, &value[1]);
  }
  if (!found || value[0] <= 0 || value[1] <= 0 || value[0] / value[1] >= INT_MAX) return INT_MAX;
  return value[0] < value[1] ? 1 : (int)(value[0] / value[1]);
}

/* The least quota of this process's groups and their ancestors, control groups v1 and v2. */
static int quota(const char *root) {
  static const char *const mounts[] = {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct",
                                       "/sys/fs/cgroup/unified", "/sys/fs/cgroup"};
  char name[PATH_MAX], line[PATH_MAX], folder[2 * PATH_MAX];
  int least = INT_MAX;
  snprintf(name, sizeof name, "%s/proc/self/cgroup", root);
  FILE *file = fopen(name, "r");
  while (file && fgets(line, sizeof line, file)) {
    line[strcspn(line, "\n")] = '\0';
    const char *path = strchr(line, ':');
    path = path ? strchr(path + 1, ':') : NULL;
    for (size_t m = 0; path && m < sizeof mounts / sizeof *mounts; m++) {
      const int top = snprintf(folder, sizeof folder, "%s%s", root, mounts[m]);
      snprintf(folder + top, sizeof folder - (size_t)top, "%s", path + 1);
      for (;;) {
        const int here = quota_in(folder);
        if (here < least) least = here;
        char *slash = strrchr(folder, '/');
        if (!slash || slash < folder + top) break;
        *slash = '\0';
      }
    }
  }
  if (file) fclose(file);
  return least;
}

/* Processes that are running or ready to, this one included; 0 when it cannot be told. */
static int running(const char *root) {
  char name[PATH_MAX], line[256];
  int count = 0;
  snprintf(name, sizeof name, "%s/proc/stat", root);
  FILE *file = fopen(name, "r");
  while (file && count == 0 && fgets(line, sizeof line, file))
    if (sscanf(line, "procs_running %d", &count) != 1) count = 0;
  if (file) fclose(file);
  return count;
}

static int local_ranks(void) {
  static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                                      "PMI_LOCAL_SIZE"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const char *text = getenv(names[i]);
    if (text && atoi(text) > 0) return atoi(text);
  }
  return 1;
}

void md_cores_look(const char *root, md_cores *cores) {
  *cores = (md_cores){.affinity = affinity(),
                      .quota = quota(root),
                      .online = (int)sysconf(_SC_NPROCESSORS_ONLN),
                      .ranks = local_ranks()};
}

/* Processes of others that run; the least of some looks, since something brief is no load. */
static int others(const char *root, int ranks) {
  enum { LOOKS = 3 };
  const struct timespec pause = {.tv_nsec = 2000000};
  int least = INT_MAX;
  for (int i = 0; i < LOOKS; i++) {
    const int here = running(root) - ranks;
    if (here < least) least = here;
    if (i + 1 < LOOKS) nanosleep(&pause, NULL);
  }
  return least > 0 ? least : 0;
}

/* Ranks that their launcher bound apart have cores of their own each. */
static int own_cores(const md_cores *cores) {
  const bool apart = (int64_t)cores->affinity * cores->ranks <= cores->online;
  return apart ? cores->affinity : cores->affinity / cores->ranks;
}

int md_cores_threads(const md_cores *cores) {
  const int own = own_cores(cores), part = cores->quota / cores->ranks;
  const int threads = own < part ? own : part;
  return threads > 0 ? threads : 1;
}

bool md_cores_shared(const md_cores *cores, int threads) {
  const int64_t mine = threads > 0 ? threads : md_cores_threads(cores);
  const int64_t all = mine * cores->ranks;
  return mine > own_cores(cores) || all > cores->quota || all + cores->others > cores->online;
}

const char *md_waiting_name(void) {
  const char *name = getenv(done);
  return name ? name : "environment";
}

void md_waiting_prepare(char **argv) {
  char self[PATH_MAX];
  md_cores cores;
  if (getenv(done)) return;
  md_cores_look("", &cores);
  cores.others = others("", cores.ranks);
  const char *threads = getenv("OMP_NUM_THREADS");
  const bool shared = md_cores_shared(&cores, threads ? atoi(threads) : 0);
  /* mpirun sets it to 0 where it sees no more ranks than cores; it knows of nothing else. */
  if (shared) setenv("OMPI_MCA_mpi_yield_when_idle", "1", 1);
  if (getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT") || getenv("KMP_BLOCKTIME")) return;
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length <= 0 || !unbind()) return;
  self[length] = '\0';
  setenv(done, shared ? "passive" : "brief", 1);
  if (shared)
    setenv("OMP_WAIT_POLICY", "passive", 1);
  else
    setenv("GOMP_SPINCOUNT", brief_spin, 1);
  execv(self, argv);
  unsetenv(done); /* the program stays as it was started */
}
