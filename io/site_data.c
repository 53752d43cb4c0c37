#include "io/site_data.h"
#include "base/memory.h"
#include "base/ranks_mpi.h"

#include <fcntl.h>
#include <libdeflate.h>
#include <omp.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SLAB_BYTES = 16 << 20 };

md_slab_plan md_slab_plan_make(const md_geometry *geometry, size_t site_bytes, size_t most_bytes,
                               int z_multiple) {
  const int *local = geometry->local;
  const size_t plane = site_bytes * local[0] * local[1];
  const size_t slice = plane * local[2];
  md_slab_plan plan = {.z_planes = local[2], .t_slices = 1};
  if (slice <= most_bytes) {
    plan.t_slices = most_bytes / slice < (size_t)local[3] ? (int)(most_bytes / slice) : local[3];
  } else {
    plan.z_planes = most_bytes > plane ? (int)(most_bytes / plane) : 1;
    plan.z_planes -= plan.z_planes % z_multiple;
    if (plan.z_planes < z_multiple) plan.z_planes = z_multiple;
    if (plan.z_planes > local[2]) plan.z_planes = local[2];
  }
  plan.count = (local[3] + plan.t_slices - 1) / plan.t_slices *
               ((local[2] + plan.z_planes - 1) / plan.z_planes);
  return plan;
}

md_slab md_slab_at(const md_geometry *geometry, const md_slab_plan *plan, int i) {
  const int z_parts = (geometry->local[2] + plan->z_planes - 1) / plan->z_planes;
  md_slab slab = {.z = i % z_parts * plan->z_planes,
                  .nz = plan->z_planes,
                  .t = i / z_parts * plan->t_slices,
                  .nt = plan->t_slices};
  if (slab.z + slab.nz > geometry->local[2]) slab.nz = geometry->local[2] - slab.z;
  if (slab.t + slab.nt > geometry->local[3]) slab.nt = geometry->local[3] - slab.t;
  return slab;
}

size_t md_slab_bytes(const md_geometry *geometry, const md_slab_plan *plan, size_t site_bytes) {
  const md_slab first = md_slab_at(geometry, plan, 0);
  return (size_t)md_slab_sites(geometry, &first) * site_bytes;
}

md_slab_plan md_lattice_slabs(const md_lattice_header *header, const md_geometry *geometry) {
  return md_slab_plan_make(geometry, md_site_bytes(&header->site), SLAB_BYTES,
                           header->planes > 0 ? header->planes : 1);
}

static uint32_t rotate_left(uint32_t word, unsigned by) {
  return word << by | word >> (-by & 31u); /* by == 0 included */
}

/* Another part of the same kind. */
static void add_sums(md_checksum *sum, const md_checksum *part) {
  sum->damaged += part->damaged;
  if (sum->kind == MD_CHECKSUM_NERSC) {
    sum->a += part->a;
  } else {
    sum->a ^= part->a;
    sum->b ^= part->b;
  }
}

void md_checksum_combine(const md_context *context, md_checksum *sum) {
  uint32_t mine[2] = {sum->a, sum->b}, all[2];
  MPI_Allreduce(mine, all, 2, MPI_UINT32_T, sum->kind == MD_CHECKSUM_NERSC ? MPI_SUM : MPI_BXOR,
                md_mpi(context));
  md_sum_integers(context, &sum->damaged, 1);
  sum->a = all[0];
  sum->b = all[1];
}

void md_checksum_print(const md_checksum *sum, char *text, size_t bytes) {
  if (sum->kind == MD_CHECKSUM_NONE)
    snprintf(text, bytes, "none");
  else if (sum->kind == MD_CHECKSUM_NERSC)
    snprintf(text, bytes, "%08x", sum->a);
  else
    snprintf(text, bytes, "%08x %08x", sum->a, sum->b);
}

/* One row of sites along x: where it lies in the lattice and in memory. */
typedef struct row {
  int parity;         /* of its first site */
  int64_t site;       /* number of its first site of either parity */
  int64_t first;      /* global index of its first site */
  int length, reals;  /* sites; reals of a site on file */
  unsigned char *raw; /* length * reals numbers */
} row;

