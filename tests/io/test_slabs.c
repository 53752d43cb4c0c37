/* Slabs: for every lattice and limit of memory they cover each site of the rank once, in the order
 * of the file, and none is larger than the buffers. */
#include "io/site_data.h"
#include "support.h"

enum { SITE_BYTES = 576 };

static void check(const md_geometry *g, size_t most_bytes, int z_multiple) {
  const md_slab_plan plan = md_slab_plan_make(g, SITE_BYTES, most_bytes, z_multiple);
  const size_t plane = (size_t)SITE_BYTES * (size_t)g->local[0] * (size_t)g->local[1];
  int z = 0, t = 0;
  for (int i = 0; i < plan.count; i++) {
    const md_slab s = md_slab_at(g, &plan, i);
    const size_t bytes = (size_t)md_slab_sites(g, &s) * SITE_BYTES;
    assert_true(s.z == z && s.t == t && s.nz > 0 && s.nt > 0);
    assert_true(s.nt == 1 || s.nz == g->local[2]);
    assert_true(s.z + s.nz <= g->local[2] && s.t + s.nt <= g->local[3]);
    assert_true(bytes <= md_slab_bytes(g, &plan, SITE_BYTES));
    assert_true(bytes <= most_bytes || bytes <= plane * (size_t)z_multiple);
    if (g->local[2] % z_multiple == 0) assert_int_equal(s.nz % z_multiple, 0);
    z = (z + s.nz) % g->local[2];
    if (z == 0) t += s.nt;
  }
  assert_true(z == 0 && t == g->local[3]);
}

static void slabs_cover_each_site_once(void **state) {
  static const int lattices[][4] = {{4, 4, 4, 8}, {6, 4, 10, 6}, {2, 2, 6, 14}};
  for (size_t l = 0; l < sizeof lattices / sizeof *lattices; l++) {
    const int *n = lattices[l];
    md_geometry *g = md_test_geometry(*state, n[0], n[1], n[2], n[3], false);
    const size_t plane = (size_t)SITE_BYTES * (size_t)(n[0] * n[1]);
    for (int planes = 1; planes <= n[2] * n[3] + 1; planes++)
      for (int z_multiple = 1; z_multiple <= 3; z_multiple++)
        for (int less = 0; less < 2; less++)
          check(g, (size_t)planes * plane - (size_t)less, z_multiple);
    md_geometry_destroy(g);
  }
}

static struct CMUnitTest tests[] = {cmocka_unit_test(slabs_cover_each_site_once)};
MD_RUN_TESTS(tests)
