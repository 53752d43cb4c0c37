/* Neighbour tables and halo transport: every neighbour of every site, seen through the tables,
 * is the site that coordinates say, whether it is local or came through the halo. */
#include "lattice/geometry/geometry.h"
#include "lattice/halo/halo.h"
#include "support.h"

#include <string.h>

/* Four ranks cut the last one in two directions, the others in one. */
static const int lattices[][4] = {
    {8, 4, 4, 4}, {2, 2, 2, 2}, {6, 4, 2, 8}, {4, 6, 10, 2}, {4, 2, 4, 12}};

/* The field's reals name site and component: global index * 1000 + component (+ 100 rhs). */
static void label(md_field *f) {
  for (int64_t i = 0; i < f->sites; i++) {
    double reals[MD_FERMION_REALS * 3];
    int x[MD_DIMS];
    md_global_coordinates(f->geometry, f->parity, i, x);
    for (int k = 0; k < f->components * f->n_rhs; k++)
      reals[k] = (double)(md_global_index(f->geometry, x) * 32 + k);
    md_field_set(f, i, reals);
  }
}

static void check_neighbours(const md_field *f, int hop) {
  const md_geometry *g = f->geometry;
  const int p = 1 - f->parity;
  for (int64_t i = 0; i < g->sites; i++)
    for (int d = 0; d < MD_DIRECTIONS; d++) {
      int x[MD_DIMS];
      md_global_coordinates(g, p, i, x);
      const int mu = d % MD_DIMS, step = d < MD_DIMS ? hop : -hop;
      x[mu] = (x[mu] + step + 3 * g->global[mu]) % g->global[mu];
      const int64_t j = md_neighbours(g, hop, p, d)[i];
      assert_true(g->split[mu] || j < g->sites);
      for (int r = 0; r < f->n_rhs; r++) {
        double got[MD_FERMION_REALS];
        md_field_get(f, j, r, got);
        for (int c = 0; c < f->components; c++)
          assert_true(got[c] == (double)(md_global_index(g, x) * 32 + r * f->components + c));
      }
    }
}

/* Checks the geometry and destroys it. */
static void check_exchange(md_context *context, md_geometry *g, md_field_shape shape) {
  md_halo *halo = NULL;
  MD_REQUIRE(context, md_halo_create(context, g, &shape, NULL, &halo));
  for (int p = 0; p < MD_PARITIES; p++) {
    md_field f;
    MD_REQUIRE(context, md_field_create(context, g, &shape, p, &f));
    label(&f);
    for (int twice = 0; twice < 2; twice++) { /* persistent requests are used again */
      MD_REQUIRE(context, md_halo_begin(halo, &f));
      MD_REQUIRE(context, md_halo_end(halo, &f));
    }
    for (int hop = 1; hop <= g->depth; hop += 2) check_neighbours(&f, hop);
    md_field_destroy(&f);
  }
  md_halo_destroy(halo);
  md_geometry_destroy(g);
}

static void run(md_context *context, const int dims[4], bool self_halo, md_field_shape shape) {
  check_exchange(context, md_test_geometry(context, dims[0], dims[1], dims[2], dims[3], self_halo),
                 shape);
  check_exchange(context, md_test_deep_geometry(context, dims, NULL, self_halo), shape);
}

static void neighbours_are_where_coordinates_say(void **state) {
  md_context *context = *state;
  const md_field_shape shapes[] = {{MD_DOUBLE, MD_HOST, 6, 1, true, false},
                                   {MD_SINGLE, MD_HOST, 6, 1, true, false},
                                   {MD_DOUBLE, MD_HOST, 6, 3, true, false}};
  for (size_t l = 0; l < sizeof lattices / sizeof *lattices; l++) {
    const int *n = lattices[l];
    if (!md_test_fits(context, n[0], n[1], n[2], n[3])) continue;
    for (int self = 0; self < 2; self++)
      for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) run(context, n, self, shapes[s]);
  }
}

/* Depth 3 with every direction cut as often as ranks allow, down to local extents of 2: a hop of
 * three passes over a whole rank, or comes back to this one. */
