#pragma once

#include "base/device_facts.h"
#include "base/status.h"
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

MD_C_BEGIN

/* What base/interrupt.c keeps of signals: equal on all ranks but for the times. */
typedef struct md_interrupt {
  int by;          /* the signal that ends this run, agreed over ranks; 0: none */
  int calls, next; /* since the last look at the other ranks' flags; when to look again */
  double looked_s; /* md_time_s() then */
} md_interrupt;

/* Whether iterations on a GPU are recorded, see dirac/solvers/device/recorded_step.h. */
typedef enum md_record_wish { MD_RECORD_DEFAULT, MD_RECORD_ALWAYS, MD_RECORD_NEVER } md_record_wish;

/* What measurements and tests ask for by environment variables. Collective steps depend on it, so
 * rank 0's are read, once, and all ranks have them. 0: not set. */
typedef struct md_wishes {
  md_record_wish record; /* MINIDIRAC_RECORD=always|never */
  md_device_wish gpu;    /* MINIDIRAC_TEST_GPU=MULTIPROCESSORS,KIB,MIB,CAPABILITY */
  int node_size;         /* MINIDIRAC_TEST_NODE_SIZE=N, see md_device_nodes */
} md_wishes;

/* How long work says how far it is, see base/progress.h. */
typedef enum md_progress_way {
  MD_PROGRESS_NONE,
  MD_PROGRESS_LINE, /* one line of a terminal, rewritten */
  MD_PROGRESS_LOG   /* a line a minute, which stays */
} md_progress_way;
typedef struct md_progress_state {
  md_progress_way way;
  double said_s;       /* md_time_s() of the last line */
  bool drawn;          /* a line stands on the terminal */
  char piece[96];      /* of a whole, in words; empty: there is none */
  double whole_s;      /* md_time_s() when the whole began */
  double begin, share; /* of the piece in the whole, 0..1; begin < 0: not known */
} md_progress_state;

/* The run: its ranks, threads and the message of the first failure. Made by main, or for a program
 * that holds the library (src/library), and handed down; there are no globals. */
typedef struct md_context {
  int rank;                            /* this process, 0 .. ranks-1 */
  int ranks;                           /* processes of the run */
  int local_rank;                      /* this process among those of its host, 0 .. */
  int local_ranks;                     /* processes on its host */
  int device;                          /* its GPU on the host, modulo how many there are */
  md_device_facts gpu;                 /* its GPU, see base/device.h */
  struct md_device_staging *staging;   /* its copy buffers, see base/device_cuda.cu */
  struct md_nccl *nccl;                /* see base/device_peers.h; NULL: not started */
  struct md_tune *tune;                /* of --tune, see base/tune.h; NULL: no trials */
  int threads;                         /* OpenMP threads of this process */
  double start_s;                      /* md_time_s() when the run began */
  long long start_bytes;               /* host memory that the process held then */
  long long host_need, device_need;    /* bytes, see base/memory_need.h */
  struct md_memory_count *count;       /* of a dry run, see base/memory_need.h; NULL: none */
  bool quiet;                          /* no tables; errors and reports only */
  md_progress_state progress;          /* of long work, see base/progress.h */
  struct md_ranks *communicator;       /* see base/ranks_mpi.h; NULL: one process without MPI */
  struct md_watch *watch;              /* see base/watch.h; NULL: none */
  const volatile sig_atomic_t *signal; /* this process's flag, see base/interrupt.h; NULL: none */
  md_interrupt interrupt;
  md_wishes wishes;
  /* How long a rank waits for others that should be at the same step, and what then ends its
   * process, called by the watch's thread. 0 and NULL: nothing does, as with MPI. */
  double patience_s;
  void (*give_up)(const char *failure);
  bool owns_mpi;      /* started it, and ends it with this context */
  char message[1024]; /* of the failure last reported by md_fail, one line */
  struct {
    md_status status; /* MD_OK: none */
    char message[1024];
  } deferred; /* the first failure that this rank keeps for the next agreement, see md_defer */
} md_context;

/* Starts MPI (thread level funneled) and fills the context. Without OMP_NUM_THREADS a rank gets the
 * cores over the ranks that share them (base/waiting.h). Without a launcher Open MPI starts without
 * its daemon, by variables OMPI_MCA_* that are set where the user has not. Nobody gives up a rank
 * that does not answer until the caller sets give_up and patience_s, alike on all ranks. MD_INPUT
 * for a variable of md_wishes that is none of its values; md_context_end is called all the same.
 * Collective. When MPI cannot start, MPI itself ends the process. */
