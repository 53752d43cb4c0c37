#include "gemm/blas.h"
#include "gemm/gemm.h"

#include <dlfcn.h>
#include <limits.h>
#include <omp.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#ifdef MINIDIRAC_HAVE_OPENBLAS
#include <cblas.h>
#endif

enum { MOST_CORES = 1 << 16 };

/* dlsym has no other way to give a function than as void *. */
static void find(const char *name, void *function) {
  *(void **)function = dlsym(RTLD_DEFAULT, name);
}

/* Whether both stand in one library. */
static bool together(const char *a, const char *b) {
  void *const at[] = {dlsym(RTLD_DEFAULT, a), dlsym(RTLD_DEFAULT, b)};
  Dl_info in[2];
  return at[0] && at[1] && dladdr(at[0], &in[0]) && dladdr(at[1], &in[1]) &&
         in[0].dli_fbase == in[1].dli_fbase;
}

md_blas_library md_blas_loaded(void) {
  md_blas_library found = {0};
  if (!together("dgemm_", "openblas_set_num_threads")) return found;
  find("openblas_set_num_threads", &found.set_threads);
  find("openblas_get_num_threads", &found.threads);
  find("openblas_get_parallel", &found.parallel);
  return found.set_threads && found.threads && found.parallel ? found : (md_blas_library){0};
}

/* Adds the cores of all places of OpenMP, of which there are none where it does not bind. */
static void add_places(cpu_set_t *cores, size_t bytes) {
  for (int p = 0; p < omp_get_num_places(); p++) {
    const int count = omp_get_place_num_procs(p);
    int *core = calloc((size_t)count + 1, sizeof *core);
    if (core) omp_get_place_proc_ids(p, core);
    for (int i = 0; core && i < count; i++)
      if (core[i] >= 0 && core[i] < MOST_CORES) CPU_SET_S((size_t)core[i], bytes, cores);
    free(core);
  }
}

/* Leaves *before all zero where there is nothing to take back. */
static void widen(md_blas_place *before) {
  const size_t bytes = CPU_ALLOC_SIZE(MOST_CORES);
  cpu_set_t *wide = calloc(1, bytes), *now = calloc(1, bytes);
  *before = (md_blas_place){0};
  if (wide)
    add_places(wide, bytes); /* first: a runtime of OpenMP may bind this thread when asked */
  if (wide && now && sched_getaffinity(0, bytes, now) == 0) {
    CPU_OR_S(bytes, wide, wide, now);
    if (!CPU_EQUAL_S(bytes, wide, now) && sched_setaffinity(0, bytes, wide) == 0) {
      *before = (md_blas_place){now, bytes};
      now = NULL;
    }
  }
  MD_FREE(wide, now);
}

int md_blas_enter(const md_blas_library *library, int threads, md_blas_place *before) {
  *before = (md_blas_place){0};
  if (!library->set_threads) return 0;
  if (library->parallel() == 0) return 1;
  widen(before);
  library->set_threads(threads);
  return library->threads();
}

void md_blas_leave(md_blas_place *before) {
  if (before->cores) sched_setaffinity(0, before->bytes, before->cores);
  free(before->cores);
  *before = (md_blas_place){0};
}

int md_blas_threads(const md_blas_library *library, int threads) {
  md_blas_place before;
  const int taken = md_blas_enter(library, threads, &before);
  md_blas_leave(&before);
  return taken;
}

#ifdef MINIDIRAC_HAVE_OPENBLAS

static const md_blas_library LIBRARY = {openblas_set_num_threads, openblas_get_num_threads,
                                        openblas_get_parallel};

static int threads(int asked) {
  return md_blas_threads(&LIBRARY, asked);
}

static md_status check_sizes(md_context *context, const md_gemm_problem *p) {
  const int64_t sizes[] = {p->m, p->n, p->k, p->lda, p->ldb, p->ldc};
  for (int i = 0; i < 6; i++)
    if (sizes[i] > INT_MAX)
      return md_fail(context, MD_INPUT, "openblas takes sizes up to %d, got %lld", INT_MAX,
                     (long long)sizes[i]);
  return MD_OK;
}

/* The state is where the thread ran before. */
static md_status open_library(md_context *context, const md_gemm_problem *p,
                              const md_gemm_launch *launch, void **state) {
  (void)p;
  *state = calloc(1, sizeof(md_blas_place));
  if (!*state) return md_fail_memory(context, sizeof(md_blas_place), "openblas");
  md_blas_enter(&LIBRARY, launch->threads, *state);
  return MD_OK;
}

static void close_library(void *state) {
  md_blas_leave(state);
  free(state);
}

static md_status multiply(md_context *context, const md_gemm_call *call) {
  const md_gemm_problem *p = call->problem;
  (void)context;
  const int m = (int)p->m, n = (int)p->n, k = (int)p->k;
  const int lda = (int)p->lda, ldb = (int)p->ldb, ldc = (int)p->ldc;
  if (p->precision == MD_GEMM_DOUBLE)
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, p->alpha, call->a, lda, call->b,
                ldb, p->beta, call->c, ldc);
  else
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, (float)p->alpha, call->a, lda,
                call->b, ldb, (float)p->beta, call->c, ldc);
  return MD_OK;
}
#define AVAILABILITY                                                                               \
  .open = open_library, .close = close_library, .run = multiply, .threads = threads,               \
  .takes = check_sizes
#else
#define AVAILABILITY                                                                               \
  .unavailable = "this build found no OpenBLAS; on Debian or Ubuntu: apt-get install "             \
                 "libopenblas-dev, then configure again"
#endif

const md_gemm_kernel md_gemm_openblas = {
    .name = "openblas",
    .space = MD_GEMM_HOST,
    .precisions = 1u << MD_GEMM_DOUBLE | 1u << MD_GEMM_SINGLE,
    AVAILABILITY,
};
