/* What a request leaves open: packing auto follows its rule and says why, and operators whose
 * tiles have more columns than there are right-hand sides solve for these. */
#include "backend_cases.h"
#include "base/device.h"
#include "base/instruction_set.h"
#include "dirac/backend.h"
#include "dirac/solvers/multishift.h"
#include "dirac/solvers/solver.h"
#include "lattice/fields/linear.h"
#include "lattice/fields/source.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const int extents[4] = {4, 4, 4, 8};
enum { ASKED = 5, COLUMNS = 8 };

typedef struct problem {
  md_geometry *g;
  md_gauge gauge;
  md_field b[2], x[2], again[2];
} problem;

static void make(md_context *context, problem *p) {
  const md_field_shape shape = {MD_DOUBLE, MD_HOST, MD_FERMION_REALS, ASKED, true, false};
  p->g = md_test_geometry(context, extents[0], extents[1], extents[2], extents[3], false);
  md_test_random_gauge(context, p->g, 31, &p->gauge);
  for (int k = 0; k < 2; k++) {
    md_field *field[] = {&p->b[k], &p->x[k], &p->again[k]};
    for (int f = 0; f < 3; f++)
      MD_REQUIRE(context, md_field_create(context, p->g, &shape, k, field[f]));
  }
  md_source_gaussian(p->b, 17);
}

static void drop(problem *p) {
  for (int k = 0; k < 2; k++) {
    md_field_destroy(&p->b[k]);
    md_field_destroy(&p->x[k]);
    md_field_destroy(&p->again[k]);
  }
  md_gauge_destroy(&p->gauge);
  md_geometry_destroy(p->g);
}

static void create(md_context *context, const problem *p, int columns, md_dirac *dirac) {
  const md_backend_request request = {
      .precision = MD_DOUBLE, .n_rhs = columns, .antiperiodic = true};
  MD_REQUIRE(context, md_dirac_create(context, &p->gauge, "cpu_simd", &request, dirac));
}

/* |x - again| over |x|, the largest of the right-hand sides. */
static double distance(md_context *context, problem *p, int parity) {
  double norm2[MD_MAX_RHS], off2[MD_MAX_RHS], worst = 0.0;
  MD_REQUIRE(context, md_linear_norm2(context, &p->x[parity], NULL, norm2));
  md_linear_add(-1.0, &p->x[parity], &p->again[parity]);
  MD_REQUIRE(context, md_linear_norm2(context, &p->again[parity], NULL, off2));
  for (int r = 0; r < ASKED; r++) worst = fmax(worst, sqrt(off2[r] / norm2[r]));
  return worst;
}

/* Every solver of a Hermitian operator, by one of as many right-hand sides and by one with more. */
static void columns_beyond_the_right_hand_sides(void **state) {
  md_context *context = *state;
  problem p;
  make(context, &p);
  for (const md_solver *const *solver = md_solvers(); *solver; solver++) {
    if ((*solver)->direct) continue;
    md_solver_result result[2];
    const md_solver_request request = {
        .mass = 0.3, .tolerance = 1e-12, .max_iterations = 2000, .solver = *solver};
    for (int wide = 0; wide < 2; wide++) {
      md_dirac dirac;
      create(context, &p, wide ? COLUMNS : ASKED, &dirac);
      MD_REQUIRE(context, md_solve_cg(context, &dirac, &dirac, &request, wide ? p.again : p.x, p.b,
                                      &result[wide]));
      md_dirac_destroy(&dirac);
    }
    assert_true(result[0].converged && result[1].converged);
    assert_int_equal(result[1].n_rhs, ASKED);
    assert_true(abs(result[0].iterations - result[1].iterations) <= 1);
    if (strcmp((*solver)->name, "block") == 0) assert_int_equal(result[1].block_rank, ASKED);
    /* Both are within the tolerance of the solution, times norm(M) over the mass. */
    for (int k = 0; k < 2; k++) {
      const double off = distance(context, &p, k);
      if (!(off <= 1e-10)) fail_msg("%s: solutions differ by %g", (*solver)->name, off);
    }
    /* The work that counts is that of the right-hand sides that were asked for. */
    const double work[2] = {result[0].gflops * result[0].seconds / result[0].iterations,
                            result[1].gflops * result[1].seconds / result[1].iterations};
    if (!(fabs(work[1] / work[0] - 1.0) <= 0.2))
      fail_msg("%s counts %g GFLOP for %g", (*solver)->name, work[1], work[0]);
    md_solver_result_free(&result[0]);
    md_solver_result_free(&result[1]);
  }
  drop(&p);
}

