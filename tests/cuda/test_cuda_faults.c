/* What keeps a halo on GPUs from starting, on one rank alone, ends all ranks with one message, and
 * the next start works: memory that another GPU cannot address, an NCCL that does not start, a GPU
 * with too little memory, ranks on different nodes. */
#include "base/device_peers.h"
#include "gpu_tests.h"
#include "lattice/halo/transport.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if MD_HAVE_NCCL
#include <nccl.h>
#endif

typedef enum fault_kind { FAULT_NONE, FAULT_MAP, FAULT_NCCL, FAULT_MEMORY } fault_kind;

/* The `at`-th call of its kind fails on the rank where it is armed. */
static struct {
  fault_kind kind;
  bool armed;
  int at, calls;
} fault;

static bool strikes(fault_kind kind) {
  return kind == fault.kind && ++fault.calls == fault.at && fault.armed;
}

/* The linker puts these in front of the real ones. */
cudaError_t __real_cudaIpcOpenMemHandle(void **memory, cudaIpcMemHandle_t handle, unsigned flags);
cudaError_t __wrap_cudaIpcOpenMemHandle(void **memory, cudaIpcMemHandle_t handle, unsigned flags);
cudaError_t __wrap_cudaIpcOpenMemHandle(void **memory, cudaIpcMemHandle_t handle, unsigned flags) {
  return strikes(FAULT_MAP) ? cudaErrorMapBufferObjectFailed
                            : __real_cudaIpcOpenMemHandle(memory, handle, flags);
}

static md_status no_memory(md_context *context, const char *what) {
  return md_fail(context, MD_ENVIRONMENT, "injected: no memory for %s on rank %d", what,
                 context->rank);
}
md_status __real_md_device_allocate(md_context *context, size_t bytes, const char *what,
                                    void **memory);
md_status __wrap_md_device_allocate(md_context *context, size_t bytes, const char *what,
                                    void **memory);
md_status __wrap_md_device_allocate(md_context *context, size_t bytes, const char *what,
                                    void **memory) {
  *memory = NULL;
  return strikes(FAULT_MEMORY) ? no_memory(context, what)
                               : __real_md_device_allocate(context, bytes, what, memory);
}
md_status __real_md_device_require(md_context *context, size_t bytes, const char *what);
md_status __wrap_md_device_require(md_context *context, size_t bytes, const char *what);
md_status __wrap_md_device_require(md_context *context, size_t bytes, const char *what) {
  return strikes(FAULT_MEMORY) ? no_memory(context, what)
                               : __real_md_device_require(context, bytes, what);
}

#if MD_HAVE_NCCL
ncclResult_t __real_ncclCommInitRank(ncclComm_t *ranks, int count, ncclUniqueId id, int rank);
ncclResult_t __wrap_ncclCommInitRank(ncclComm_t *ranks, int count, ncclUniqueId id, int rank);
ncclResult_t __wrap_ncclCommInitRank(ncclComm_t *ranks, int count, ncclUniqueId id, int rank) {
  return strikes(FAULT_NCCL) ? ncclSystemError : __real_ncclCommInitRank(ranks, count, id, rank);
}
#endif

static md_status create(md_context *context, const md_geometry *g, const char *transport,
                        md_halo **halo) {
  const md_field_shape shape = {MD_HALF, MD_DEVICE, 6, 1, true, false};
  const md_halo_request request = {.transport = transport};
  return md_halo_create(context, g, &shape, &request, halo);
}

/* A halo that works, or the status with the same message on all ranks. */
static md_status try(md_context *context, const md_geometry *g, const char *transport) {
  md_halo *halo = NULL;
  char text[sizeof context->message];
  const md_status status = create(context, g, transport, &halo);
  if (status == MD_OK) {
    md_halo_destroy(halo);
    return MD_OK;
  }
  assert_null(halo);
  assert_int_equal(context->deferred.status, MD_OK);
  memcpy(text, context->message, sizeof text);
  md_broadcast(context, text, sizeof text);
  assert_string_equal(text, context->message);
  return status;
}

