#pragma once

#include "base/context.h"
#include <stdint.h>

/* How threads and ranks wait for each other. OpenMP threads spin before they sleep, libgomp's for
 * several milliseconds by default: longer than a time slice, so that where something else runs on
 * the cores, a thread that waits takes the core from the one that it waits for, and a solve
 * becomes tens of times slower than with one thread. */

typedef struct md_cores {
  int affinity; /* cores that this process may run on, also where OpenMP has bound its threads */
  int quota;    /* cores' worth of time that its control groups give to all ranks; INT_MAX: any */
  int online;   /* cores of the host */
  int ranks;    /* processes of this run on this host, as far as the launcher tells; else 1 */
  int others;   /* processes of others that are running or ready to on the host */
} md_cores;

/* All but `others`, which is 0. Local. `root` stands before /proc and /sys: "" for the system
 * itself. */
void md_cores_look(const char *root, md_cores *cores);
/* The same cores by their numbers, "0-7,16", as many as fit; empty where the system does not tell.
 * Local. */
enum { MD_CORES_BYTES = 512 };
void md_cores_list(char text[MD_CORES_BYTES]);
/* True where `threads` a rank (0: as many as there are cores for) and what else runs there are more
 * than the cores. */
bool md_cores_shared(const md_cores *cores, int threads);
/* Threads of a rank when nobody asks for a number: the cores over the ranks that share them. */
int md_cores_threads(const md_cores *cores);

/* To be called first in main, before MPI starts. Nothing is done where MINIDIRAC_WAITING is set.
 * Where none of OMP_WAIT_POLICY, GOMP_SPINCOUNT and KMP_BLOCKTIME is set: threads that wait sleep
 * at once where cores are shared, else after a short spin, and ranks that wait yield where cores
 * are shared (Open MPI's mpi_yield_when_idle). The OpenMP library reads its environment before
 * main, so the program starts itself once more (execv, same process id, the cores that it was
 * started with); where that cannot be done, it goes on as it is. */
void md_waiting_prepare(char **argv);
/* What came of it: "passive", "brief", or "environment" where the user's choice stands,
 * MINIDIRAC_WAITING=off too. */
const char *md_waiting_name(void);

/* Whether every rank can have `threads` threads, its own number each, with the stacks of
 * OMP_STACKSIZE: starts so many and ends them again, since what the limits of users, control groups
 * and address spaces leave cannot be read. The OpenMP library ends the process where it gets none.
 * Stacks of less than 2 MiB, of threads or of the process, are refused too: what is too large for
 * one ends it. MD_ENVIRONMENT on all ranks with the first that cannot. Collective. */
md_status md_threads_check(md_context *context, int threads);

/* "SLURM_JOB_ID=17" of the batch system that started the run; empty: none did. Local. */
void md_batch_job(char *job, size_t bytes);

/* The number behind `key` at the start of a line of a file, in its unit; without a key the first
 * number of the file. -1 when there is none. Local. */
int64_t md_number_in(const char *file_name, const char *key);
/* The first line of a file, without its end; empty where there is none. Local. */
void md_line_in(const char *file_name, char *line, int bytes);
/* Calls visit for this process's control groups and their ancestors up to the mount, versions 1
 * and 2, wherever groups are mounted: where a container hides their names the mount itself is left.
 * `controllers` is ",memory,hugetlb,", ",," for version 2; the folder need not be there. `root` as
 * above. Local. */
void md_each_control_group(const char *root,
                           void (*visit)(void *user, const char *controllers, const char *folder),
                           void *user);
