/* The backend `tensor` against cpu_ref on a GPU: the tests that tensor_emu passes, and a lattice
 * large enough for the marching kernel. */
#include "conformance.h"

#include "../cuda/gpu_tests.h"

static void matches_reference(void **state) {
  tensor_matches_reference(*state, "tensor");
}
static void half_keeps_range(void **state) {
  tensor_half_keeps_range(*state, "tensor");
}
static void ranges_are_disjoint(void **state) {
  tensor_ranges_are_disjoint(*state, "tensor");
}
static void serves_spins(void **state) {
  tensor_serves_spins(*state, "tensor");
}
static void adds_largest_spins(void **state) {
  tensor_adds_largest_spins(*state, "tensor");
}
static void refuses(void **state) {
  tensor_refuses(*state, "tensor");
}
static void marches(void **state) {
  tensor_marches(*state, "tensor", MD_ACTION_NAIVE);
}
static void marches_with_two_link_fields(void **state) {
  tensor_marches(*state, "tensor", MD_ACTION_HISQ);
}
static void marches_with_spin(void **state) {
  tensor_marches_with_spin(*state, "tensor");
}

static struct CMUnitTest tests[] = {cmocka_unit_test(matches_reference),
                                    cmocka_unit_test(half_keeps_range),
                                    cmocka_unit_test(ranges_are_disjoint),
                                    cmocka_unit_test(serves_spins),
                                    cmocka_unit_test(adds_largest_spins),
                                    cmocka_unit_test(refuses),
                                    cmocka_unit_test(marches),
                                    cmocka_unit_test(marches_with_two_link_fields),
                                    cmocka_unit_test(marches_with_spin)};
MD_RUN_GPU_TESTS(tests)
