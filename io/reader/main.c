#include "base/sanitized.h"
#include "io/reader/reader.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The child of io/child.h, a program: minidirac_read SOCKET,MEMORY,RANK,SECONDS PATH. Started by
 * the library alone. SOCKET and MEMORY are descriptors, of the way to the parent and of what both
 * share; RANK is the parent's. */

static void limit(int resource, rlim_t most) {
  struct rlimit now;
  if (getrlimit(resource, &now) != 0) return;
  now.rlim_cur = now.rlim_max == RLIM_INFINITY || most < now.rlim_max ? most : now.rlim_max;
  (void)setrlimit(resource, &now);
}

void md_reader_open_no_more(void) {
  if (!MD_SANITIZED) limit(RLIMIT_NOFILE, 0);
}

/* Addresses in use already. */
static rlim_t address_space(void) {
  unsigned long long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (file && fscanf(file, "%llu", &pages) != 1) pages = 0;
  if (file) fclose(file);
  return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

static void restrain(void) {
  /* Whoever started the parent may have had them ignored; and Ctrl-C is the parent's. */
  static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGXCPU, SIGTRAP, SIGSYS};
  static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
  sigset_t none;
  sigemptyset(&none);
  for (size_t i = 0; !MD_SANITIZED && i < sizeof fatal / sizeof *fatal; i++)
    signal(fatal[i], SIG_DFL);
  for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) signal(ignored[i], SIG_IGN);
  sigprocmask(SIG_SETMASK, &none, NULL);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NAME, "minidirac_read"); /* started from memory it would have a number for a name */
  limit(RLIMIT_CORE, 1);                /* not 0: that still starts a core pattern's program */
  const rlim_t used = address_space();
  if (!MD_SANITIZED && used > 0) limit(RLIMIT_AS, used + MD_CHILD_MEMORY);
}

static void allow_processor_time(int allowed_s) {
  struct timespec used;
  if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) == 0)
    limit(RLIMIT_CPU, (rlim_t)(used.tv_sec + allowed_s + 1)); /* whole seconds */
}

static bool map_shared(int memory, md_reader *r) {
  struct stat there;
  if (fstat(memory, &there) != 0) return false;
  r->shared_bytes = (size_t)there.st_size;
  r->shared = mmap(NULL, r->shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  return r->shared != MAP_FAILED;
}

int main(int argc, char **argv) {
  md_context context = {.ranks = 1, .threads = 1};
  md_child_answer answer = {0};
  md_child_request request;
  int socket, memory, seconds;
  if (argc != 3 || sscanf(argv[1], "%d,%d,%d,%d", &socket, &memory, &context.rank, &seconds) != 4) {
    fputs("minidirac_read is started by miniDirac alone, to read HDF5 files\n", stderr);
    return MD_INPUT;
  }
  md_reader reader = {.file = {.context = &context, .path = argv[2], .id = -1}};
  if (!map_shared(memory, &reader)) return MD_ENVIRONMENT;
  restrain();
  bool heard = md_child_transmit(socket, &answer, sizeof answer);
  while (heard && md_child_receive(socket, &request, sizeof request)) {
    allow_processor_time(seconds);
    context.message[0] = 0;
    answer.number = 0;
    answer.status = (int)md_reader_serve(&reader, &request, &answer.number);
    memcpy(answer.message, context.message, sizeof answer.message);
    heard = md_child_transmit(socket, &answer, sizeof answer);
  }
  _exit(0); /* the library would close what it has open, and may fail in that */
}
