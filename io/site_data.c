#include "io/site_data.h"
#include "base/ranks_mpi.h"

#include <libdeflate.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

static uint32_t rotate_left(uint32_t word, unsigned by) {
  return word << by | word >> (-by & 31u); /* by == 0 included */
}

void md_checksum_add(md_checksum *sum, const md_checksum *part) {
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
  r.reals = MD_DIMS * format->rows * 6;
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

static inline void swap_bytes(unsigned char *data, size_t bytes, int real_bytes) {
  word_pair v;
  for (size_t i = 0; i < bytes; i += sizeof v) { /* a link is a multiple */
    memcpy(&v, data + i, sizeof v);
    v = swapped_reals(v, real_bytes);
    memcpy(data + i, &v, sizeof v);
  }
}

static void swap_row(const row *r, int real_bytes) {
  const size_t bytes = (size_t)r->length * r->reals * real_bytes;
  if (real_bytes == 4)
    swap_bytes(r->raw, bytes, 4);
  else
    swap_bytes(r->raw, bytes, 8);
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

/* Links of a row between file order and planes; T is float or double. Rows on file come first in
 * a link of the field too. */
#define DEFINE_TRANSPOSE(T)                                                                        \
  static void store_##T(const row *r, int rows, md_gauge *gauge) {                                 \
    for (int k = 0; k < 2; k++)                                                                    \
      for (int c = 0; c < r->reals; c++) {                                                         \
        const md_field *f = &gauge->links[r->parity ^ k][c / (rows * 6)];                          \
        double *plane = (double *)f->data + c % (rows * 6) * f->stride + r->site;                  \
        const T *raw = (const T *)r->raw + k * r->reals + c;                                       \
        for (int i = 0; i < r->length / 2; i++) plane[i] = raw[2 * i * r->reals];                  \
      }                                                                                            \
  }                                                                                                \
  static void fetch_##T(const row *r, int rows, const md_gauge *gauge) {                           \
    for (int k = 0; k < 2; k++)                                                                    \
      for (int c = 0; c < r->reals; c++) {                                                         \
        const md_field *f = &gauge->links[r->parity ^ k][c / (rows * 6)];                          \
        const double *plane = (const double *)f->data + c % (rows * 6) * f->stride + r->site;      \
        T *raw = (T *)r->raw + k * r->reals + c;                                                   \
        for (int i = 0; i < r->length / 2; i++) raw[2 * i * r->reals] = (T)plane[i];               \
      }                                                                                            \
  }
DEFINE_TRANSPOSE(float)
DEFINE_TRANSPOSE(double)

/* Row 3 = conj(row 1 x row 2) for the sites of a row, in all links. */
static void complete_row(const row *r, md_gauge *gauge) {
  for (int k = 0; k < MD_PARITIES * MD_DIMS; k++) {
    const md_field *f = &gauge->links[k & 1][k >> 1];
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

static bool host_big_endian(void) {
  return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
}

static void unpack_row(const row *r, const md_site_format *format, md_gauge *gauge,
                       md_checksum *sum) {
  bool swapped = format->big_endian != host_big_endian();
  if (sum->kind == MD_CHECKSUM_SCIDAC) {
    if (!format->big_endian) {
      swap_row(r, format->real_bytes);
      swapped = !swapped;
    }
    add_row(r, format->real_bytes, sum);
  }
  if (swapped) swap_row(r, format->real_bytes);
  if (sum->kind != MD_CHECKSUM_SCIDAC) add_row(r, format->real_bytes, sum);
  if (!gauge) return;
  if (format->real_bytes == 4)
    store_float(r, format->rows, gauge);
  else
    store_double(r, format->rows, gauge);
  if (format->rows == 2) complete_row(r, gauge);
}

static void pack_row(const row *r, const md_site_format *format, const md_gauge *gauge,
                     md_checksum *sum) {
  if (format->real_bytes == 4)
    fetch_float(r, format->rows, gauge);
  else
    fetch_double(r, format->rows, gauge);
  bool big_endian = host_big_endian();
  if (sum->kind == MD_CHECKSUM_SCIDAC && !big_endian) {
    swap_row(r, format->real_bytes);
    big_endian = true;
  }
  add_row(r, format->real_bytes, sum);
  if (format->big_endian != big_endian) swap_row(r, format->real_bytes);
}

/* What the first thread does while the others unpack. */
typedef struct reading {
  md_context *context;
  md_slab_read *read;
  void *file, *raw[2];
  int next, count; /* slab to read; all slabs */
  md_status status;
} reading;

static void read_next(reading *r) {
  if (r->next < r->count) r->status = r->read(r->context, r->file, r->next, r->raw[r->next % 2]);
  r->next++;
}

/* Unpacks a slab; the first thread reads the next one before it joins. */
static void unpack(const md_geometry *geometry, const md_slab *slab, const md_site_format *format,
                   void *raw, md_gauge *gauge, md_checksum *sum, reading *ahead) {
  enum { ROWS = 8 }; /* of sites at once */
  const int64_t rows = md_slab_sites(geometry, slab) / geometry->local[0];
#pragma omp parallel
  {
    md_checksum mine = {.kind = sum->kind};
    if (omp_get_thread_num() == 0) read_next(ahead);
#pragma omp for schedule(dynamic, ROWS)
    for (int64_t i = 0; i < rows; i++) {
      const row r = row_at(geometry, slab, format, raw, i);
      unpack_row(&r, format, gauge, &mine);
    }
#pragma omp critical
    md_checksum_add(sum, &mine);
  }
}

md_status md_sites_read(md_context *context, const md_geometry *geometry, const md_slab_plan *plan,
                        const md_site_format *format, md_slab_read *read, void *file, void *raw[2],
                        md_gauge *gauge, md_checksum *sum) {
  reading ahead = {.context = context,
                   .read = read,
                   .file = file,
                   .raw = {raw[0], raw[1]},
                   .count = plan->count};
  read_next(&ahead);
  for (int i = 0; i < plan->count && ahead.status == MD_OK; i++) {
    const md_slab slab = md_slab_at(geometry, plan, i);
    unpack(geometry, &slab, format, raw[i % 2], gauge, sum, &ahead);
  }
  return ahead.status;
}

void md_sites_pack(const md_geometry *geometry, const md_slab *slab, const md_site_format *format,
                   const md_gauge *gauge, void *raw, md_checksum *sum) {
  const int64_t rows = md_slab_sites(geometry, slab) / geometry->local[0];
#pragma omp parallel
  {
    md_checksum mine = {.kind = sum->kind};
#pragma omp for schedule(static)
    for (int64_t i = 0; i < rows; i++) {
      const row r = row_at(geometry, slab, format, raw, i);
      pack_row(&r, format, gauge, &mine);
    }
#pragma omp critical
    md_checksum_add(sum, &mine);
  }
}
