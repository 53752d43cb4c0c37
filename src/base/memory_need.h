#ifndef MD_BASE_MEMORY_NEED_H
#define MD_BASE_MEMORY_NEED_H

#include "base/context.h"
#include <stdint.h>

/* Memory is estimated before the first allocation of a command, compared with what there is and
 * refused with both numbers: Linux promises more than it has, and ends the process later. The
 * parts of an estimate stand beside the functions that allocate them (md_gauge_bytes,
 * md_backend_need, ...); every report shows estimate and peak side by side. */

/* Bytes that a rank is going to allocate. */
typedef struct md_memory_need {
  int64_t host, device;
} md_memory_need;

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
 * is kept in the context for the report. Collective. */
md_status md_memory_require(md_context *context, const md_memory_need *need, const char *what);
/* The same for one allocation that is large and not yet counted. Local. */
md_status md_memory_check(md_context *context, size_t bytes, const char *what);

/* Bytes of memory that this process holds now, and the most that it ever held. Local. */
int64_t md_memory_resident(void);
int64_t md_memory_peak(void);

#endif
