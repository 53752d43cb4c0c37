/* On CPUs, and as tests/cuda has it on GPUs. What fails on one rank only ends all ranks with its
 * message and MD_ENVIRONMENT, in every solver: a stencil call, the beginning and the end of a halo
 * exchange, an allocation. Every such step of a solve is made to fail in turn; a rank that waits
 * for another runs into the test's time limit. */
#include "base/memory.h"
#include "dirac/solvers/multishift.h"
#include "lattice/halo/transport.h"
#include "problem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* On a GPU the host has queued up to two iterations when it learns of a failure. */
#ifdef MD_FAILURES_ON_GPU
#include "../cuda/gpu_tests.h"
#define RUN MD_RUN_GPU_TESTS
static const char backend[] = "cuda";
enum { MOST_STENCILS = 40 };
#else
#define RUN MD_RUN_TESTS
static const char backend[] = "cpu_simd";
enum { MOST_STENCILS = 10 };
#endif

typedef enum fault_kind { FAULT_HOP, FAULT_BEGIN, FAULT_END, FAULT_MEMORY, FAULTS } fault_kind;
static const char *const fault_names[FAULTS] = {"stencil", "begin", "end", "memory"};

/* The step that fails: the `at`-th of its kind on one rank, counted from `calls`. */
static struct {
  fault_kind kind;
  bool armed; /* on this rank */
  int at, calls;
  int stencils, struck_at; /* stencil calls so far, and when it struck */
} fault;

static bool strikes(fault_kind kind) {
  if (kind != fault.kind || ++fault.calls != fault.at || !fault.armed) return false;
  fault.struck_at = fault.stencils;
  return true;
}

static md_status injected(md_context *context, md_status status) {
  if (status != MD_OK) return status;
  return md_fail(context, MD_ENVIRONMENT, "injected: %s %d on rank %d", fault_names[fault.kind],
                 fault.at, context->rank);
}

/* The linker puts these two in front of the real ones. */
void *__real_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes) {
  return strikes(FAULT_MEMORY) ? NULL : __real_calloc(count, bytes);
}
md_status __real_md_allocate(md_context *context, size_t bytes, const char *what, void **memory);
md_status __wrap_md_allocate(md_context *context, size_t bytes, const char *what, void **memory);
md_status __wrap_md_allocate(md_context *context, size_t bytes, const char *what, void **memory) {
  *memory = NULL;
  return strikes(FAULT_MEMORY) ? md_fail_memory(context, bytes, what)
                               : __real_md_allocate(context, bytes, what, memory);
}

#ifdef MD_FAILURES_ON_GPU
md_status __real_md_device_allocate(md_context *context, size_t bytes, const char *what,
                                    void **memory);
md_status __wrap_md_device_allocate(md_context *context, size_t bytes, const char *what,
                                    void **memory);
md_status __wrap_md_device_allocate(md_context *context, size_t bytes, const char *what,
                                    void **memory) {
  /* Without it sums go through the host, and nothing fails. */
  const bool counts = strcmp(what, "addresses of other ranks") != 0;
  *memory = NULL;
  return counts && strikes(FAULT_MEMORY) ? md_fail_memory(context, bytes, what)
                                         : __real_md_device_allocate(context, bytes, what, memory);
}
#endif

/* A backend and a transport that fail where the fault says so; the real step is done before, as by
 * one that fails late. */
static const md_backend *real_backend;
static const md_transport *real_transport;

static md_status faulty_hop(md_context *context, void *state, const md_hop_call *call) {
  const bool struck = strikes(FAULT_HOP);
  fault.stencils++;
  const md_status status = real_backend->hop(context, state, call);
  return struck ? injected(context, status) : status;
}
static md_status faulty_begin(md_context *context, void *state, const md_field *field) {
  const bool struck = strikes(FAULT_BEGIN);
  const md_status status = real_transport->begin(context, state, field);
  return struck ? injected(context, status) : status;
}
static md_status faulty_end(md_context *context, void *state, md_field *field) {
  const bool struck = strikes(FAULT_END);
  const md_status status = real_transport->end(context, state, field);
  return struck ? injected(context, status) : status;
}

static md_backend faulty_backend;
static md_transport faulty_transport;

static md_status create(md_context *context, const problem *p, md_precision precision,
                        md_dirac *dirac) {
  const md_backend_request request = {
      .precision = precision, .n_rhs = p->b[0].n_rhs, .antiperiodic = true};
  MD_TRY(md_dirac_create(context, p->field, backend, &request, dirac));
  real_backend = dirac->backend;
  real_transport = dirac->halo->transport;
  faulty_backend = *real_backend;
  faulty_backend.hop = faulty_hop;
  faulty_transport = *real_transport;
  faulty_transport.begin = faulty_begin;
  faulty_transport.end = faulty_end;
  dirac->backend = &faulty_backend;
  dirac->halo->transport = &faulty_transport;
  return MD_OK;
}

typedef enum solver_kind { CG, BLOCK, MIXED, DEFLATED, MULTISHIFT, SOLVERS } solver_kind;
static const char *const solver_names[SOLVERS] = {"cg", "block", "mixed", "deflated", "multishift"};

