#ifndef MD_IO_READ_AHEAD_H
#define MD_IO_READ_AHEAD_H

#include "io/slabs.h"

/* Tells the system what will be read next, from a thread of its own: asking costs a core as much
 * as the copy that follows, and a disk that answers late needs many requests under way. */
typedef struct md_read_ahead md_read_ahead;

/* For slabs 0, 1, ... of the plan from a file at `path` that holds the lattice's sites from
 * `offset` on. A hint: NULL where the system has no room for it. geometry and plan outlive it.
 * Local. */
md_read_ahead *md_read_ahead_start(const char *path, const md_geometry *geometry,
                                   const md_slab_plan *plan, int64_t offset, size_t site_bytes);
/* The next slab is about to be read. NULL does nothing. */
void md_read_ahead_advance(md_read_ahead *ahead);
/* Ends the thread and frees. NULL does nothing. */
void md_read_ahead_stop(md_read_ahead *ahead);

#endif