static void three_site_hops_cross_ranks(void **state) {
  md_context *context = *state;
  const md_field_shape shape = {MD_DOUBLE, MD_HOST, 6, 1, true, false};
  for (int d = 0; d < MD_DIMS; d++)
    for (int extent = 2; extent <= 4; extent += 2) {
      int dims[MD_DIMS] = {4, 4, 4, 4}, grid[MD_DIMS] = {1, 1, 1, 1};
      dims[d] = extent * context->ranks;
      grid[d] = context->ranks;
      check_exchange(context, md_test_deep_geometry(context, dims, grid, false), shape);
    }
  if (context->ranks % 4 != 0) return;
  const int dims[MD_DIMS] = {4, context->ranks, 2, 2};
  const int grid[MD_DIMS] = {2, context->ranks / 2, 1, 1};
  check_exchange(context, md_test_deep_geometry(context, dims, grid, true), shape);
}

static void wrong_depths_are_refused(void **state) {
  md_context *context = *state;
  const md_layout_request request = {.global = {4, 4, 4, 4}, .depth = 2};
  md_geometry *g = NULL;
  if (context->ranks > 4) return;
  assert_int_equal(md_geometry_create(context, &request, &g), MD_INPUT);
  assert_non_null(strstr(context->message, "must be 1 or 3 sites deep, got 2"));
}

/* Half: the scale travels with the site. 2^-20 and 3 share no scale, both come back exactly. */
static void scales_travel(void **state) {
  md_context *context = *state;
  md_geometry *g = md_test_geometry(context, 4, 4, 4, 8, true);
  const md_field_shape shape = {MD_HALF, MD_HOST, 6, 1, true, false};
  md_halo *halo = NULL;
  md_field f;
  MD_REQUIRE(context, md_halo_create(context, g, &shape, NULL, &halo));
  MD_REQUIRE(context, md_field_create(context, g, &shape, MD_EVEN, &f));
  for (int64_t i = 0; i < f.sites; i++) {
    const double big = i % 2 ? 3e-20 : 0x1p60;
    const double reals[6] = {big, -big / 2, big / 4, 0, big, big / 8};
    md_field_set(&f, i, reals);
  }
  MD_REQUIRE(context, md_halo_begin(halo, &f));
  MD_REQUIRE(context, md_halo_end(halo, &f));
  for (int64_t i = f.sites; i < f.sites + f.halo; i++) {
    double v[6];
    md_field_get(&f, i, 0, v);
    const double big = v[0] > 1.0 ? 0x1p60 : 3e-20;
    assert_true(v[0] >= big * (1 - 0x1p-11) && v[0] <= big * (1 + 0x1p-11));
    assert_true(v[1] == -v[0] / 2 && v[2] == v[0] / 4 && v[3] == 0 && v[5] == v[0] / 8);
  }
  md_field_destroy(&f);
  md_halo_destroy(halo);
  md_geometry_destroy(g);
}

/* Both numbers of the rule stand in the message. */
static void bad_lattices_are_refused(void **state) {
  md_context *context = *state;
  const struct {
    md_layout_request request;
    const char *says;
  } cases[] = {
      {{.global = {5, 4, 4, 4}}, "must be even, from 2 to 32766, got 5 in direction x"},
      {{.global = {4, 4, 0, 4}}, "got 0 in direction z"},
      {{.global = {4, 4, 4, 40000}}, "got 40000 in direction t"},
      {{.global = {4, 4, 4, 4}, .grid = {7, 1, 1, 1}}, "valid rank grids:"},
      {{.global = {4, 4, 4, 4}, .grid = {-1, -1, 1, 1}}, "valid rank grids:"},
      {{.global = {4, 4, 4, 4}, .grid = {0, 2, 1, 1}}, "with rank grid 0x2x1x1 on"},
      {{.global = {32766, 32766, 32766, 32766}}, "2^40 sites"},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    md_geometry *g = NULL;
    assert_int_equal(md_geometry_create(context, &cases[c].request, &g), MD_INPUT);
    assert_null(g);
    if (!strstr(context->message, cases[c].says))
      fail_msg("'%s' does not say '%s'", context->message, cases[c].says);
  }
}