static row row_at(const md_geometry *geometry, const md_slab *slab, const md_site_format *format,
                  void *raw, int64_t i) {
  const int *local = geometry->local;
  int x[MD_DIMS] = {0, (int)(i % local[1]), (int)(i / local[1] % slab->nz) + slab->z,
                    (int)(i / local[1] / slab->nz) + slab->t};
  row r = {.parity = md_parity(x), .site = md_site(geometry, x), .length = local[0]};
  for (int d = 0; d < MD_DIMS; d++) x[d] += geometry->origin[d];
  r.first = md_global_index(geometry, x);
  r.reals = md_site_reals(format);
  r.raw = (unsigned char *)raw + i * local[0] * (int64_t)md_site_bytes(format);
  return r;
}

/* Two words of 64 bits; the operators work lane by lane. */
typedef uint64_t word_pair __attribute__((vector_size(16)));

/* Reverses the bytes of each real: neighbouring bytes, then pairs of bytes, then words. */
static inline word_pair swapped_reals(word_pair v, int real_bytes) {
  const uint64_t bytes = 0x00ff00ff00ff00ff, pairs = 0x0000ffff0000ffff;
  v = ((v & bytes) << 8) | ((v >> 8) & bytes);
  v = ((v & pairs) << 16) | ((v >> 16) & pairs);
  return real_bytes == 4 ? v : (v << 32) | (v >> 32);
}

static void swap_row(const row *r, int real_bytes) {
  unsigned char *data = r->raw, *end = data + (size_t)r->length * r->reals * real_bytes;
  word_pair v;
  for (; data < end; data += sizeof v) { /* a link is a multiple */
    memcpy(&v, data, sizeof v);
    v = swapped_reals(v, real_bytes);
    memcpy(data, &v, sizeof v);
  }
}

/* XOR of words rotated by their number modulo 29 or 31: words of equal rotation are gathered
 * first, in a loop without a rotation that vectorises. */
static uint32_t rotated_xor(const uint32_t *words, int64_t count, int64_t first, int modulus) {
  uint32_t of_class[31] = {0}, sum = 0;
  int64_t i = 0;
  for (; i + modulus <= count; i += modulus)
    for (int j = 0; j < modulus; j++) of_class[j] ^= words[i + j];
  for (int j = 0; i + j < count; j++) of_class[j] ^= words[i + j];
  for (int j = 0; j < modulus; j++) sum ^= rotate_left(of_class[j], (first + j) % modulus);
  return sum;
}

/* The row's words are in the byte order of this machine, but for SciDAC: big-endian. */
static void add_row(const row *r, int real_bytes, md_checksum *sum) {
  const int64_t words = (int64_t)r->length * r->reals * real_bytes / 4;
  const uint32_t *word = (const uint32_t *)r->raw;
  if (sum->kind == MD_CHECKSUM_SCIDAC) {
    const unsigned site_bytes = (unsigned)(r->reals * real_bytes);
    for (int x = 0; x < r->length; x++) {
      const uint32_t c = libdeflate_crc32(0, r->raw + (size_t)x * site_bytes, site_bytes);
      sum->a ^= rotate_left(c, (unsigned)((r->first + x) % 29));
      sum->b ^= rotate_left(c, (unsigned)((r->first + x) % 31));
    }
  } else if (sum->kind == MD_CHECKSUM_MILC) {
    const int64_t first = r->first * r->reals * real_bytes / 4;
    sum->a ^= rotated_xor(word, words, first, 29);
    sum->b ^= rotated_xor(word, words, first, 31);
  } else if (sum->kind == MD_CHECKSUM_NERSC) {
    for (int64_t i = 0; i < words; i++) sum->a += word[i];
  }
}

/* Fields of a row between file order and planes; T is float or double. Rows on file come first in
 * a link of the field too. */
#define DEFINE_TRANSPOSE(T)                                                                        \
  static void transpose_##T(const row *r, int rows, const md_site_fields *fields, bool store) {    \
    for (int k = 0; k < 2; k++)                                                                    \
      for (int c = 0; c < r->reals; c++) {                                                         \
        const md_field *f = &fields->part[r->parity ^ k][c / (rows * 6)];                          \
        double *plane = (double *)f->data + c % (rows * 6) * f->stride + r->site;                  \
        T *raw = (T *)r->raw + k * r->reals + c;                                                   \
        if (store)                                                                                 \
          for (int i = 0; i < r->length / 2; i++) plane[i] = raw[2 * i * r->reals];                \
        else                                                                                       \
          for (int i = 0; i < r->length / 2; i++) raw[2 * i * r->reals] = (T)plane[i];             \
      }                                                                                            \
  }