static void set_fault(const md_context *context, fault_kind kind, int at, int rank) {
  fault.kind = kind;
  fault.armed = context->rank == rank;
  fault.at = at;
  fault.calls = 0;
}

static md_geometry *begin(md_context *context) {
  set_fault(context, FAULT_NONE, 0, 0);
  if (context->ranks == 1) skip();
  return md_test_geometry(context, 4, 4, 4, 8, false);
}

static void memory_that_cannot_be_mapped(void **state) {
  md_context *context = *state;
  md_geometry *g = begin(context);
  if (try(context, g, "peer") == MD_OK) {
    char want[96];
    const int last = context->ranks - 1;
    snprintf(want, sizeof want, "the GPU of rank %d cannot address the memory of the GPU of rank 0",
             last);
    set_fault(context, FAULT_MAP, 1, last);
    assert_int_equal(try(context, g, "peer"), MD_ENVIRONMENT);
    if (!strstr(context->message, want)) fail_msg("%s", context->message);
    set_fault(context, FAULT_NONE, 0, 0);
    MD_REQUIRE(context, try(context, g, "peer"));
  }
  md_geometry_destroy(g);
}

static void too_little_memory(void **state) {
  md_context *context = *state;
  md_geometry *g = begin(context);
  for (const md_transport *const *t = md_transports(); *t; t++) {
    if (!((*t)->spaces & 1u << MD_DEVICE)) continue;
    if (try(context, g, (*t)->name) != MD_OK) continue;
    set_fault(context, FAULT_MEMORY, 0, 0);
    MD_REQUIRE(context, try(context, g, (*t)->name));
    const int steps = fault.calls;
    assert_true(steps > 1);
    for (int at = 1; at <= steps; at++) {
      char want[32];
      const int rank = at % context->ranks;
      snprintf(want, sizeof want, "on rank %d", rank);
      set_fault(context, FAULT_MEMORY, at, rank);
      if (try(context, g, (*t)->name) != MD_ENVIRONMENT)
        fail_msg("%s, allocation %d: no failure", (*t)->name, at);
      if (!strstr(context->message, "injected: no memory for") || !strstr(context->message, want))
        fail_msg("%s, allocation %d: %s", (*t)->name, at, context->message);
    }
    set_fault(context, FAULT_NONE, 0, 0);
    MD_REQUIRE(context, try(context, g, (*t)->name));
  }
  md_geometry_destroy(g);
}

static void nodes_do_not_share_memory(void **state) {
  md_context *context = *state;
  md_geometry *g = begin(context);
  context->wishes.node_size = 1;
  assert_int_equal(try(context, g, "peer"), MD_ENVIRONMENT);
  if (!strstr(context->message, "only within a host")) fail_msg("%s", context->message);
  md_halo *halo = NULL;
  MD_REQUIRE(context, create(context, g, "auto", &halo));
  assert_string_not_equal(md_halo_transport(halo), "peer");
  assert_non_null(strstr(md_halo_reason(halo), "not peer: GPUs address"));
  md_halo_destroy(halo);
  context->wishes.node_size = 0;
  md_geometry_destroy(g);
}

/* Last: NCCL of the other ranks waits for the one that failed until it is left behind. */
static void nccl_that_does_not_start(void **state) {
  md_context *context = *state;
  md_geometry *g = begin(context);
  md_nccl_close(context);
  if (try(context, g, "nccl") == MD_OK) {
    md_nccl_close(context);
    set_fault(context, FAULT_NCCL, 1, context->ranks - 1);
    assert_int_equal(try(context, g, "nccl"), MD_ENVIRONMENT);
    if (!strstr(context->message, "the start of NCCL failed on rank"))
      fail_msg("%s", context->message);
    set_fault(context, FAULT_NONE, 0, 0);
    MD_REQUIRE(context, try(context, g, "auto"));
  }
  md_geometry_destroy(g);
}

static struct CMUnitTest tests[] = {
    cmocka_unit_test(memory_that_cannot_be_mapped), cmocka_unit_test(too_little_memory),
    cmocka_unit_test(nodes_do_not_share_memory), cmocka_unit_test(nccl_that_does_not_start)};
MD_RUN_GPU_TESTS(tests)
