#include "io/child.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A sanitizer reserves more addresses than any limit leaves, and its reports are wanted. */
#if defined(__SANITIZE_ADDRESS__)
enum { SANITIZED = 1 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif
#else
enum { SANITIZED = 0 };
#endif

typedef struct answer {
  int status;
  char message[sizeof((md_context *)0)->message];
} answer;

/* False when the other side is gone or, with a limit (>= 0), silent for that long. */
static bool receive(int socket, void *data, size_t bytes, int limit_ms) {
  for (size_t done = 0; done < bytes;) {
    struct pollfd wait = {.fd = socket, .events = POLLIN};
    const int ready = limit_ms < 0 ? 1 : poll(&wait, 1, limit_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t part = recv(socket, (char *)data + done, bytes - done, 0);
    if (part < 0 && errno == EINTR) continue;
    if (part <= 0) return false;
    done += (size_t)part;
  }
  return true;
}

static bool transmit(int socket, const void *data, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    const ssize_t part = send(socket, (const char *)data + done, bytes - done, MSG_NOSIGNAL);
    if (part < 0 && errno == EINTR) continue;
    if (part <= 0) return false;
    done += (size_t)part;
  }
  return true;
}

static void limit(int resource, rlim_t most) {
  struct rlimit now;
  if (getrlimit(resource, &now) != 0) return;
  now.rlim_cur = now.rlim_max == RLIM_INFINITY || most < now.rlim_max ? most : now.rlim_max;
  (void)setrlimit(resource, &now);
}

void md_child_open_no_more(void) {
  if (!SANITIZED) limit(RLIMIT_NOFILE, 0);
}

/* Addresses in use already: CUDA alone reserves more than the machine has. */
static rlim_t address_space(void) {
  unsigned long long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (file && fscanf(file, "%llu", &pages) != 1) pages = 0;
  if (file) fclose(file);
  return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

static void restrain(void) {
  /* Whoever started us may have put handlers there, which print; and Ctrl-C is the parent's. */
  static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGXCPU, SIGTRAP, SIGSYS};
  static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
  sigset_t none;
  sigemptyset(&none);
  for (size_t i = 0; !SANITIZED && i < sizeof fatal / sizeof *fatal; i++) signal(fatal[i], SIG_DFL);
  for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) signal(ignored[i], SIG_IGN);
  sigprocmask(SIG_SETMASK, &none, NULL);
  const int nowhere = open("/dev/null", O_RDWR);
  for (int i = 0; i < 3 && nowhere >= 0; i++) dup2(nowhere, i);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  limit(RLIMIT_CORE, 1); /* not 0: that still starts a core pattern's program */
  const rlim_t used = address_space();
  if (!SANITIZED && used > 0) limit(RLIMIT_AS, used + MD_CHILD_MEMORY);
}

/* Assigns the processor time that the file needs. */
static md_status check_file(md_context *context, const char *path, int *processor_s) {
  int64_t bytes;
  MD_TRY(md_file_length(context, path, &bytes));
  const int64_t more = bytes >> 28;
  *processor_s = MD_CHILD_PROCESSOR_S + (int)(more < 1000 ? more : 1000);
  return MD_OK;
}

static void allow_processor_time(int allowed_s) {
  struct timespec used;
  if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) == 0)
    limit(RLIMIT_CPU, (rlim_t)(used.tv_sec + allowed_s + 1)); /* whole seconds */
}

static _Noreturn void serve(md_context *context, const md_child *child, md_child_work *work,
                            void *state) {
  const int socket = child->socket;
  int request;
  restrain();
  while (receive(socket, &request, sizeof request, -1)) {
    answer a = {0};
    allow_processor_time(child->processor_s);
    context->message[0] = 0;
    a.status = (int)work(context, state, request, child->shared);
    memcpy(a.message, context->message, sizeof a.message);
    if (!transmit(socket, &a, sizeof a)) break;
  }
  _exit(0);
}