static void columns_of_shifted_solves(void **state) {
  md_context *context = *state;
  static const double shifts[2] = {0.0, 0.2};
  problem p;
  make(context, &p);
  const md_multishift_request request = {.mass = 0.3,
                                         .tolerance = 1e-12,
                                         .max_iterations = 2000,
                                         .shifts = shifts,
                                         .n_shifts = 2,
                                         .refine = true};
  md_field found[2][2] = {{p.x[0], p.x[1]}, {p.again[0], p.again[1]}};
  for (int wide = 0; wide < 2; wide++) {
    md_dirac dirac;
    md_multishift_result result;
    create(context, &p, wide ? COLUMNS : ASKED, &dirac);
    for (int k = 0; k < 2; k++) found[wide][k].parity = MD_EVEN;
    MD_REQUIRE(context, md_solve_multishift(context, &dirac, &dirac, &request, found[wide],
                                            &p.b[MD_EVEN], &result));
    assert_true(result.converged);
    md_multishift_result_free(&result);
    md_dirac_destroy(&dirac);
  }
  for (int k = 0; k < 2; k++) assert_true(distance(context, &p, k) <= 1e-10);
  drop(&p);
}

/* By operators of fewer right-hand sides, on the GPU where there is one: in two parts, of 3 and 2.
 */
static void right_hand_sides_in_parts(void **state) {
  md_context *context = *state;
  const bool device = md_agree(context, md_device_open(context)) == MD_OK;
  problem p;
  make(context, &p);
  for (const md_solver *const *solver = md_solvers(); *solver; solver++) {
    if ((*solver)->direct) continue;
    md_solver_result result[2];
    const md_solver_request request = {
        .mass = 0.3, .tolerance = 1e-12, .max_iterations = 2000, .solver = *solver};
    const bool serves = (*solver)->takes & MD_TAKES_PARTS;
    for (int parts = 0; parts < 2; parts++) {
      md_dirac dirac;
      const md_backend_request of = {
          .precision = MD_DOUBLE, .n_rhs = parts ? ASKED - 1 : ASKED, .antiperiodic = true};
      MD_REQUIRE(context,
                 md_dirac_create(context, &p.gauge, device ? "cuda" : "cpu_simd", &of, &dirac));
      if (parts) assert_int_equal(md_solver_at_once(&dirac, ASKED), 3);
      const md_status status = md_solve_cg(context, &dirac, &dirac, &request, parts ? p.again : p.x,
                                           p.b, &result[parts]);
      assert_int_equal(status, parts && !serves ? MD_INPUT : MD_OK);
      md_dirac_destroy(&dirac);
    }
    if (serves) {
      assert_true(result[0].converged && result[1].converged);
      assert_int_equal(result[1].n_rhs, ASKED);
      assert_true(abs(result[0].iterations - result[1].iterations) <= 1);
      for (int r = 0; r < ASKED; r++) {
        assert_true(result[1].residuals[r] > 0.0 && result[1].residuals[r] <= 1e-12);
        assert_true(abs(result[0].rhs_iterations[r] - result[1].rhs_iterations[r]) <= 1);
      }
      /* The largest of all right-hand sides from beginning to end. */
      for (int i = 0; i < result[0].iterations && i < result[1].iterations; i++)
        if (!(fabs(result[1].history[i] / result[0].history[i] - 1.0) <= 1e-3))
          fail_msg("%s: %g and %g after %d", (*solver)->name, result[1].history[i],
                   result[0].history[i], i);
      for (int k = 0; k < 2; k++) {
        const double off = distance(context, &p, k);
        if (!(off <= 1e-10)) fail_msg("%s: solutions differ by %g", (*solver)->name, off);
      }
    }
    for (int parts = 0; parts < 2; parts++) md_solver_result_free(&result[parts]);
  }
  drop(&p);
}