static void odd_local_extent_names_the_direction(void **state) {
  md_context *context = *state;
  if (context->ranks != 2) return;
  const md_layout_request request = {.global = {6, 4, 4, 4}, .grid = {2, 1, 1, 1}};
  md_geometry *g = NULL;
  assert_int_equal(md_geometry_create(context, &request, &g), MD_INPUT);
  assert_non_null(strstr(context->message, "local extent must be even, got 3 in direction x"));
  assert_non_null(strstr(context->message, "1x1x1x2"));
}

/* The choice looks at the number of ranks only, so this rank makes that of any number. */
static void expect_grid(const md_context *context, int ranks, md_space space, const int global[4],
                        const int expected[4], const char *reason) {
  md_context many = *context;
  md_geometry g = {0};
  md_layout_request request = {.costs = md_halo_face_costs(space)};
  many.ranks = ranks;
  memcpy(request.global, global, sizeof request.global);
  MD_REQUIRE(&many, md_rank_grid_choose(&many, &request, &g));
  assert_memory_equal(g.grid, expected, sizeof g.grid);
  assert_false(g.grid_asked);
  assert_non_null(strstr(g.grid_reason, reason));
}

static void grid_has_the_cheapest_faces(void **state) {
  const struct {
    int ranks, global[4], host[4], device[4];
  } cases[] = {
      {2, {8, 8, 8, 16}, {1, 1, 1, 2}, {1, 1, 1, 2}},
      {4, {8, 8, 8, 16}, {1, 1, 1, 4}, {1, 1, 1, 4}},   /* 2 x 512, not 2 x (512 + 512) */
      {2, {16, 8, 8, 8}, {2, 1, 1, 1}, {1, 1, 1, 2}},   /* 2 x 512 at 4.8, 2 x 1024 */
      {2, {64, 8, 8, 8}, {2, 1, 1, 1}, {2, 1, 1, 1}},   /* 2 x 512 at 4.8, 2 x 4096 */
      {2, {16, 16, 16, 8}, {1, 1, 2, 1}, {1, 1, 2, 1}}, /* 2 x 2048 at 1.1, 2 x 4096 */
      {2, {8, 16, 8, 14}, {1, 2, 1, 1}, {1, 2, 1, 1}},  /* t cannot be cut */
      {8, {16, 8, 8, 16}, {2, 1, 1, 4}, {1, 1, 1, 8}},
      {8, {48, 24, 24, 24}, {4, 1, 1, 2}, {1, 1, 2, 4}},
      {16, {8, 8, 8, 8}, {1, 1, 4, 4}, {1, 1, 4, 4}},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    expect_grid(*state, cases[k].ranks, MD_HOST, cases[k].global, cases[k].host,
                "fewest sites on faces of ");
    expect_grid(*state, cases[k].ranks, MD_DEVICE, cases[k].global, cases[k].device,
                "cheapest faces on a device of ");
  }
}

static void grid_says_why_it_was_taken(void **state) {
  const int small[4] = {2, 2, 2, 4}, in_two[4] = {1, 1, 1, 2}, one[4] = {1, 1, 1, 1};
  expect_grid(*state, 2, MD_DEVICE, small, in_two, "the only valid one for 2 ranks");
  expect_grid(*state, 1, MD_HOST, small, one, "one rank");
  md_context two = *(const md_context *)*state;
  md_geometry g = {0};
  const md_layout_request asked = {.global = {8, 8, 8, 8}, .grid = {2, 1, 1, 1}};
  two.ranks = 2;
  MD_REQUIRE(&two, md_rank_grid_choose(&two, &asked, &g));
  assert_memory_equal(g.grid, asked.grid, sizeof g.grid);
  assert_true(g.grid_asked);
  assert_string_equal(g.grid_reason, "asked for");
}

static struct CMUnitTest tests[] = {
    cmocka_unit_test(neighbours_are_where_coordinates_say),
    cmocka_unit_test(three_site_hops_cross_ranks),
    cmocka_unit_test(wrong_depths_are_refused),
    cmocka_unit_test(scales_travel),
    cmocka_unit_test(bad_lattices_are_refused),
    cmocka_unit_test(odd_local_extent_names_the_direction),
    cmocka_unit_test(grid_has_the_cheapest_faces),
    cmocka_unit_test(grid_says_why_it_was_taken),
};
MD_RUN_TESTS(tests)