DEFINE_TRANSPOSE(float)
DEFINE_TRANSPOSE(double)

/* Row 3 = conj(row 1 x row 2) for the sites of a row, in all links. */
static void complete_row(const row *r, const md_site_fields *links) {
  for (int k = 0; k < MD_PARITIES * MD_DIMS; k++) {
    const md_field *f = &links->part[k & 1][k >> 1];
    double *u = (double *)f->data + r->site;
    for (int j = 0; j < 3; j++) {
      const int p = (j + 1) % 3 * 2, q = (j + 2) % 3 * 2;
      const double *a = u + p * f->stride, *b = u + (6 + q) * f->stride;
      const double *c = u + q * f->stride, *d = u + (6 + p) * f->stride;
      double *out = u + (12 + 2 * j) * f->stride;
      const int64_t im = f->stride;
      for (int i = 0; i < r->length / 2; i++) {
        out[i] = a[i] * b[i] - a[im + i] * b[im + i] - c[i] * d[i] + c[im + i] * d[im + i];
        out[im + i] = c[i] * d[im + i] + c[im + i] * d[i] - a[i] * b[im + i] - a[im + i] * b[i];
      }
    }
  }
}

static void transpose(const row *r, const md_site_format *format, const md_site_fields *fields,
                      bool store) {
  (format->real_bytes == 4 ? transpose_float : transpose_double)(r, format->rows, fields, store);
}

static void unpack_row(const row *r, const md_site_format *format, const md_site_fields *fields,
                       md_checksum *sum) {
  bool swapped = format->big_endian != MD_HOST_BIG_ENDIAN;
  if (sum->kind == MD_CHECKSUM_SCIDAC) {
    if (!format->big_endian) {
      swap_row(r, format->real_bytes);
      swapped = !swapped;
    }
    add_row(r, format->real_bytes, sum);
  }
  if (swapped) swap_row(r, format->real_bytes);
  if (sum->kind != MD_CHECKSUM_SCIDAC) add_row(r, format->real_bytes, sum);
  if (!fields) return;
  transpose(r, format, fields, true);
  if (format->rows == 2) complete_row(r, fields);
}

static void pack_row(const row *r, const md_site_format *format, const md_site_fields *fields,
                     md_checksum *sum) {
  transpose(r, format, fields, false);
  bool big_endian = MD_HOST_BIG_ENDIAN;
  if (sum->kind == MD_CHECKSUM_SCIDAC && !big_endian) {
    swap_row(r, format->real_bytes);
    big_endian = true;
  }
  add_row(r, format->real_bytes, sum);
  if (format->big_endian != big_endian) swap_row(r, format->real_bytes);
}

/* All that reading or writing the sites of this rank takes. What will be read next the system is
 * told from a thread of its own: asking costs a core as much as the copy that follows, and a disk
 * that answers late needs many requests under way. */
enum { MOST_AHEAD = 8 };   /* slabs under way: what keeps a disk busy that answers late */
enum { STEP = 1 << 20 };   /* bytes of a request; the kernel cuts longer ones short */
enum { ROWS_AT_ONCE = 8 }; /* of sites */
typedef struct work {
  md_context *context;
  const md_lattice_header *header;
  const md_geometry *geometry;
  md_slab_plan plan;
  md_slab_move *read; /* NULL: the links are packed, not unpacked */
  void *file, *raw[2];
  const md_site_fields *fields;
  md_checksum *sum;
  int next; /* slab to read */
  md_status status;
  int ahead; /* descriptor for the hints; below 0: none are given */
  pthread_t thread;
  sem_t room; /* slabs that may be announced */
  atomic_bool stopped;
} work;

static void announce(const work *w, const md_slab *slab) {
  const int *origin = w->geometry->origin, *local = w->geometry->local;
  const int first[MD_DIMS] = {origin[0], origin[1], origin[2] + slab->z, origin[3] + slab->t};
  const int last[MD_DIMS] = {origin[0] + local[0] - 1, origin[1] + local[1] - 1,
                             first[2] + slab->nz - 1, first[3] + slab->nt - 1};
  const int64_t site_bytes = (int64_t)md_site_bytes(&w->header->site);
  const int64_t begin = md_global_index(w->geometry, first) * site_bytes;
  const int64_t end = (md_global_index(w->geometry, last) + 1) * site_bytes;
  for (int64_t at = begin; at < end && !w->stopped; at += STEP)
    (void)posix_fadvise(w->ahead, w->header->offset + at, STEP, POSIX_FADV_WILLNEED);
}

