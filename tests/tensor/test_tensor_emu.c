/* Every packing without a GPU: tensor_emu against cpu_ref. */
#include "conformance.h"

static void matches_reference(void **state) {
  tensor_matches_reference(*state, "tensor_emu");
}
static void half_keeps_range(void **state) {
  tensor_half_keeps_range(*state, "tensor_emu");
}
static void ranges_are_disjoint(void **state) {
  tensor_ranges_are_disjoint(*state, "tensor_emu");
}
static void serves_spins(void **state) {
  tensor_serves_spins(*state, "tensor_emu");
}
static void adds_largest_spins(void **state) {
  tensor_adds_largest_spins(*state, "tensor_emu");
}
static void refuses(void **state) {
  tensor_refuses(*state, "tensor_emu");
}

static struct CMUnitTest tests[] = {
    cmocka_unit_test(matches_reference),   cmocka_unit_test(half_keeps_range),
    cmocka_unit_test(ranges_are_disjoint), cmocka_unit_test(serves_spins),
    cmocka_unit_test(adds_largest_spins),  cmocka_unit_test(refuses)};
MD_RUN_TESTS(tests)