static md_status run_cg(md_context *context, problem *p, solver_kind kind) {
  const md_precision narrow = kind == DEFLATED ? MD_BF16 : MD_HALF;
  md_dirac dirac = {0}, inner = {0};
  md_solver_result result = {0};
  md_solver_request request = {
      .mass = 0.8, .tolerance = 1e-9, .max_iterations = 400, .block = kind == BLOCK};
  md_status status = create(context, p, MD_DOUBLE, &dirac);
  if (status == MD_OK && (kind == MIXED || kind == DEFLATED)) {
    request.inner = &inner;
    status = create(context, p, narrow, &inner);
  }
  if (status == MD_OK) status = md_solve_cg(context, &dirac, &dirac, &request, p->x, p->b, &result);
  if (status == MD_OK) assert_true(result.converged);
  md_solver_result_free(&result);
  md_dirac_destroy(&dirac);
  md_dirac_destroy(&inner);
  return status;
}

static md_status run_multishift(md_context *context, problem *p) {
  static const double shifts[] = {0.0, 0.2};
  const md_multishift_request request = {.mass = 0.8,
                                         .shifts = shifts,
                                         .n_shifts = 2,
                                         .tolerance = 1e-9,
                                         .max_iterations = 400,
                                         .refine = true};
  md_dirac dirac = {0}, narrow = {0};
  md_multishift_result result = {0};
  md_field x[2] = {p->x[MD_EVEN], p->x[MD_ODD]};
  x[1].parity = MD_EVEN;
  md_status status = create(context, p, MD_DOUBLE, &dirac);
  if (status == MD_OK) status = create(context, p, MD_SINGLE, &narrow);
  if (status == MD_OK)
    status = md_solve_multishift(context, &narrow, &dirac, &request, x, &p->b[MD_EVEN], &result);
  if (status == MD_OK) assert_true(result.converged);
  md_multishift_result_free(&result);
  md_dirac_destroy(&dirac);
  md_dirac_destroy(&narrow);
  return status;
}

static md_status run(md_context *context, problem *p, solver_kind kind) {
  return kind == MULTISHIFT ? run_multishift(context, p) : run_cg(context, p, kind);
}

/* All ranks have the failing rank's message, and none keeps a failure for later. */
static void check_ended(md_context *context, md_status status, solver_kind kind, int rank) {
  char want[64], text[1024];
  if (status != MD_ENVIRONMENT)
    fail_msg("%s, %s %d on rank %d: status %d", solver_names[kind], fault_names[fault.kind],
             fault.at, rank, (int)status);
  snprintf(want, sizeof want, "injected: %s %d on rank %d", fault_names[fault.kind], fault.at,
           rank);
  memcpy(text, context->message, sizeof text);
  md_broadcast(context, text, sizeof text);
  assert_string_equal(text, context->message);
  if (fault.kind == FAULT_MEMORY) {
    snprintf(want, sizeof want, "on rank %d, which could not be had", rank);
    assert_non_null(strstr(context->message, want));
  } else
    assert_string_equal(context->message, want);
  assert_int_equal(context->deferred.status, MD_OK);
  /* The next global sum ends it: no more than the hops of an update and an iteration, each with an
   * interior and a boundary. */
  if (fault.armed) assert_true(fault.stencils - fault.struck_at <= MOST_STENCILS);
}

/* Every step of the first iterations, then some of the later ones. */
static int after(int at) {
  return at < 8 ? at + 1 : at + 1 + at / 2;
}

static void ends_every_rank(md_context *context, solver_kind kind) {
  problem p;
  problem_make(context, 2, &p);
  const int last_rank = context->ranks - 1;
  for (fault_kind f = 0; f < FAULTS; f++) {
    memset(&fault, 0, sizeof fault);
    fault.kind = f;
    MD_REQUIRE(context, run(context, &p, kind));
    const int steps = fault.calls;
    assert_true(steps > 4);
    int rank = 0;
    for (int at = 1; at <= steps; at = f == FAULT_MEMORY ? at + 1 : after(at)) {
      rank = last_rank - rank; /* the first and the last in turn */
      fault.armed = context->rank == rank;
      fault.at = at;
      fault.calls = fault.stencils = 0;
      check_ended(context, run(context, &p, kind), kind, rank);
    }
  }
  memset(&fault, 0, sizeof fault);
  problem_drop(&p);
}

static void cg(void **state) {
  ends_every_rank(*state, CG);
}
static void block(void **state) {
  ends_every_rank(*state, BLOCK);
}
static void mixed(void **state) {
  ends_every_rank(*state, MIXED);
}
static void deflated(void **state) {
  ends_every_rank(*state, DEFLATED);
}
static void multishift(void **state) {
  ends_every_rank(*state, MULTISHIFT);
}

static struct CMUnitTest tests[] = {cmocka_unit_test(cg), cmocka_unit_test(block),
                                    cmocka_unit_test(mixed), cmocka_unit_test(deflated),
                                    cmocka_unit_test(multishift)};
RUN(tests)