md_status md_child_start(md_context *context, const char *path, md_child_work *work, void *state,
                         size_t shared_bytes, md_child *child) {
  int sockets[2];
  *child = (md_child){.path = path, .socket = -1, .shared_bytes = shared_bytes};
  MD_TRY(check_file(context, path, &child->processor_s));
  child->shared =
      mmap(NULL, shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (child->shared == MAP_FAILED) {
    child->shared = NULL;
    return md_fail_memory(context, shared_bytes,
                          "buffer shared with the process that reads a file");
  }
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
    return md_fail(context, MD_ENVIRONMENT, "%s: no socket for the process that reads it: %s", path,
                   strerror(errno));
  const pid_t process = fork();
  if (process == 0) {
    close(sockets[0]);
    child->socket = sockets[1];
    serve(context, child, work, state);
  }
  const int reason = errno;
  close(sockets[1]);
  child->socket = sockets[0];
  if (process < 0)
    return md_fail(context, MD_ENVIRONMENT, "%s: no process to read it: %s", path,
                   strerror(reason));
  child->process = process;
  return MD_OK;
}

/* Ends the child; the way it went, or -1. */
static int collect(md_child *child, bool now) {
  int outcome = -1;
  if (child->process <= 0) return -1;
  if (now) kill(child->process, SIGKILL);
  while (waitpid(child->process, &outcome, 0) < 0)
    if (errno != EINTR) {
      outcome = -1; /* a host program that ignores SIGCHLD */
      break;
    }
  child->process = 0;
  return outcome;
}

static md_status died(md_context *context, md_child *child, bool silent) {
  const char *path = child->path;
  const int outcome = collect(child, silent);
  const int number = outcome != -1 && WIFSIGNALED(outcome) ? WTERMSIG(outcome) : 0;
  if (silent)
    return md_fail(context, MD_ENVIRONMENT, "%s: reading it gave no answer for %d s", path,
                   MD_CHILD_WAIT_S);
  if (number == SIGXCPU)
    return md_fail(context, MD_INPUT,
                   "%s is damaged: the HDF5 library finds no end in more than %d s of processor "
                   "time; take another copy of the file",
                   path, child->processor_s);
  if (number == SIGKILL)
    return md_fail(context, MD_ENVIRONMENT,
                   "%s: the process that reads it was killed; is memory short?", path);
  if (number)
    return md_fail(context, MD_INPUT,
                   "%s is damaged: the HDF5 library fails on it with signal %d (%s); take another "
                   "copy of the file",
                   path, number, strsignal(number));
  return md_fail(context, MD_INPUT,
                 "%s is damaged: the HDF5 library gave up on it (exit code %d); take another copy "
                 "of the file",
                 path, outcome != -1 && WIFEXITED(outcome) ? WEXITSTATUS(outcome) : -1);
}

md_status md_child_ask(md_context *context, md_child *child, int request) {
  answer a;
  const int limit_ms = MD_CHILD_WAIT_S * 1000;
  if (child->process <= 0)
    return md_fail(context, MD_INPUT, "%s: there is no process that reads it", child->path);
  errno = 0;
  const bool asked = transmit(child->socket, &request, sizeof request);
  struct pollfd wait = {.fd = child->socket, .events = POLLIN};
  int ready = 1;
  if (asked) do
      ready = poll(&wait, 1, limit_ms);
    while (ready < 0 && errno == EINTR);
  if (!asked || ready <= 0 || !receive(child->socket, &a, sizeof a, limit_ms))
    return died(context, child, ready == 0);
  if (a.status == MD_OK) return MD_OK;
  a.message[sizeof a.message - 1] = 0;
  return md_fail(context, a.status == MD_INPUT ? MD_INPUT : MD_ENVIRONMENT, "%s", a.message);
}

void md_child_stop(md_child *child) {
  if (child->socket >= 0) close(child->socket);
  collect(child, true);
  if (child->shared) munmap(child->shared, child->shared_bytes);
  *child = (md_child){.socket = -1};
}