/* Fails in the first iteration of the second part. */
typedef struct watcher {
  md_context *context;
  int parts;
} watcher;
static md_status fail_later(void *user, const md_cg_state *state) {
  watcher *w = user;
  w->parts += state->iteration == 1;
  return w->parts < 2 ? MD_OK : md_fail(w->context, MD_UNREACHED, "it must not fail");
}

/* What is known of a solve of which the second of three parts fails: nothing of right-hand sides
 * behind the first part, and how long it took. */
static void failure_of_a_part(void **state) {
  md_context *context = *state;
  problem p;
  make(context, &p);
  watcher w = {context, 0};
  md_dirac dirac;
  md_solver_result result;
  const md_solver_request request = {
      .mass = 0.3, .tolerance = 1e-10, .max_iterations = 2000, .observe = fail_later, .user = &w};
  create(context, &p, 2, &dirac);
  assert_int_equal(md_solver_at_once(&dirac, ASKED), 2);
  assert_int_equal(md_solve_cg(context, &dirac, &dirac, &request, p.x, p.b, &result), MD_UNREACHED);
  assert_false(result.converged);
  for (int r = 0; r < ASKED; r++)
    assert_true(r < 2 ? result.residuals[r] > 0.0 && result.residuals[r] <= 1e-10
                      : isnan(result.residuals[r]));
  assert_non_null(strstr(context->message, "it must not fail (counted from right-hand side 2,"));
  assert_true(result.seconds > 0.0);
  md_solver_result_free(&result);
  md_dirac_destroy(&dirac);
  drop(&p);
}

/* Requests that are open are lowered to what `stacked` takes, on a GPU, in double where its memory
 * is fast; no others. */
static void parts_follow_their_rule(void **state) {
  md_context *context = *state;
  static const int local[4] = {16, 16, 16, 16};
  const bool device = md_agree(context, md_device_open(context)) == MD_OK;
  const int asked[] = {1, 16, 17, 24, 32, 48, 128}, want[] = {1, 16, 9, 12, 16, 16, 16};
  for (int i = 0; i < 14; i++)
    for (int open = 0; open < 2; open++) {
      const int n = asked[i / 2];
      const bool full = i % 2 == 0 || (want[i / 2] == 16 && !md_memory_is_slow(&context->gpu));
      md_backend_request r = {.precision = i % 2 ? MD_DOUBLE : MD_HALF,
                              .packing = open ? MD_PACKING_AUTO : MD_PACKING_NONE,
                              .n_rhs = n,
                              .pads = true,
                              .antiperiodic = true};
      md_solver_part_request(context, "auto", local, &r);
      assert_int_equal(r.n_rhs, device && open && full ? want[i / 2] : n);
    }
}

/* On a CPU, with `--packing none` too, right-hand sides with a fifth dimension are solved one by
 * one, others at once as long as they fill vectors: of 12 numbers in double, not of two in half
 * where vectors have 16 reals; of staggered fermions three in single, but in 16 bits no fewer than
 * four. */
