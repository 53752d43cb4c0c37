#include "gemm/distributed.h"

#ifdef MINIDIRAC_HAVE_SCALAPACK
#include "base/ranks_mpi.h"
#include "base/timer.h"
#include "gemm/blas.h"

#include <stdlib.h>

/* ScaLAPACK's own C and Fortran entries; no header comes with it. */
int Csys2blacs_handle(MPI_Comm communicator);
void Cfree_blacs_system_handle(int handle);
void Cblacs_gridmap(int *context, int *map, int ld, int rows, int columns);
void Cblacs_gridexit(int context);
void pdgemm_(const char *, const char *, const int *, const int *, const int *, const double *,
             const double *, const int *, const int *, const int *, const double *, const int *,
             const int *, const int *, const double *, double *, const int *, const int *,
             const int *);
void psgemm_(const char *, const char *, const int *, const int *, const int *, const float *,
             const float *, const int *, const int *, const int *, const float *, const int *,
             const int *, const int *, const float *, float *, const int *, const int *,
             const int *);

/* Row-major parts read as column-major ones are the transposed matrix on the transposed grid:
 * C^T <- alpha B^T A^T + beta C^T. */
typedef struct descriptor {
  int word[9]; /* type, context, rows, columns, block rows, block columns, first process 2x, ld */
} descriptor;

static descriptor describe(int blacs, const md_gemm_layout *layout) {
  const int64_t columns = md_gemm_layout_columns(layout);
  return (descriptor){{1, blacs, (int)layout->columns.length, (int)layout->rows.length,
                       (int)layout->columns.block, (int)layout->rows.block, 0, 0,
                       columns > 0 ? (int)columns : 1}};
}

static void multiply(const md_gemm_request *request, int blacs, const void *a, const void *b,
                     void *c) {
  const md_gemm_problem *p = &request->problem;
  const md_gemm_layout a_layout = md_gemm_part_layout(request, MD_GEMM_A);
  const md_gemm_layout b_layout = md_gemm_part_layout(request, MD_GEMM_B);
  const md_gemm_layout c_layout = md_gemm_part_layout(request, MD_GEMM_C);
  const descriptor da = describe(blacs, &a_layout), db = describe(blacs, &b_layout),
                   dc = describe(blacs, &c_layout);
  const int m = (int)p->m, n = (int)p->n, k = (int)p->k, one = 1;
  if (p->precision == MD_GEMM_DOUBLE) {
    pdgemm_("N", "N", &n, &m, &k, &p->alpha, b, &one, &one, db.word, a, &one, &one, da.word,
            &p->beta, c, &one, &one, dc.word);
  } else {
    const float alpha = (float)p->alpha, beta = (float)p->beta;
    psgemm_("N", "N", &n, &m, &k, &alpha, b, &one, &one, db.word, a, &one, &one, da.word, &beta, c,
            &one, &one, dc.word);
  }
}

/* The grid of the descriptors: its row is our column. map is column-major. */
static md_status open_grid(md_context *context, const md_gemm_grid *grid, int handle, int *blacs) {
  int *map = malloc((size_t)context->ranks * sizeof *map);
  if (!map) return md_fail_memory(context, (size_t)context->ranks * sizeof *map, "rank map");
  for (int rank = 0; rank < context->ranks; rank++) map[rank] = rank;
  *blacs = handle;
  Cblacs_gridmap(blacs, map, grid->columns, grid->columns, grid->rows);
  free(map);
  return MD_OK;
}

/* Of the BLAS behind it, where that is OpenBLAS; of any other nothing is known. */
static int threads(int asked) {
  const md_blas_library library = md_blas_loaded();
  return md_blas_threads(&library, asked);
}

static md_status multiply_dealt(md_context *context, const md_gemm_request *request, const void *a,
                                const void *b, void *c, md_gemm_rank_times *times) {
  *times = (md_gemm_rank_times){0};
  MD_TRY(md_gemm_request_check(context, &md_gemm_scalapack, request));
  const int handle = Csys2blacs_handle(md_mpi(context));
  int blacs;
  const md_status status = md_agree(context, open_grid(context, &request->grid, handle, &blacs));
  if (status == MD_OK) {
    const md_blas_library library = md_blas_loaded();
    md_blas_place before;
    md_blas_enter(&library, request->launch.threads, &before);
    md_barrier(context);
    const double start_s = md_time_s();
    multiply(request, blacs, a, b, c);
    times->product_s = times->kernel_s = md_time_s() - start_s;
    md_blas_leave(&before);
    Cblacs_gridexit(blacs);
    md_maximum(context, (double *)times, 4);
  }
  Cfree_blacs_system_handle(handle);
  return status;
}
#define AVAILABILITY .run = multiply_dealt, .threads = threads
#else
#define AVAILABILITY                                                                               \
  .unavailable = "this build found no ScaLAPACK; on Debian or Ubuntu: apt-get install "            \
                 "libscalapack-openmpi-dev, then configure again"
#endif

const md_gemm_method md_gemm_scalapack = {
    .name = "scalapack",
    .precisions = 1u << MD_GEMM_DOUBLE | 1u << MD_GEMM_SINGLE,
    AVAILABILITY,
};
