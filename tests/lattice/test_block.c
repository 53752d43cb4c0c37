/* Block operations on the host: the inner loops of every instruction set against plain ones, sums
 * whose order does not matter, the same bits for every rank grid and thread count. */
#include "lattice/fields/linear.h"
#include "lattice/fields/spaces.h"
#include "support.h"

#include <complex.h>
#include <math.h>
#include <string.h>

enum { MOST = MD_MAX_BLOCK, WIDTH = 2 * MOST, SQUARE = MOST * WIDTH, MOST_ROWS = 5 };

static const md_block_loops *const all_rows[MD_ISAS] = MD_EVERY_ISA(&md_block_loops);
static const int sizes[] = {2, 3, 5, 8, 16, 17, 33, 64};
enum { SIZES = sizeof sizes / sizeof *sizes };

static double number(int k) {
  return sin(1.3 * k + 0.2);
}

static void fill(int n, int width, int seed, md_block_matrix m, double complex *plain) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      const double complex e = number(seed + i * n + j) + I * number(seed + 7 + i - 3 * j);
      plain[i * n + j] = e;
      m.plain[i * width + 2 * j] = creal(e);
      m.plain[i * width + 2 * j + 1] = cimag(e);
      m.turned[i * width + 2 * j] = -cimag(e);
      m.turned[i * width + 2 * j + 1] = creal(e);
    }
}

static double memory[6][SQUARE];
static double complex plain[3][MOST * MOST];

/* Of a site with m rows. */
static void check_update(const md_block_loops *rows, int m, int n) {
  const int width = (2 * n + rows->chunk - 1) / rows->chunk * rows->chunk;
  double complex x[MOST_ROWS * MOST] = {0}, y[MOST_ROWS * MOST] = {0}, z[MOST_ROWS * MOST] = {0};
  double complex want_y[MOST_ROWS * MOST], want_z[MOST_ROWS * MOST];
  const md_block_matrix b = {memory[0], memory[1]}, a = {memory[2], memory[3]},
                        c = {memory[4], memory[5]};
  memset(memory, 0, sizeof memory);
  fill(n, width, 1, b, plain[0]);
  fill(n, width, 2, a, plain[1]);
  fill(n, width, 3, c, plain[2]);
  for (int e = 0; e < m * n; e++) {
    x[e] = number(e) + I * number(2 * e + 1);
    y[e] = number(3 * e) + I * number(e + 5);
    z[e] = number(5 * e) + I * number(e + 9);
  }
  for (int r = 0; r < m; r++)
    for (int j = 0; j < n; j++) {
      want_y[r * n + j] = 0.0;
      want_z[r * n + j] = z[r * n + j];
      for (int i = 0; i < n; i++) {
        want_y[r * n + j] +=
            y[r * n + i] * plain[0][i * n + j] + x[r * n + i] * plain[1][i * n + j];
        want_z[r * n + j] += y[r * n + i] * plain[2][i * n + j];
      }
    }
  rows->update(m, n, width, &b, (double *)x, &a, (double *)y, (double *)z, &c);
  for (int e = 0; e < m * n; e++) {
    md_require_at_most(cabs(y[e] - want_y[e]), 4e-15 * n, "y of an update");
    md_require_at_most(cabs(z[e] - want_z[e]), 4e-15 * n, "z of an update");
  }
}

/* Of a cell of eight such sites. */
static void check_gram(const md_block_loops *rows, int m, int n) {
  static double straight[8 * MOST_ROWS * WIDTH], turned[8 * MOST_ROWS * WIDTH];
  const int width = (2 * n + rows->chunk - 1) / rows->chunk * rows->chunk;
  memset(straight, 0, sizeof straight);
  memset(turned, 0, sizeof turned);
  for (int r = 0; r < 8 * m; r++)
    for (int j = 0; j < n; j++) {
      const double re = number(r * n + j), im = number(r + 3 * j);
      double *s = straight + r * width + 2 * j, *t = turned + r * width + 2 * j;
      s[0] = re;
      s[1] = t[0] = im;
      t[1] = -re;
    }
  rows->gram(8 * m, n, width, straight, straight, turned, false, memory[0]);
  for (int i = 0; i < n; i++)
    for (int j = i; j < n; j++) {
      double complex want = 0.0;
      for (int r = 0; r < 8 * m; r++) {
        const double *u = straight + r * width + 2 * i, *v = straight + r * width + 2 * j;
        want += (u[0] - I * u[1]) * (v[0] + I * v[1]);
      }
      const double complex got =
          memory[0][i * width + 2 * j] + I * memory[0][i * width + 2 * j + 1];
      md_require_at_most(cabs(got - want), 1e-13, "Gram matrix of a cell");
    }
}

