#include "base/waiting.h"
#include "base/text.h"

#include <limits.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
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

void md_cores_list(char text[MD_CORES_BYTES]) {
  core_set cores = own_set();
  add_places(&cores);
  const int end = cores.set ? (int)(8 * cores.bytes) : 0;
  *text = '\0';
  for (int core = 0, first = -1; core <= end; core++) {
    const bool in = core < end && CPU_ISSET_S((size_t)core, cores.bytes, cores.set);
    if (in && first < 0) first = core;
    if (in || first < 0) continue;
    if (!md_append(text, MD_CORES_BYTES, core - first > 1 ? "%s%d-%d" : "%s%d", *text ? "," : "",
                   first, core - 1)) {
      *strrchr(text, ',') = '\0'; /* the last is not whole */
      break;
    }
    first = -1;
  }
  CPU_FREE(cores.set);
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

int64_t md_number_in(const char *file_name, const char *key) {
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

void md_line_in(const char *file_name, char *line, int bytes) {
  *line = '\0';
  FILE *file = fopen(file_name, "r");
  if (file && !fgets(line, bytes, file)) *line = '\0';
  if (file) fclose(file);
  line[strcspn(line, "\n")] = '\0';
}

void md_each_control_group(const char *root,
                           void (*visit)(void *user, const char *controllers, const char *folder),
                           void *user) {
  static const char *const mounts[] = {"/sys/fs/cgroup/memory", "/sys/fs/cgroup/cpu",
                                       "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup",
                                       "/sys/fs/cgroup/unified"};
  char line[PATH_MAX], folder[2 * PATH_MAX], controllers[PATH_MAX + 2];
  snprintf(folder, sizeof folder, "%s/proc/self/cgroup", root);
  FILE *file = fopen(folder, "r");
  while (file && fgets(line, sizeof line, file)) {
    line[strcspn(line, "\n")] = '\0';
    const char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;
    if (!path) continue;
    snprintf(controllers, sizeof controllers, ",%.*s,", (int)(path - list - 1), list + 1);
    /* Version 2 is mounted at the last two. */
    for (size_t m = strcmp(controllers, ",,") ? 0 : 3; m < sizeof mounts / sizeof *mounts; m++) {
      const int top = snprintf(folder, sizeof folder, "%s%s", root, mounts[m]);
      snprintf(folder + top, sizeof folder - (size_t)top, "%s",
               strcmp(path, ":/") == 0 ? "" : path + 1);
      for (char *end = folder + strlen(folder); end; end = strrchr(folder + top, '/')) {
        *end = '\0';
        visit(user, controllers, folder);
      }
    }
  }
  if (file) fclose(file);
}

/* Cores that the quota of a group allows lower *user. */
static void lower_quota(void *user, const char *controllers, const char *folder) {
  int *least = user;
  char name[2 * PATH_MAX + 32];
  long long quota = 0, period = 0;
  if (strcmp(controllers, ",,") != 0 && !strstr(controllers, ",cpu,")) return;
  snprintf(name, sizeof name, "%s/cpu.max", folder);
  FILE *file = fopen(name, "r"); /* of version 2: "max 100000" without a quota */
  if (file && fscanf(file, "%lld %lld", &quota, &period) != 2) quota = 0;
  if (file) fclose(file);
  if (quota == 0) {
    snprintf(name, sizeof name, "%s/cpu.cfs_quota_us", folder);
    quota = md_number_in(name, NULL);
    snprintf(name, sizeof name, "%s/cpu.cfs_period_us", folder);
    period = md_number_in(name, NULL);
  }
  if (quota <= 0 || period <= 0 || quota / period >= *least) return;
  *least = quota < period ? 1 : (int)(quota / period);
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

void md_batch_job(char *job, size_t bytes) {
  static const char *const names[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID",
                                      "OAR_JOB_ID"};
  *job = '\0';
  for (size_t i = 0; !*job && i < sizeof names / sizeof *names; i++)
    if (getenv(names[i])) snprintf(job, bytes, "%s=%s", names[i], getenv(names[i]));
}

void md_cores_look(const char *root, md_cores *cores) {
  *cores = (md_cores){.affinity = affinity(),
                      .quota = INT_MAX,
                      .online = (int)sysconf(_SC_NPROCESSORS_ONLN),
                      .ranks = local_ranks()};
  md_each_control_group(root, lower_quota, &cores->quota);
}

/* Processes of others that run or are ready to; the least of some looks, since something brief is
 * no load. 0 when it cannot be told. */
static int others(int ranks) {
  enum { LOOKS = 3 };
  const struct timespec pause = {.tv_nsec = 2000000};
  int least = INT_MAX;
  for (int i = 0; i < LOOKS; i++) {
    const int here = (int)md_number_in("/proc/stat", "procs_running") - ranks;
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
  const bool ours = name && (strcmp(name, "passive") == 0 || strcmp(name, "brief") == 0);
  return ours ? name : "environment";
}

void md_waiting_prepare(char **argv) {
  char self[PATH_MAX];
  md_cores cores;
  if (getenv(done)) return;
  md_cores_look("", &cores);
  cores.others = others(cores.ranks);
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

/* As OpenMP reads it: a number of KiB, or of what a letter behind it says; 0: not given. */
static size_t stack_bytes(void) {
  const char *text = getenv("OMP_STACKSIZE");
  char *end = NULL;
  if (!text) text = getenv("GOMP_STACKSIZE");
  if (!text) return 0;
  const unsigned long long number = strtoull(text, &end, 10);
  end += strspn(end, " ");
  static const char units[] = "bBkKmMgG";
  const char *unit = *end ? strchr(units, *end) : &units[2];
  const int bits = unit ? 10 * (int)((unit - units) / 2) : 64;
  return bits < 64 && number <= SIZE_MAX >> bits ? (size_t)number << bits : 0;
}

static void *pass(void *gate) {
  pthread_mutex_lock(gate);
  pthread_mutex_unlock(gate);
  return NULL;
}

/* As the OpenMP library makes them. */
static void prepare(pthread_attr_t *attributes) {
  pthread_attr_init(attributes);
  const size_t stack = stack_bytes();
  if (stack > 0) pthread_attr_setstacksize(attributes, stack); /* too small a one is not taken */
}

/* Buffers of kernels for the widest fields take more than half of LEAST_MIB. */
enum { LEAST_MIB = 2, STACK_USED = 3 << 19 };
static __attribute__((noinline)) void touch_stack(void) {
  volatile char room[STACK_USED];
  room[0] = 0;
  __asm__ volatile("" : : "r"(room)); /* no compiler takes less than all of it */
}

/* The process's own stack grows as it is used, and one that a limit of the address space stops ends
 * the process: it grows here, where that can be told. */
static md_status grow_stack(md_context *context) {
  void *as_much = mmap(NULL, STACK_USED, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (as_much == MAP_FAILED) return md_fail_memory(context, STACK_USED, "the stack");
  munmap(as_much, STACK_USED);
  touch_stack();
  return MD_OK;
}

static md_status check_stacks(md_context *context, int threads) {
  struct rlimit own;
  pthread_attr_t attributes;
  size_t bytes = 0;
  if (getrlimit(RLIMIT_STACK, &own) == 0 && own.rlim_cur >> 20 < LEAST_MIB)
    return md_fail(context, MD_ENVIRONMENT,
                   "the stack must have %d MiB, got %lld KiB; raise the limit (ulimit -s)",
                   LEAST_MIB, (long long)own.rlim_cur / 1024);
  MD_TRY(grow_stack(context));
  prepare(&attributes);
  const int error = pthread_attr_getstacksize(&attributes, &bytes);
  pthread_attr_destroy(&attributes);
  if (threads == 1 || error != 0 || bytes >> 20 >= LEAST_MIB) return MD_OK;
  return md_fail(context, MD_ENVIRONMENT,
                 "threads must have stacks of %d MiB, got %zu KiB; raise OMP_STACKSIZE", LEAST_MIB,
                 bytes / 1024);
}

static int start(pthread_t *thread, pthread_mutex_t *gate) {
  pthread_attr_t attributes;
  prepare(&attributes);
  const int error = pthread_create(thread, &attributes, pass, gate);
  pthread_attr_destroy(&attributes);
  return error;
}

md_status md_threads_check(md_context *context, int threads) {
  const size_t bytes = (size_t)threads * sizeof(pthread_t);
  pthread_t *others = malloc(bytes);
  pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
  md_status status =
      others ? check_stacks(context, threads) : md_fail_memory(context, bytes, "threads");
  int count = 0;
  pthread_mutex_lock(&gate);
  for (; status == MD_OK && count < threads - 1; count++) {
    const int error = start(&others[count], &gate);
    if (error == 0) continue;
    status = md_fail(context, MD_ENVIRONMENT,
                     "rank %d must have %d threads, but this machine gives it %d: %s; ask for "
                     "fewer, or raise the limit (ulimit -u, ulimit -v, OMP_STACKSIZE, pids.max)",
                     context->rank, threads, count + 1, strerror(error));
    break;
  }
  status = md_agree(context, status); /* before they end: ranks share some of the limits */
  pthread_mutex_unlock(&gate);
  for (int i = 0; i < count; i++) pthread_join(others[i], NULL);
  free(others);
  return status;
}
