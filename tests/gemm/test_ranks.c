/* Products over ranks: the block-cyclic one equals cpu_tiled bit for bit on every grid, block and
 * shape; SUMMA and ScaLAPACK are within the rounding bound. */
#include "fill.h"
#include "gemm/distributed.h"
#include "support.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t SEED = 11;

/* Whole matrices on every rank (tests are small); only rank 0's are handed over. */
typedef struct whole {
  md_gemm_problem problem;
  void *a, *b, *c0, *c, *sequential;
} whole;

/* operand 0: NaN everywhere. */
static void *filled(int64_t rows, int64_t ld, int64_t columns, int operand,
                    md_gemm_precision precision) {
  const size_t bytes = (size_t)(rows * ld) * md_gemm_input_bytes(precision);
  void *memory = malloc(bytes);
  assert_non_null(memory);
  memset(memory, 0xff, bytes);
  if (operand) fill_whole(SEED, (md_gemm_operand)operand, precision, rows, columns, memory, ld);
  return memory;
}

static size_t c_bytes(const md_gemm_problem *p) {
  return (size_t)(p->m * p->ldc) * md_gemm_output_bytes(p->precision);
}

static const md_gemm_kernel *kernel_of(md_context *context, const char *name) {
  const md_gemm_kernel *kernel;
  int variant;
  MD_REQUIRE(context, md_gemm_find(context, name, &kernel, &variant));
  return kernel;
}

static whole make(md_context *context, md_gemm_problem p, const char *kernel) {
  const md_gemm_precision out = md_gemm_output(p.precision);
  const int c = p.beta == 0.0 ? 0 : MD_GEMM_C; /* beta = 0 must not read C */
  whole w = {.problem = p};
  w.a = filled(p.m, p.lda, p.k, MD_GEMM_A, p.precision);
  w.b = filled(p.k, p.ldb, p.n, MD_GEMM_B, p.precision);
  w.c0 = filled(p.m, p.ldc, p.n, c, out);
  w.c = filled(p.m, p.ldc, p.n, c, out);
  w.sequential = filled(p.m, p.ldc, p.n, c, out);
  const md_gemm_launch launch = {0, 1, NULL};
  MD_REQUIRE(context,
             md_gemm(context, kernel_of(context, kernel), &p, &launch, w.a, w.b, w.sequential));
  return w;
}

static void destroy(whole *w) {
  free(w->a), free(w->b), free(w->c0), free(w->c), free(w->sequential);
}

static md_gemm_request request_of(md_context *context, const md_gemm_problem *p, int rows,
                                  const int64_t block[3], const char *kernel) {
  md_gemm_request request = {.problem = *p,
                             .block = {block[0], block[1], block[2]},
                             .kernel = kernel_of(context, kernel),
                             .launch = {0, 1, NULL}};
  MD_REQUIRE(context, md_gemm_grid_make(context, rows, context->ranks / rows, &request.grid));
  return request;
}

static void equals_sequential(md_context *context, md_gemm_problem p, int rows,
                              const int64_t block[3], const char *kernel) {
  whole w = make(context, p, kernel);
  const md_gemm_request request = request_of(context, &p, rows, block, kernel);
  md_gemm_rank_times times;
  MD_REQUIRE(context, md_gemm_block_cyclic.run(context, &request, w.a, w.b, w.c, &times));
  if (context->rank == 0) assert_memory_equal(w.c, w.sequential, c_bytes(&p));
  if (context->rank != 0) assert_memory_equal(w.c, w.c0, c_bytes(&p));
  if (!(times.scatter_s > 0.0)) fail_msg("scatter time must be above 0, got %g", times.scatter_s);
  destroy(&w);
}

static const int64_t SHAPES[][3] = {{1, 1, 1},  {1, 5, 3},    {5, 1, 7},    {2, 3, 300},
                                    {7, 11, 2}, {37, 41, 43}, {64, 48, 257}};
static const int64_t BLOCKS[][3] = {{1, 1, 1}, {3, 5, 7}, {16, 2, 64}, {1000, 1000, 1000}};

static void block_cyclic_is_exact(void **state) {
  md_context *context = *state;
  for (int rows = 1; rows <= context->ranks; rows++) {
    if (context->ranks % rows != 0) continue;
    for (size_t s = 0; s < sizeof SHAPES / sizeof *SHAPES; s++)
      for (size_t b = 0; b < sizeof BLOCKS / sizeof *BLOCKS; b++) {
        const int64_t *z = SHAPES[s];
        const md_gemm_precision precision = (s + b) % 2 ? MD_GEMM_SINGLE : MD_GEMM_DOUBLE;
        equals_sequential(context,
                          (md_gemm_problem){z[0], z[1], z[2], precision, z[2] + 2, z[1] + 1,
                                            z[1] + 3, -0.7, b % 2 ? 1.3 : 0.0},
                          rows, BLOCKS[b], "cpu_tiled");
      }
  }
}

static void block_cyclic_takes_16_bit_inputs(void **state) {
  equals_sequential(*state, (md_gemm_problem){19, 23, 29, MD_GEMM_HALF, 29, 23, 23, 1.0, 0.5}, 1,
                    BLOCKS[1], "naive");
}

/* This rank's dense part of a whole matrix, by the layout's own index map. */
static void *part_of(const md_gemm_layout *layout, md_gemm_precision precision, const char *matrix,
                     int64_t ld) {
  const size_t element = md_gemm_input_bytes(precision);
  const int64_t rows = md_gemm_layout_rows(layout), columns = md_gemm_layout_columns(layout);
  const md_gemm_subset row = md_gemm_deal_subset(&layout->rows, layout->grid.row);
  const md_gemm_subset column = md_gemm_deal_subset(&layout->columns, layout->grid.column);
  char *part = malloc((size_t)(rows * columns) * element + 1);
  assert_non_null(part);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++)
      memcpy(part + (size_t)(i * columns + j) * element,
             matrix + (size_t)(md_gemm_global(&row, i) * ld + md_gemm_global(&column, j)) * element,
             element);
  return part;
}