/* Sixty-four times eight numbers over many orders of magnitude, from the front and from the back.
 */
static void check_add(const md_block_loops *rows) {
  enum { COUNT = 8, TIMES = 64 };
  double high[2][COUNT] = {{0.0}}, low[2][COUNT] = {{0.0}}, numbers[COUNT];
  for (int way = 0; way < 2; way++)
    for (int k = 0; k < TIMES; k++) {
      const int seed = way ? TIMES - 1 - k : k;
      for (int e = 0; e < COUNT; e++) numbers[e] = ldexp(number(seed * COUNT + e), -(seed % 40));
      assert_true(rows->add(COUNT, 64.0, numbers, high[way], low[way]));
    }
  assert_memory_equal(high[0], high[1], sizeof high[0]);
  assert_memory_equal(low[0], low[1], sizeof low[0]);
  for (int e = 0; e < COUNT; e++) {
    double sum = 0.0;
    for (int k = 0; k < TIMES; k++) sum += ldexp(number(k * COUNT + e), -(k % 40));
    md_require_at_most(fabs(high[0][e] + low[0][e] - sum), 1e-14, "sum");
  }
  numbers[3] = 64.0;
  assert_false(rows->add(COUNT, 64.0, numbers, high[0], low[0]));
  numbers[3] = NAN;
  assert_false(rows->add(COUNT, 64.0, numbers, high[0], low[0]));
  assert_memory_equal(high[0], high[1], sizeof high[0]);
}

static void every_instruction_set(void **state) {
  (void)state;
  int ran = 0;
  for (int k = 0; k < MD_ISAS; k++) {
    if (!md_isa_runs((md_isa)k)) continue;
    ran++;
    for (int s = 0; s < SIZES; s++)
      for (int m = 3; m <= MOST_ROWS; m += 2) {
        check_update(all_rows[k], m, sizes[s]);
        check_gram(all_rows[k], m, sizes[s]);
      }
    check_add(all_rows[k]);
  }
  assert_true(ran >= 1);
}

/* Makes a field large behind the middle of t. */
static void make_uneven(md_field *f) {
  double v[MD_MAX_RHS * MD_FERMION_REALS];
  int x[MD_DIMS];
  for (int64_t site = 0; site < f->sites; site++) {
    md_global_coordinates(f->geometry, MD_EVEN, site, x);
    const double times = 2 * x[MD_T] < f->geometry->global[MD_T] ? 1.0 : 0x1p20;
    for (int r = 0; r < f->n_rhs; r++) md_field_get(f, site, r, v + r * MD_FERMION_REALS);
    for (int k = 0; k < f->n_rhs * MD_FERMION_REALS; k++) v[k] *= times;
    md_field_set(f, site, v);
  }
}

/* Gram matrices of a field times `scale`, of which only the first does not know its size before,
 * and the last follows a product with another field: they agree but for rounding, and are the same
 * on one rank with one thread and on all of them. */
