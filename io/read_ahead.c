#include "io/read_ahead.h"

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum {
  MOST_AHEAD = 8, /* slabs under way: what keeps a disk busy that answers late */
  STEP = 1 << 20  /* bytes of a request; the kernel cuts longer ones short */
};

struct md_read_ahead {
  const md_geometry *geometry;
  const md_slab_plan *plan;
  int file;
  int64_t offset;
  size_t site_bytes;
  pthread_t thread;
  sem_t room; /* slabs that may be announced */
  atomic_bool stopped;
};

static void announce(const md_read_ahead *a, const md_slab *slab) {
  const int *origin = a->geometry->origin, *local = a->geometry->local;
  const int first[MD_DIMS] = {origin[0], origin[1], origin[2] + slab->z, origin[3] + slab->t};
  const int last[MD_DIMS] = {origin[0] + local[0] - 1, origin[1] + local[1] - 1,
                             first[2] + slab->nz - 1, first[3] + slab->nt - 1};
  const int64_t begin = md_global_index(a->geometry, first) * (int64_t)a->site_bytes;
  const int64_t end = (md_global_index(a->geometry, last) + 1) * (int64_t)a->site_bytes;
  for (int64_t at = begin; at < end && !a->stopped; at += STEP)
    (void)posix_fadvise(a->file, a->offset + at, STEP, POSIX_FADV_WILLNEED);
}

static void *announce_all(void *data) {
  md_read_ahead *a = data;
  for (int i = 0; i < a->plan->count; i++) {
    while (sem_wait(&a->room) != 0) continue; /* a signal */
    if (a->stopped) break;
    const md_slab slab = md_slab_at(a->geometry, a->plan, i);
    announce(a, &slab);
  }
  return NULL;
}

md_read_ahead *md_read_ahead_start(const char *path, const md_geometry *geometry,
                                   const md_slab_plan *plan, int64_t offset, size_t site_bytes) {
  md_read_ahead *a = calloc(1, sizeof *a);
  if (!a) return NULL;
  a->geometry = geometry;
  a->plan = plan;
  a->offset = offset;
  a->site_bytes = site_bytes;
  a->file = open(path, O_RDONLY | O_CLOEXEC);
  sem_init(&a->room, 0, MOST_AHEAD);
  if (a->file >= 0 && pthread_create(&a->thread, NULL, announce_all, a) == 0) return a;
  if (a->file >= 0) close(a->file);
  sem_destroy(&a->room);
  free(a);
  return NULL;
}

void md_read_ahead_advance(md_read_ahead *a) {
  if (a) sem_post(&a->room);
}

void md_read_ahead_stop(md_read_ahead *a) {
  if (!a) return;
  a->stopped = true;
  sem_post(&a->room);
  pthread_join(a->thread, NULL);
  close(a->file);
  sem_destroy(&a->room);
  free(a);
}
