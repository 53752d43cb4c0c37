#include "io/child.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* The longest that an answer may take. */
static int wait_s(const md_child *child) {
  return MD_CHILD_WAIT_S + 8 * child->processor_s;
}

/* A descriptor that the standard streams of the child do not replace. */
static int above_streams(int file) {
  const int moved = file < 0 ? -1 : fcntl(file, F_DUPFD_CLOEXEC, 3), reason = errno;
  if (file >= 0) close(file);
  errno = reason;
  return moved;
}

/* The program of io/reader as a descriptor to start it from, at least 3; -1 and errno.
 * MD_READER_FILE is that program where it was built. */
#ifdef MD_READER_IN_PLACE
static int child_program(void) {
  return above_streams(open(MD_READER_FILE, O_RDONLY | O_CLOEXEC));
}
#else
__asm__(".pushsection .rodata\n"
        ".balign 16\n"
        ".hidden md_reader_begin\n.globl md_reader_begin\nmd_reader_begin:\n"
        ".incbin \"" MD_READER_FILE "\"\n"
        ".hidden md_reader_end\n.globl md_reader_end\nmd_reader_end:\n"
        ".byte 0\n"
        ".popsection\n");
extern const unsigned char md_reader_begin[], md_reader_end[];

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

static int child_program(void) {
  const size_t bytes = (size_t)(md_reader_end - md_reader_begin);
  int file = memfd_create("minidirac_read", MFD_CLOEXEC | MFD_EXEC);
  if (file < 0 && errno == EINVAL) /* Linux before 6.3 */
    file = memfd_create("minidirac_read", MFD_CLOEXEC);
  if (file >= 0 && write(file, md_reader_begin, bytes) != (ssize_t)bytes) {
    const int reason = errno;
    close(file);
    errno = reason;
    return -1;
  }
  return above_streams(file);
}
#endif

/* Memory for both, whose length the child cannot change. A descriptor of it. */
static int share_memory(md_child *child, size_t bytes) {
  const int memory = above_streams(memfd_create("minidirac", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (memory < 0) return -1;
  void *shared = MAP_FAILED;
  if (ftruncate(memory, (off_t)bytes) == 0 &&
      fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
    shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  if (shared == MAP_FAILED) {
    close(memory);
    return -1;
  }
  child->shared = shared;
  child->shared_bytes = bytes;
  return memory;
}

/* An error number. Signals wait until the child has said what becomes of them. */
static int spawn(const md_context *context, md_child *child, int program, int socket, int memory) {
  char name[64], numbers[64];
  char *const arguments[] = {"minidirac_read", numbers, (char *)child->path, NULL};
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t all;
  snprintf(name, sizeof name, "/proc/self/fd/%d", program);
  snprintf(numbers, sizeof numbers, "%d,%d,%d,%d", socket, memory, context->rank,
           child->processor_s);
  sigfillset(&all);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  int error = posix_spawn_file_actions_init(&actions);
  for (int i = 0; i < 3 && !error; i++)
    error = posix_spawn_file_actions_addopen(&actions, i, "/dev/null", O_RDWR, 0);
  /* Onto itself: it stays open in the child. */
  if (!error) error = posix_spawn_file_actions_adddup2(&actions, socket, socket);
  if (!error) error = posix_spawn_file_actions_adddup2(&actions, memory, memory);
  if (!error) error = posix_spawn(&child->process, name, &actions, &attributes, arguments, environ);
  if (error) child->process = 0;
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return error;
}

/* An error number. */
static int start_process(const md_context *context, md_child *child, int memory) {
  int sockets[2];
  const struct timeval wait = {.tv_sec = wait_s(child)};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) return errno;
  child->socket = sockets[0];
  (void)setsockopt(child->socket, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
  const int other = above_streams(sockets[1]), program = child_program();
  const int error =
      other < 0 || program < 0 ? errno : spawn(context, child, program, other, memory);
  if (other >= 0) close(other);
  if (program >= 0) close(program);
  return error;
}

md_status md_child_start(md_context *context, const char *path, size_t shared_bytes,
                         md_child *child) {
  md_child_answer begun;
  int64_t bytes;
  *child = (md_child){.path = path, .socket = -1};
  MD_TRY(md_file_length(context, path, &bytes));
  child->processor_s = MD_CHILD_PROCESSOR_S + (int)(bytes >> 28 < 1000 ? bytes >> 28 : 1000);
  const int memory = share_memory(child, shared_bytes);
  const int error = memory < 0 ? errno : start_process(context, child, memory);
  if (memory >= 0) close(memory);
  if (error)
    return md_fail(context, MD_ENVIRONMENT, "%s: no process to read it: %s%s", path,
                   strerror(error),
                   error == EMFILE  ? "; raise the limit (ulimit -n)"
                   : error == EFBIG ? "; raise the limit (ulimit -f)"
                   : error == EACCES || error == EPERM
                       ? "; this system must let a program be started from memory (sysctl "
                         "vm.memfd_noexec below 2)"
                       : "");
  if (md_child_receive(child->socket, &begun, sizeof begun)) return MD_OK;
  const int outcome = collect(child, true);
  return md_fail(context, MD_ENVIRONMENT,
                 "%s: the process that reads it did not begin (%s %d); are limits too low, or the "
                 "libraries of this program elsewhere?",
                 path, WIFSIGNALED(outcome) ? "signal" : "exit code",
                 WIFSIGNALED(outcome) ? WTERMSIG(outcome) : WEXITSTATUS(outcome));
}

static md_status died(md_context *context, md_child *child, bool silent) {
  char what[128];
  const int outcome = collect(child, silent);
  const int number = outcome != -1 && WIFSIGNALED(outcome) ? WTERMSIG(outcome) : 0;
  if (silent)
    return md_fail(context, MD_ENVIRONMENT, "%s: reading it gave no answer for %d s", child->path,
                   wait_s(child));
  if (number == SIGKILL)
    return md_fail(context, MD_ENVIRONMENT,
                   "%s: the process that reads it was killed; is memory short?", child->path);
  if (number == SIGXCPU)
    snprintf(what, sizeof what, "finds no end in more than %d s of processor time",
             child->processor_s);
  else if (number)
    snprintf(what, sizeof what, "fails on it with signal %d (%s)", number, strsignal(number));
  else
    snprintf(what, sizeof what, "gave up on it (exit code %d)",
             outcome != -1 && WIFEXITED(outcome) ? WEXITSTATUS(outcome) : -1);
  return md_fail(context, MD_INPUT,
                 "%s is damaged: the HDF5 library %s; take another copy of the file", child->path,
                 what);
}

md_status md_child_ask(md_context *context, md_child *child, const md_child_request *request) {
  md_child_answer a;
  if (child->process <= 0)
    return md_fail(context, MD_INPUT, "%s: there is no process that reads it", child->path);
  errno = 0;
  if (!md_child_transmit(child->socket, request, sizeof *request))
    return died(context, child, false);
  if (!md_child_receive(child->socket, &a, sizeof a)) return died(context, child, errno == EAGAIN);
  child->number = a.number;
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