static void check_cut(md_context *context, double scale) {
  enum { N = 24, REALS = 2 * N * N };
  double none[N] = {0.0}, times[N];
  for (int r = 0; r < N; r++) times[r] = scale;
  md_context alone = {.ranks = 1, .threads = 1};
  md_context *const contexts[] = {&alone, context};
  static double grams[2][3][REALS], product[REALS];
  for (int i = 0; i < 2; i++) {
    const md_field_shape shape = {MD_DOUBLE, MD_HOST, MD_FERMION_REALS, N, true, false};
    md_geometry *g = md_test_geometry(contexts[i], 8, 4, 4, 8, false);
    md_block *block;
    md_field f, uneven;
    md_test_random_field(contexts[i], g, MD_DOUBLE, N, MD_EVEN, 6, &uneven);
    make_uneven(&uneven);
    md_test_random_field(contexts[i], g, MD_DOUBLE, N, MD_EVEN, 5, &f);
    md_linear_axpby(none, &f, times, &f);
    MD_REQUIRE(contexts[i], md_block_create(contexts[i], &shape, &block));
    for (int k = 0; k < 3; k++) {
      if (k == 2) MD_REQUIRE(contexts[i], md_block_cross(contexts[i], block, &uneven, &f, product));
      MD_REQUIRE(contexts[i], md_block_gram(contexts[i], block, &f, 1));
      MD_REQUIRE(contexts[i], md_block_wait(contexts[i], block, 1, grams[i][k]));
    }
    md_block_destroy(block);
    MD_FIELDS_DESTROY(&f, &uneven);
    md_geometry_destroy(g);
  }
  assert_memory_equal(grams[0], grams[1], sizeof grams[0]);
  for (int e = 0; e < 2 * REALS; e++)
    md_require_at_most(fabs(grams[0][0][e % REALS] - grams[0][1 + e / REALS][e % REALS]),
                       1e-13 * grams[0][0][0], "sums");
}

/* Rounding depends on where a sum lies among the limbs of md_sum. */
static void does_not_depend_on_the_cut(void **state) {
  for (int bits = -20; bits <= 12; bits++) check_cut(*state, exp2(bits));
}

/* <f_i, f_j> of a whole field against a plain sum over sites of one rank. */
static void check_products(const md_context *given, int components) {
  enum { N = 5 };
  md_context alone = {.ranks = 1, .threads = given->threads};
  const md_field_shape shape = {MD_DOUBLE, MD_HOST, components, N, true, false};
  md_geometry *g = md_test_geometry(&alone, 8, 4, 4, 4, false);
  double gram[2 * N * N];
  double complex want[N * N] = {0};
  md_block *block;
  md_field f;
  md_test_random_shape(&alone, g, &shape, MD_ODD, 5, &f);
  MD_REQUIRE(&alone, md_block_create(&alone, &shape, &block));
  MD_REQUIRE(&alone, md_block_gram(&alone, block, &f, 1));
  MD_REQUIRE(&alone, md_block_wait(&alone, block, 1, gram));
  for (int64_t site = 0; site < f.sites; site++)
    for (int i = 0; i < N; i++)
      for (int j = 0; j < N; j++) {
        double u[MD_MAX_COMPONENTS], v[MD_MAX_COMPONENTS];
        md_field_get(&f, site, i, u);
        md_field_get(&f, site, j, v);
        for (int c = 0; c < components; c += 2)
          want[i * N + j] += (u[c] - I * u[c + 1]) * (v[c] + I * v[c + 1]);
      }
  for (int e = 0; e < N * N; e++)
    md_require_at_most(cabs(gram[2 * e] + I * gram[2 * e + 1] - want[e]), 1e-13 * gram[0], "Gram");
  md_block_destroy(block);
  md_field_destroy(&f);
  md_geometry_destroy(g);
}

static void gram_is_of_inner_products(void **state) {
  const int components[] = {MD_FERMION_REALS, 24, 64};
  for (int k = 0; k < 3; k++) check_products(*state, components[k]);
}

static md_context *context_of_narrow;
static int components_of_narrow;

static void narrow_copy(const md_geometry *g, md_precision precision, const md_field *of,
                        md_field *f) {
  const md_field_shape shape = {precision, MD_HOST, of->components, of->n_rhs, true, false};
  MD_REQUIRE(context_of_narrow, md_field_create(context_of_narrow, g, &shape, MD_EVEN, f));
  MD_REQUIRE(context_of_narrow, md_field_convert(context_of_narrow, f, of));
}