static void few_go_alone(void **state) {
  static const int local[4] = {8, 8, 8, 8};
  static const struct {
    md_action action;
    md_precision precision;
    int asked, want;
  } rows[] = {{MD_ACTION_NAIVE, MD_DOUBLE, 12, 12},
              {MD_ACTION_NAIVE, MD_DOUBLE, 2, 2},
              {MD_ACTION_HISQ, MD_SINGLE, 3, 3},
              {MD_ACTION_NAIVE, MD_HALF, 4, 4},
              {MD_ACTION_NAIVE, MD_HALF, 17, 17},
              {MD_ACTION_HISQ, MD_BF16, 3, 1},
              {MD_ACTION_WILSON, MD_DOUBLE, 12, 12},
              {MD_ACTION_WILSON, MD_HALF, 24, 24},
              {MD_ACTION_DOMAINWALL, MD_DOUBLE, 12, 1},
              {MD_ACTION_MOBIUS, MD_SINGLE, 2, 1},
              {MD_ACTION_MOBIUS, MD_HALF, 12, 1},
              {MD_ACTION_WILSON, MD_HALF, 2, 0 /* that of the vectors */}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (int open = 0; open < 2; open++) {
      md_backend_request r = {.action = rows[i].action,
                              .precision = rows[i].precision,
                              .packing = open ? MD_PACKING_AUTO : MD_PACKING_NONE,
                              .n_rhs = rows[i].asked,
                              .walls = {.slices = 4},
                              .pads = true,
                              .antiperiodic = true};
      const int own = md_isa_best() == MD_ISA_BASELINE ? r.n_rhs : 1;
      md_solver_part_request(*state, "cpu_simd", local, &r);
      assert_int_equal(r.n_rhs, rows[i].want ? rows[i].want : own);
    }
}

/* The packing and the right-hand sides that a request comes to; NULL: nothing serves it. */
static const char *chosen_on(md_context *context, const int *local, const char *name,
                             md_backend_request *request, const char **backend_name,
                             const char **reason) {
  const md_backend *backend = NULL;
  request->packing = request->packing == MD_PACKING_NONE ? MD_PACKING_AUTO : request->packing;
  request->pads = true;
  if (md_backend_choose(context, name, local, request, &backend, reason) != MD_OK) return NULL;
  *backend_name = backend->name;
  assert_non_null(*reason);
  return md_packing_name(request->packing);
}

static const char *chosen(md_context *context, const char *name, md_backend_request *request,
                          const char **backend_name, const char **reason) {
  return chosen_on(context, (int[]){16, 16, 16, 16}, name, request, backend_name, reason);
}

/* Tiles that are half full, where the two link fields stay in the cache. */
static void half_full_tiles_in_cache(void **state) {
  md_context *context = *state;
  const bool device = md_agree(context, md_device_open(context)) == MD_OK;
  const char *name, *reason;
  for (int extent = 16; extent <= 32; extent *= 2)
    for (int n = 3; n <= 4; n++) {
      const int local[4] = {extent, extent, extent, extent};
      const double bytes = 2 * 8 * 18 * 2.0 * pow(extent, 4);
      const bool fits = device && n == 4 && bytes <= (double)context->gpu.l2_bytes;
      md_backend_request r = {.precision = MD_HALF, .action = MD_ACTION_HISQ, .n_rhs = n};
      const char *packing = chosen_on(context, local, "auto", &r, &name, &reason);
      assert_string_equal(packing, fits ? "stacked" : "none");
      assert_int_equal(r.n_rhs, fits ? 8 : n);
      if (fits) assert_non_null(strstr(reason, "cache"));
    }
}

/* Four spins in 16 bits: from four right-hand sides on where they march, in whole fours, else from
 * seven. */
static void four_spins_fill_fours(void **state) {
  md_context *context = *state;
  const bool device = md_agree(context, md_device_open(context)) == MD_OK;
  const int tiled[4] = {16, 16, 16, 16}, other[4] = {20, 10, 10, 16};
  const char *name, *reason;
  for (int n = 1; n <= 20; n++)
    for (int k = 0; k < 4; k++) {
      const bool marches = k % 2 == 0 && n <= 16 && context->gpu.code >= 90;
      const bool stacked = device && n >= (marches ? 4 : 7);
      const int fours = (n + 3) / 4 * 4;
      md_backend_request r = {.action = MD_ACTION_WILSON,
                              .precision = k < 2 ? MD_HALF : MD_BF16,
                              .n_rhs = n,
                              .antiperiodic = true};
      const char *packing = chosen_on(context, k % 2 ? other : tiled, "auto", &r, &name, &reason);
      if (!packing && !device) continue; /* bf16 on a host */
      assert_string_equal(packing, stacked ? "stacked" : "none");
      assert_int_equal(r.n_rhs, stacked && marches ? fours : n);
    }
}

static void packing_follows_its_rule(void **state) {
  md_context *context = *state;
  const bool device = md_agree(context, md_device_open(context)) == MD_OK;
  const md_precision precisions[] = {MD_DOUBLE, MD_SINGLE, MD_HALF, MD_BF16};
  const char *name, *reason, *again;
  for (int i = 0; i < 4; i++)
    for (int n = 1; n <= MD_MAX_RHS; n++) {
      md_backend_request r = {.precision = precisions[i], .n_rhs = n, .antiperiodic = true};
      md_backend_request same = r;
      const char *packing = chosen(context, "auto", &r, &name, &reason);
      if (!packing && !device) continue; /* bf16 on a host */
      assert_non_null(packing);
      const bool stacked = device && n >= 7 && n <= 16 && precisions[i] != MD_SINGLE;
      assert_string_equal(packing, stacked ? "stacked" : "none");
      assert_string_equal(name, stacked ? "tensor" : device ? "cuda" : "cpu_simd");
      assert_int_equal(r.n_rhs, !stacked ? n : n <= 8 ? 8 : 16);
      if (stacked) assert_non_null(strstr(reason, "fill"));
      (void)chosen(context, "auto", &same, &name, &again);
      assert_int_equal(same.packing, r.packing);
      assert_string_equal(again, reason);
    }
  /* What was asked for stays, and the emulation is nothing that auto takes. */
  md_backend_request named = {
      .precision = MD_HALF, .packing = MD_PACKING_BLOCK8, .n_rhs = 1, .antiperiodic = true};
  assert_string_equal(chosen(context, "tensor_emu", &named, &name, &reason), "block8");
  assert_string_equal(reason, "asked for");
  md_backend_request open = {.precision = MD_HALF, .n_rhs = 3, .antiperiodic = true};
  assert_string_equal(chosen(context, "tensor_emu", &open, &name, &reason), "stacked");
  assert_non_null(strstr(reason, "right-hand sides, or spins and slices, as rows of a tile"));
  md_backend_request one = {.precision = MD_HALF, .n_rhs = 1, .antiperiodic = true};
  assert_string_equal(chosen(context, "tensor_emu", &one, &name, &reason), "block8");
  assert_non_null(strstr(reason, "block8 fills a tile best"));
  md_backend_request plain = {.precision = MD_HALF, .n_rhs = 1, .antiperiodic = true};
  assert_string_equal(chosen(context, "cpu_simd", &plain, &name, &reason), "none");
  assert_string_equal(reason, "the backend has no other one");
  md_backend_request free = {.precision = MD_DOUBLE, .n_rhs = 1, .antiperiodic = true};
  assert_string_equal(chosen(context, "auto", &free, &name, &reason), "none");
  if (!device) assert_string_equal(reason, "no backend here serves or gains by another one");
}

static struct CMUnitTest tests[] = {
    cmocka_unit_test(columns_beyond_the_right_hand_sides),
    cmocka_unit_test(columns_of_shifted_solves),
    cmocka_unit_test(right_hand_sides_in_parts),
    cmocka_unit_test(failure_of_a_part),
    cmocka_unit_test(parts_follow_their_rule),
    cmocka_unit_test(few_go_alone),
    cmocka_unit_test(half_full_tiles_in_cache),
    cmocka_unit_test(four_spins_fill_fours),
    cmocka_unit_test(packing_follows_its_rule),
};
MD_RUN_TESTS(tests)
