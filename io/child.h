#ifndef MD_IO_CHILD_H
#define MD_IO_CHILD_H

#include "base/context.h"

#include <sys/types.h>

/* Inside of io: work on a file that may be damaged or hostile, done in a process of its own.
 *
 * The HDF5 library trusts what it reads: a flipped bit in a file's metadata can end it with a
 * signal, keep it in a loop or make it ask for all memory. So it sees files of others only in a
 * child made by fork(), which answers through a socket and a shared mapping; the parent takes from
 * it nothing but plain data, which it checks. The child is not exec'ed: a library has no program
 * of its own to start. It calls neither MPI nor CUDA nor OpenMP and leaves by _exit.
 *
 * The child has no core dump, nothing to print to, MEMORY bytes beside what the parent has, and
 * for each request PROCESSOR_S seconds of processor time and one more for every 256 MiB of the
 * file; waiting for a disk does not count, up to WAIT_S seconds. */
enum { MD_CHILD_MEMORY = 1 << 30, MD_CHILD_PROCESSOR_S = 3, MD_CHILD_WAIT_S = 600 };

/* Runs in the child, for each request in turn. `state` is the parent's as it was at the start, what
 * it points to included (but arrays of 32 MiB and more, see base/memory.h); what it becomes stays
 * in the child. `shared` is seen by both. Failures are recorded by md_fail as anywhere; must not
 * communicate with other ranks. */
typedef md_status md_child_work(md_context *context, void *state, int request, void *shared);

typedef struct md_child {
  const char *path; /* of the file, for messages */
  int processor_s;  /* for each request */
  int socket;
  pid_t process; /* 0: none */
  void *shared;  /* zeros at the start */
  size_t shared_bytes;
} md_child;

/* Starts a child; to be stopped in any case. path outlives it. MD_INPUT when it is no regular
 * file; MD_ENVIRONMENT. Local. */
md_status md_child_start(md_context *context, const char *path, md_child_work *work, void *state,
                         size_t shared_bytes, md_child *child);
/* Waits for the answer to `request`: status and message of the work; MD_INPUT when the child did
 * not live to give one. May be called by any thread, by one at a time. Local. */
md_status md_child_ask(md_context *context, md_child *child, int request);
/* Ends the child and releases all. Local. */
void md_child_stop(md_child *child);
/* In the child: from now on no file can be opened, so none that this one points to is read. */
void md_child_open_no_more(void);

#endif