/* An update, its sums and a product of fields as a solver with iterations in `inner` has them, y
 * single beside x of that precision or the other way round, against the same on doubles. */
static void check_narrow(const md_geometry *g, md_precision inner, bool y_is_wide) {
  enum { N = 5, REALS = 2 * N * N };
  md_context *context = context_of_narrow;
  const md_field_shape shape = {MD_DOUBLE, MD_HOST, components_of_narrow, N, true, false};
  md_field wide[3], rounded[3], f[3];
  double matrix[3][REALS], want[REALS], got[REALS];
  md_block *block;
  for (int e = 0; e < REALS; e++)
    for (int m = 0; m < 3; m++) matrix[m][e] = 0.3 * number(e + 9 * m);
  for (int k = 0; k < 3; k++) {
    const md_precision own = (k == 0) == y_is_wide ? MD_SINGLE : inner;
    md_test_random_shape(context, g, &shape, MD_EVEN, (uint64_t)k + 3, &wide[k]);
    narrow_copy(g, k == 2 ? MD_SINGLE : own, &wide[k], &f[k]);
    narrow_copy(g, MD_DOUBLE, &f[k], &rounded[k]);
  }
  md_block_step step = {.b = matrix[0], .x = &rounded[1], .a = matrix[1], .slot = 1};
  MD_REQUIRE(context, md_block_create(context, &shape, &block));
  MD_REQUIRE(context, md_block_cross(context, block, &rounded[0], &rounded[1], want));
  MD_REQUIRE(context, md_block_cross(context, block, &f[0], &f[1], got));
  assert_memory_equal(want, got, sizeof want); /* nothing is rounded */
  if (!y_is_wide) step.z = &rounded[2], step.c = matrix[2];
  MD_REQUIRE(context, md_block_update(context, block, &rounded[0], &step));
  step.x = &f[1];
  if (!y_is_wide) step.z = &f[2];
  MD_REQUIRE(context, md_block_update(context, block, &f[0], &step));
  const double u = md_precision_roundoff(y_is_wide ? MD_SINGLE : inner);
  md_require_at_most(md_test_distance(context, &f[0], &rounded[0]), 4 * u, "y of an update");
  md_require_at_most(md_test_distance(context, &f[2], &rounded[2]), 0x1p-22, "z of an update");
  MD_REQUIRE(context, md_block_wait(context, block, 1, got));
  MD_REQUIRE(context, md_field_convert(context, &rounded[0], &f[0]));
  MD_REQUIRE(context, md_block_gram(context, block, &rounded[0], 0));
  MD_REQUIRE(context, md_block_wait(context, block, 0, want));
  for (int e = 0; e < REALS; e++) /* of what was stored */
    md_require_at_most(fabs(want[e] - got[e]), 1e-13 * want[0], "sums of an update");
  MD_REQUIRE(context, md_block_cross(context, block, &f[0], &f[0], got));
  for (int e = 0; e < REALS; e++)
    md_require_at_most(fabs(want[e] - got[e]), 1e-13 * want[0], "product");
  md_block_destroy(block);
  for (int k = 0; k < 3; k++) {
    md_field_destroy(&wide[k]);
    md_field_destroy(&rounded[k]);
    md_field_destroy(&f[k]);
  }
}

static void narrow_fields(void **state) {
  static const md_precision inner[] = {MD_SINGLE, MD_HALF, MD_BF16, MD_FIXED};
  context_of_narrow = *state;
  md_geometry *g = md_test_geometry(context_of_narrow, 4, 4, 8, 4, false);
  for (int i = 0; i < 16; i++) {
    components_of_narrow = i < 8 ? MD_FERMION_REALS : 64;
    check_narrow(g, inner[i / 2 % 4], i % 2 == 1);
  }
  md_geometry_destroy(g);
}

static struct CMUnitTest tests[] = {
    cmocka_unit_test(every_instruction_set), cmocka_unit_test(gram_is_of_inner_products),
    cmocka_unit_test(does_not_depend_on_the_cut), cmocka_unit_test(narrow_fields)};
MD_RUN_TESTS(tests)
