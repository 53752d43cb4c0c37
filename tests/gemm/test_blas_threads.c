/* The threads of a BLAS library that serves as a reference: as many as asked, on all cores that
 * OpenMP has, or told to be others. Runs with OpenMP's threads bound, the first to one core. */
#include "gemm/blas.h"
#include "gemm/gemm.h"
#include "support.h"

#include <omp.h>
#include <sched.h>
#include <string.h>

static int cores(void) {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}

static int asked_for;
static void set(int count) {
  asked_for = count;
}
static int as_asked(void) {
  return asked_for;
}
static int four(void) {
  return 4;
}
static int none(void) {
  return 0;
}

static void says_how_many(void **state) {
  const md_blas_library threaded = {set, as_asked, four}, capped = {set, four, four};
  const md_blas_library serial = {set, as_asked, none}, unknown = {0};
  const int before = cores();
  (void)state;
  assert_int_equal(md_blas_threads(&threaded, 16), 16);
  assert_int_equal(asked_for, 16);
  assert_int_equal(md_blas_threads(&capped, 16), 4);
  assert_int_equal(md_blas_threads(&serial, 16), 1);
  assert_int_equal(md_blas_threads(&unknown, 16), 0);
  assert_int_equal(cores(), before);
}

/* The library starts its threads where the one that asks may run. */
static void on_all_cores(void **state) {
  md_context context = {.ranks = 1, .threads = 2};
  const md_gemm_problem problem = {4, 4, 4, MD_GEMM_DOUBLE, 4, 4, 4, 1.0, 0.0};
  const md_gemm_launch launch = {.threads = 2};
  const int before = cores();
  const md_gemm_kernel *kernel;
  md_gemm_plan plan;
  int variant, all = 0;
  (void)state;
  assert_int_equal(md_gemm_find(&context, "openblas", &kernel, &variant), MD_OK);
  if (kernel->unavailable) skip();
#pragma omp parallel num_threads(2) reduction(+ : all)
  all += cores(); /* one each */
  assert_int_equal(kernel->threads(2), 2);
  assert_int_equal(md_gemm_plan_open(&context, kernel, &problem, &launch, &plan), MD_OK);
  assert_true(cores() >= all);
  md_gemm_plan_close(&plan);
  assert_int_equal(cores(), before);
}

static void the_oracle_is_alone(void **state) {
  md_context context = {.ranks = 1};
  const md_gemm_kernel *kernel;
  int variant;
  (void)state;
  assert_int_equal(md_gemm_find(&context, "naive", &kernel, &variant), MD_OK);
  assert_int_equal(kernel->threads(16), 1);
}

/* Some runtimes of OpenMP bind the thread that starts them when it first asks them for something.
 */
static int start_openmp(void **state) {
  (void)state;
  return omp_get_num_places() < 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(says_how_many),
                                     cmocka_unit_test(on_all_cores),
                                     cmocka_unit_test(the_oracle_is_alone)};
  return cmocka_run_group_tests(tests, start_openmp, NULL);
}