static void *announce_all(void *data) {
  work *w = data;
  for (int i = 0; i < w->plan.count; i++) {
    while (sem_wait(&w->room) != 0) continue; /* a signal */
    if (w->stopped) break;
    const md_slab slab = md_slab_at(w->geometry, &w->plan, i);
    announce(w, &slab);
  }
  return NULL;
}

static void ahead_start(work *w, const char *path) {
  w->ahead = open(path, O_RDONLY | O_CLOEXEC);
  sem_init(&w->room, 0, MOST_AHEAD);
  if (w->ahead < 0 || pthread_create(&w->thread, NULL, announce_all, w) == 0) return;
  close(w->ahead);
  w->ahead = -1;
}

static void ahead_stop(work *w) {
  w->stopped = true;
  sem_post(&w->room);
  if (w->ahead >= 0) {
    pthread_join(w->thread, NULL);
    close(w->ahead);
  }
  sem_destroy(&w->room);
}

/* What the first thread does while the others unpack. */
static void read_next(work *w) {
  if (w->next < w->plan.count) {
    const md_slab slab = md_slab_at(w->geometry, &w->plan, w->next);
    sem_post(&w->room);
    w->status = w->read(w->context, w->file, &slab, w->raw[w->next % 2]);
  }
  w->next++;
}

/* Unpacks or packs a slab; when one is read the first thread reads the next before it joins. */
static void convert(work *w, const md_slab *slab, void *raw) {
  const int64_t rows = md_slab_sites(w->geometry, slab) / w->geometry->local[0];
  const md_site_format *format = &w->header->site;
#pragma omp parallel
  {
    md_checksum mine = {.kind = w->sum->kind};
    if (w->read && omp_get_thread_num() == 0) read_next(w);
#pragma omp for schedule(dynamic, ROWS_AT_ONCE)
    for (int64_t i = 0; i < rows; i++) {
      const row r = row_at(w->geometry, slab, format, raw, i);
      (w->read ? unpack_row : pack_row)(&r, format, w->fields, &mine);
    }
#pragma omp critical
    add_sums(w->sum, &mine);
  }
}

md_status md_sites_read(md_context *context, const char *path, const md_lattice_header *header,
                        const md_geometry *geometry, md_slab_move *read, void *file, bool together,
                        const md_site_fields *fields, md_checksum *sum) {
  work w = {context, header, geometry, .read = read, .file = file, .fields = fields, .sum = sum};
  w.plan = md_lattice_slabs(header, geometry);
  const size_t bytes = md_slab_bytes(geometry, &w.plan, md_site_bytes(&header->site));
  for (int i = 0; i < 2 && w.status == MD_OK; i++)
    w.status = md_allocate(context, bytes, "input and output buffer", &w.raw[i]);
  if (together) w.status = md_agree(context, w.status);
  if (w.status == MD_OK) {
    ahead_start(&w, path);
    read_next(&w);
    for (int i = 0; i < w.plan.count && w.status == MD_OK; i++) {
      const md_slab slab = md_slab_at(geometry, &w.plan, i);
      convert(&w, &slab, w.raw[i % 2]);
    }
    ahead_stop(&w);
  }
  MD_FREE(w.raw[0], w.raw[1]);
  return w.status;
}

md_status md_sites_write(md_context *context, md_lattice_header *header,
                         const md_site_fields *fields, md_slab_move *write, void *file) {
  work w = {context, header, fields->geometry, .fields = fields, .sum = &header->checksum};
  w.plan = md_lattice_slabs(header, w.geometry);
  const size_t bytes = md_slab_bytes(w.geometry, &w.plan, md_site_bytes(&header->site));
  const char *what = write ? "output buffer" : "checksum of links";
  header->checksum = (md_checksum){.kind = header->checksum.kind};
  md_status status = md_agree(context, md_allocate(context, bytes, what, &w.raw[0]));
  for (int i = 0; i < w.plan.count && status == MD_OK; i++) {
    const md_slab slab = md_slab_at(w.geometry, &w.plan, i);
    convert(&w, &slab, w.raw[0]);
    if (write) status = write(context, file, &slab, w.raw[0]);
  }
  free(w.raw[0]);
  if (status == MD_OK) md_checksum_combine(context, &header->checksum);
  return status;
}