md_status md_context_open(md_context *context, int *argc, char ***argv);
/* Ends all that the context holds, and MPI where the context has started it. Collective. */
void md_context_end(md_context *context);
/* A run of its own for some of the ranks: ranks that pass the same `group` >= 0 get a context of
 * their ranks in the order of `whole`, on the GPU of their number on the host. Both may be used,
 * each for what is collective among its ranks; a failure is told in the one that it was met in.
 * MD_ENVIRONMENT. Collective over `whole`. */
md_status md_context_split(md_context *whole, int group, md_context *part);
/* Ends it; `whole` learns of the GPU that it opened. Collective over `whole`. */
void md_context_join(md_context *whole, md_context *part);

/* Records a failure and returns `status`, so that `return md_fail(...)` is one line. The message
 * says the rule, then the value, then what to do; no newline. Bytes that no terminal should get
 * (from files, file names) are escaped: base/text.h. Local. */
md_status md_fail(md_context *context, md_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same for "not enough memory" with what was asked for: MD_ENVIRONMENT. */
md_status md_fail_memory(md_context *context, size_t bytes, const char *what);

/* Prints one warning line on stderr, rank 0 only; also when quiet. Escaped as in md_fail. */
void md_warn(const md_context *context, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Prints on stdout, rank 0 only, not when quiet. No newline is added; md_show follows one. Newlines
 * of the format stay, and one at the end; those that an argument brings, such as the name of a
 * file, and other control characters are escaped as in md_fail. */
void md_say(const md_context *context, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Flushes stdout, for who follows the file or the pipe. Who closed a pipe wants no more, which is
 * no failure. Local. */
void md_show(void);

/* Collective. Every rank passes its own status; all get back the worst one of these and of the
 * deferred ones, and the message of the lowest rank that failed with it. Call it before a
 * collective step, so that one failing rank ends all of them with the same message. */
md_status md_agree(md_context *context, md_status status);
/* The same where all ranks come at nearly the same time, after `what`: a rank that has waited
 * patience_s for the others gives up with that, or with its own failure, a few seconds later
 * (base/watch.h), unless they come until then. It costs a little more than md_agree. */
md_status md_agree_soon(md_context *context, md_status status, const char *what);
/* The same at the end of a program, on the context of md_context_open: a rank that has failed comes
 * here although the others, which do not know, may be in another collective step. It is not taken
 * for a part of that; if they have not come after patience_s, it gives up (base/watch.h). */
md_status md_agree_last(md_context *context, md_status status);
/* For a step that fails on this rank alone between two agreements, in a loop that cannot agree
 * after every step: keeps the failure, the first one with its message, and returns MD_OK, so that
 * this rank goes on to take part in all that the others do (with values that mean nothing). The
 * next md_agree, or the next global sum (md_sum_finish), then ends all ranks with it. With one rank
 * there is nobody to wait for: returns `status`. Local. */
md_status md_defer(md_context *context, md_status status);

/* Collective: rank 0's bytes to every rank. */
void md_broadcast(const md_context *context, void *data, size_t bytes);
/* Collective: `bytes` of every rank to all ranks, all[rank * bytes] on. Below 2 GiB in all. */
void md_gather_all(const md_context *context, const void *mine, size_t bytes, void *all);
/* Collective: waits for all ranks. */
void md_barrier(const md_context *context);
/* Collective: the largest / smallest value over ranks, in place. NaN stays. */
void md_maximum(const md_context *context, double *values, int count);
void md_minimum(const md_context *context, double *values, int count);
/* Collective: the sum over the ranks of this host, and their number. */
long long md_sum_on_host(const md_context *context, long long value, int *ranks);
/* Collective: the integer sums over ranks, in place. */
void md_sum_integers(const md_context *context, long long *values, int count);

/* free() of each, in C. */
#define MD_FREE(...)                                                                               \
  md_free((void *[]){__VA_ARGS__}, sizeof(void *[]){__VA_ARGS__} / sizeof(void *))
void md_free(void *const *memory, size_t count);

MD_C_END
