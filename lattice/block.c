#include "lattice/block.h"
#include "lattice/sum.h"

#include <stdlib.h>
#include <string.h>

enum { COLOURS = 3, MOST = 2 * MD_MAX_BLOCK };

/* The n complex numbers of a site and colour. */
static double *row_of(const md_field *f, int64_t site, int colour) {
  return (double *)f->data + (site * COLOURS + colour) * f->n_rhs * 2;
}

/* cell[i][j] += sum over colours of conj(x_i) y_j for i <= j */
static void add_site(const md_field *x, const md_field *y, int64_t site, double *cell) {
  const int n = x->n_rhs;
  for (int colour = 0; colour < COLOURS; colour++) {
    const double *u = row_of(x, site, colour), *v = row_of(y, site, colour);
    for (int i = 0; i < n; i++) {
      const double re = u[2 * i], im = u[2 * i + 1];
      double *to = cell + 2 * i * n;
      for (int j = i; j < n; j++) {
        to[2 * j] += re * v[2 * j] + im * v[2 * j + 1];
        to[2 * j + 1] += re * v[2 * j + 1] - im * v[2 * j];
      }
    }
  }
}

/* Adds the aligned 2x2x2x2 cells from `begin` on, eight sites of the parity each, in the order of
 * lattice/sum.h: what is added does not depend on the cut. */
static void add_cells(const md_field *x, const md_field *y, int64_t begin, int64_t end,
                      double *cell, md_sum *sums) {
  const md_geometry *g = x->geometry;
  const int reals = 2 * x->n_rhs * x->n_rhs, half = g->local[0] / 2;
  const int n[3] = {g->local[1] / 2, g->local[2] / 2, g->local[3] / 2};
  for (int64_t k = begin; k < end; k++) {
    const int64_t first = k % half, row = k / half;
    const int64_t c[3] = {row % n[0], row / n[0] % n[1], row / n[0] / n[1]};
    memset(cell, 0, (size_t)reals * sizeof *cell);
    for (int corner = 0; corner < 8; corner++) {
      const int64_t line =
          ((2 * c[2] + (corner >> 2)) * g->local[2] + 2 * c[1] + (corner >> 1 & 1)) * g->local[1] +
          2 * c[0] + (corner & 1);
      add_site(x, y, line * half + first, cell);
    }
    for (int i = 0; i < x->n_rhs; i++)
      for (int e = 2 * i * (x->n_rhs + 1); e < 2 * (i + 1) * x->n_rhs; e++)
        md_sum_add(&sums[e], cell[e]);
  }
}

md_status md_block_gram(md_context *context, const md_field *x, const md_field *y, double *gram) {
  const int n = x->n_rhs, reals = 2 * n * n, threads = context->threads;
  const int64_t cells = x->sites / 8;
  md_sum *sums = calloc((size_t)threads * (size_t)reals, sizeof *sums);
  double *work = calloc((size_t)threads * (size_t)reals, sizeof *work);
  const md_status status = md_agree(
      context, sums && work ? MD_OK
                            : md_fail_memory(context, (size_t)threads * (size_t)reals * 600,
                                             "sums of a block"));
  if (status == MD_OK) {
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int t = 0; t < threads; t++)
      add_cells(x, y, cells * t / threads, cells * (t + 1) / threads,
                work + (size_t)t * (size_t)reals, sums + (size_t)t * (size_t)reals);
    for (int t = 1; t < threads; t++)
      for (int e = 0; e < reals; e++)
        md_sum_merge(&sums[e], &sums[(size_t)t * (size_t)reals + (size_t)e]);
    md_sum_finish(context, sums, reals, gram);
    for (int i = 0; i < n; i++)
      for (int j = 0; j < i; j++) {
        gram[2 * (i * n + j)] = gram[2 * (j * n + i)];
        gram[2 * (i * n + j) + 1] = -gram[2 * (j * n + i) + 1];
      }
  }
  free(sums);
  free(work);
  return status;
}

/* to += from times the matrix */
static void add_product(int n, const double *from, const double *matrix, double *to) {
  for (int i = 0; i < n; i++) {
    const double re = from[2 * i], im = from[2 * i + 1];
    const double *m = matrix + 2 * i * n;
    for (int j = 0; j < n; j++) {
      to[2 * j] += re * m[2 * j] - im * m[2 * j + 1];
      to[2 * j + 1] += re * m[2 * j + 1] + im * m[2 * j];
    }
  }
}

void md_block_combine(const double *a, const md_field *x, const double *b, md_field *y) {
  const int n = y->n_rhs;
#pragma omp parallel for schedule(static)
  for (int64_t k = 0; k < y->sites * COLOURS; k++) {
    double sum[MOST] = {0}, *to = row_of(y, k / COLOURS, (int)(k % COLOURS));
    const double *from = x ? row_of(x, k / COLOURS, (int)(k % COLOURS)) : NULL;
    if (b)
      add_product(n, to, b, sum);
    else
      memcpy(sum, to, 2 * (size_t)n * sizeof *sum);
    if (from && a) add_product(n, from, a, sum);
    for (int e = 0; from && !a && e < 2 * n; e++) sum[e] += from[e];
    memcpy(to, sum, 2 * (size_t)n * sizeof *sum);
  }
}