/* A method on parts; the result comes together on rank 0 for the check. */
static void within_bound(md_context *context, const md_gemm_method *method, md_gemm_problem p,
                         int rows, const int64_t block[3]) {
  whole w = make(context, p, "naive");
  const md_gemm_request request = request_of(context, &p, rows, block, "cpu_tiled");
  const md_gemm_layout a_layout = md_gemm_part_layout(&request, MD_GEMM_A);
  const md_gemm_layout b_layout = md_gemm_part_layout(&request, MD_GEMM_B);
  const md_gemm_layout c_layout = md_gemm_part_layout(&request, MD_GEMM_C);
  void *a = part_of(&a_layout, p.precision, w.a, p.lda);
  void *b = part_of(&b_layout, p.precision, w.b, p.ldb);
  void *c = part_of(&c_layout, md_gemm_output(p.precision), w.c0, p.ldc);
  md_gemm_rank_times times;
  MD_REQUIRE(context, method->run(context, &request, a, b, c, &times));
  MD_REQUIRE(context,
             md_gemm_gather(context, &c_layout, md_gemm_output(p.precision), c, w.c, p.ldc));
  if (context->rank == 0) {
    md_gemm_row_sums sums[64] = {0};
    int64_t all[64];
    md_gemm_sample_rows(p.m, p.m, all);
    MD_REQUIRE(context, md_gemm_verify_rows(context, &p, w.a, w.b, w.c0, w.c, all, p.m, sums));
    md_require_at_most(md_gemm_error_of(sums, p.m).excess, 1.0, method->name);
  }
  free(a), free(b), free(c);
  destroy(&w);
}

static void parts_within_bound(md_context *context, const md_gemm_method *method) {
  for (int rows = 1; rows <= context->ranks; rows++) {
    if (context->ranks % rows != 0) continue;
    for (size_t s = 0; s < sizeof SHAPES / sizeof *SHAPES; s++)
      for (size_t b = 0; b < sizeof BLOCKS / sizeof *BLOCKS; b++) {
        const int64_t *z = SHAPES[s];
        const md_gemm_precision precision = (s + b) % 2 ? MD_GEMM_SINGLE : MD_GEMM_DOUBLE;
        within_bound(context, method,
                     (md_gemm_problem){z[0], z[1], z[2], precision, z[2], z[1], z[1], 1.5,
                                       b % 2 ? -0.4 : 0.0},
                     rows, BLOCKS[b]);
      }
  }
}

static void summa_is_within_bound(void **state) {
  parts_within_bound(*state, &md_gemm_summa);
}

static void scalapack_is_within_bound(void **state) {
  if (md_gemm_scalapack.unavailable) skip();
  parts_within_bound(*state, &md_gemm_scalapack);
}

/* Every global index has one owner, whatever the numbers. */
static void deals_cover_once(void **state) {
  (void)state;
  for (int64_t length = 1; length <= 40; length++)
    for (int64_t block = 1; block <= 12; block++)
      for (int processes = 1; processes <= 6; processes++) {
        const md_gemm_deal deal = {length, block, processes};
        int owners[40] = {0};
        for (int process = 0; process < processes; process++) {
          const md_gemm_subset subset = md_gemm_deal_subset(&deal, process);
          const int64_t held = md_gemm_deal_length(&deal, process);
          for (int64_t i = 0; i < held; i++) {
            const int64_t global = md_gemm_global(&subset, i);
            assert_in_range(global, 0, length - 1);
            owners[global]++;
          }
        }
        for (int64_t i = 0; i < length; i++) assert_int_equal(owners[i], 1);
      }
}

static void bad_requests_are_refused(void **state) {
  md_context *context = *state;
  md_gemm_grid grid;
  assert_int_equal(md_gemm_grid_make(context, context->ranks + 1, 1, &grid), MD_INPUT);
  assert_non_null(strstr(context->message, "must hold every rank once"));
  const md_gemm_problem p = {4, 4, 4, MD_GEMM_SINGLE, 4, 4, 4, 1.0, 0.0};
  const int64_t none[3] = {0, 1, 1};
  md_gemm_request request = request_of(context, &p, 1, none, "cpu_tiled");
  assert_int_equal(md_gemm_request_check(context, &md_gemm_summa, &request), MD_INPUT);
  assert_non_null(strstr(context->message, "block sizes must be"));
  request.block[0] = 1;
  request.problem.precision = MD_GEMM_BF16; /* the local kernel does not take it: no rank hangs */
  md_gemm_rank_times times;
  void *c = calloc(16, sizeof(float)), *x = calloc(16, sizeof(float));
  assert_int_equal(md_gemm_block_cyclic.run(context, &request, x, x, c, &times), MD_INPUT);
  assert_non_null(strstr(context->message, "not bf16"));
  free(c), free(x);
}

static struct CMUnitTest tests[] = {
    cmocka_unit_test(deals_cover_once),
    cmocka_unit_test(block_cyclic_is_exact),
    cmocka_unit_test(block_cyclic_takes_16_bit_inputs),
    cmocka_unit_test(summa_is_within_bound),
    cmocka_unit_test(scalapack_is_within_bound),
    cmocka_unit_test(bad_requests_are_refused),
};

MD_RUN_TESTS(tests)
