#pragma once

#include "base/context.h"
#include <stdint.h>

MD_C_BEGIN

/* Memory is estimated before the first allocation of a command, compared with what there is and
 * refused with both numbers: Linux promises more than it has, and ends the process later. What
 * operators, solvers and searches take is counted by the calls that allocate it, in a dry run;
 * for links that are read or made it stands beside the functions that do (md_lattice_load_bytes,
 * md_smear_need). Every report shows estimate and peak side by side. */

/* Bytes that a rank is going to allocate. */
typedef struct md_memory_need {
  int64_t host, device;
} md_memory_need;

static inline md_memory_need md_memory_larger(md_memory_need a, md_memory_need b) {
  const md_memory_need larger = {a.host > b.host ? a.host : b.host,
                                 a.device > b.device ? a.device : b.device};
  return larger;
}

/* A dry run: md_allocate, md_device_allocate and all that is made with them (fields, links,
 * operators, solvers) count their bytes and hand out no memory. What would read or fill it is left
 * out where md_counts says so: files are described and not read, operators loaded without links,
 * and solvers allocate all that they may come to need and iterate no more (but for a deflation that
 * iterations show a need of, which asks for memory then and goes without). Nothing tells the count
 * of what is freed; between steps that free what they took it is set back to a mark. */
typedef struct md_memory_count {
  md_memory_need now, most;
} md_memory_count;

static inline bool md_counts(const md_context *context) {
  return context->count != NULL;
}
/* In a dry run: adds what is about to be allocated. Local. */
void md_count_memory(md_context *context, md_memory_need more);
/* What is counted now, and back to it: what came since is freed. Local; without effect outside of a
 * dry run. */
md_memory_need md_memory_mark(const md_context *context);
void md_memory_return_to(md_context *context, md_memory_need mark);

/* *need = the most that `work`, as a dry run without a word, holds at once; a dry run around it
 * does not count that. Its status; collective if it is. */
md_status md_memory_foresee(md_context *context, md_status (*work)(md_context *context, void *user),
                            void *user, md_memory_need *need);

/* What this process may still take. */
typedef struct md_memory_available {
  int64_t host;    /* on the whole host, for all its ranks together */
  char limit[256]; /* what sets it: "MemAvailable" or the file of a cgroup's limit */
  int64_t process; /* of this process alone (RLIMIT_AS); INT64_MAX: no limit */
} md_memory_available;

/* The least of MemAvailable and of the limits of this process's cgroup (v1 or v2) and its
 * ancestors less what they use; file cache that can be dropped counts as free. `root` stands
 * before /proc and /sys: "" for the system itself. Local. */
void md_memory_look(const char *root, md_memory_available *available);

/* MD_ENVIRONMENT when the need of all ranks of a host exceeds what it has, that of a rank its own
 * limit, or need.device the free memory of its GPU. `what` begins the message: "solve". The need
 * is kept in the context for the report. In a dry run always MD_OK: it is part of a larger one.
 * Collective. */
md_status md_memory_require(md_context *context, const md_memory_need *need, const char *what);
/* The same for one allocation that is large and not yet counted. Local. */
md_status md_memory_check(md_context *context, size_t bytes, const char *what);

/* Bytes of memory that this process holds now, and the most that it ever held. Local. */
int64_t md_memory_resident(void);
int64_t md_memory_peak(void);

MD_C_END
