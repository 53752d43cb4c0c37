/* Sources: where they are zero and one, the size of noise, components that are independent, the
 * same numbers for every rank grid; copies of single right-hand sides. */
#include "lattice/fields/source.h"
#include "support.h"

#include <math.h>
#include <string.h>

enum { N_RHS = 3, REALS = MD_FERMION_REALS * N_RHS };
static const int dims[4] = {8, 6, 4, 4};

static md_geometry *make(md_context *context, md_field b[MD_PARITIES]) {
  const md_field_shape shape = {MD_DOUBLE, MD_HOST, MD_FERMION_REALS, N_RHS, true, false};
  md_geometry *g = md_test_geometry(context, dims[0], dims[1], dims[2], dims[3], false);
  for (int p = 0; p < MD_PARITIES; p++)
    MD_REQUIRE(context, md_field_create(context, g, &shape, p, &b[p]));
  return g;
}

static void drop(md_geometry *g, md_field b[MD_PARITIES]) {
  for (int p = 0; p < MD_PARITIES; p++) md_field_destroy(&b[p]);
  md_geometry_destroy(g);
}

static void get(const md_field *f, int64_t site, int x[MD_DIMS], double v[REALS]) {
  md_global_coordinates(f->geometry, f->parity, site, x);
  for (int r = 0; r < N_RHS; r++) md_field_get(f, site, r, v + MD_FERMION_REALS * r);
}

/* Unit colours where the source is, zero elsewhere. */
static void check_units(const md_field b[MD_PARITIES], bool (*is_there)(const int x[MD_DIMS])) {
  for (int p = 0; p < MD_PARITIES; p++)
    for (int64_t i = 0; i < b[p].sites; i++) {
      int x[MD_DIMS];
      double v[REALS];
      get(&b[p], i, x, v);
      for (int k = 0; k < REALS; k++) {
        const bool unit = k % MD_FERMION_REALS == 2 * (k / MD_FERMION_REALS);
        assert_true(v[k] == (unit && is_there(x) ? 1.0 : 0.0));
      }
    }
}

static const int point[MD_DIMS] = {3, 5, 0, 2};
static bool at_point(const int x[MD_DIMS]) {
  return x[0] == point[0] && x[1] == point[1] && x[2] == point[2] && x[3] == point[3];
}
static bool on_wall(const int x[MD_DIMS]) {
  return x[MD_T] == point[MD_T];
}

static bool on_corners(const int x[MD_DIMS]) {
  return on_wall(x) && x[0] % 2 == 0 && x[1] % 2 == 0 && x[2] % 2 == 0;
}
static bool on_even_wall(const int x[MD_DIMS]) {
  return on_wall(x) && (x[0] + x[1] + x[2]) % 2 == 0;
}
static bool on_odd_wall(const int x[MD_DIMS]) {
  return on_wall(x) && !on_even_wall(x);
}

static void parts_of_walls(void **state) {
  static const struct {
    md_source_kind kind;
    bool (*is_there)(const int x[MD_DIMS]);
  } parts[] = {{MD_SOURCE_CORNER, on_corners},
               {MD_SOURCE_EVEN_WALL, on_even_wall},
               {MD_SOURCE_ODD_WALL, on_odd_wall}};
  md_field b[MD_PARITIES];
  md_geometry *g = make(*state, b);
  for (int k = 0; k < 3; k++) {
    md_source_vector v[N_RHS];
    for (int r = 0; r < N_RHS; r++)
      v[r] = (md_source_vector){.kind = parts[k].kind, .at = {[MD_T] = point[MD_T]}, .colour = r};
    md_source_gaussian(b, 1);
    md_source_fill(b, v);
    check_units(b, parts[k].is_there);
  }
  drop(g, b);
}

/* Unit numbers everywhere; vectors of length sqrt(3) on one time slice, whose components have no
 * correlation; right-hand sides are told by their number, wherever they stand. */
static void phases_and_colours(void **state) {
  md_context *context = *state;
  md_field b[MD_PARITIES];
  md_geometry *g = make(context, b);
  const md_source_vector v[N_RHS] = {
      {.kind = MD_SOURCE_U1, .seed = 3, .number = 5},
      {.kind = MD_SOURCE_COLOUR_WALL, .at = {[MD_T] = point[MD_T]}, .seed = 3},
      {.kind = MD_SOURCE_Z2, .seed = 3, .number = 1}};
  long long sums[6] = {0};
  md_source_fill(b, v);
  for (int p = 0; p < MD_PARITIES; p++)
    for (int64_t i = 0; i < b[p].sites; i++) {
      int x[MD_DIMS];
      double w[REALS], norm2 = 0.0;
      get(&b[p], i, x, w);
      for (int c = 0; c < MD_FERMION_REALS; c += 2)
        md_require_at_most(fabs(w[c] * w[c] + w[c + 1] * w[c + 1] - 1.0), 1e-14, "U(1)");
      const double *colour = w + MD_FERMION_REALS;
      for (int c = 0; c < MD_FERMION_REALS; c++) norm2 += colour[c] * colour[c];
      md_require_at_most(fabs(norm2 - (on_wall(x) ? 3.0 : 0.0)), 1e-14, "length of a colour");
      sums[0] += llround(w[0] * 0x1p20);
      sums[1] += llround(w[1] * 0x1p20);
      for (int c = 0; c < 3; c++) {
        const double first2 = colour[2 * c] * colour[2 * c] + colour[2 * c + 1] * colour[2 * c + 1];
        sums[2 + c] += llround(first2 * 0x1p20);
      }
      sums[5] += llround((colour[0] * colour[2] + colour[1] * colour[3]) * 0x1p20);
    }
  md_sum_integers(context, sums, 6);
  const double volume = (double)g->volume, wall = volume / dims[3];
  md_require_at_most(fabs((double)sums[0]) * 0x1p-20, 5.0 * sqrt(0.5 * volume), "mean of phases");
  md_require_at_most(fabs((double)sums[1]) * 0x1p-20, 5.0 * sqrt(0.5 * volume), "mean of phases");
  for (int c = 0; c < 3; c++)
    md_require_at_most(fabs((double)sums[2 + c] * 0x1p-20 - wall), 5.0 * sqrt(wall), "a colour");
  md_require_at_most(fabs((double)sums[5]) * 0x1p-20, 5.0 * sqrt(wall), "two colours");
  md_field same[MD_PARITIES];
  md_geometry *again = make(context, same);
  md_source_random(same, 3);
  for (int64_t i = 0; i < g->sites; i++) {
    double w[MD_FERMION_REALS], u[MD_FERMION_REALS];
    md_field_get(&b[MD_ODD], i, 2, w);
    md_field_get(&same[MD_ODD], i, 1, u);
    assert_memory_equal(w, u, sizeof w);
  }
  drop(g, b);
  drop(again, same);
}

static void points_and_walls(void **state) {
  md_field b[MD_PARITIES];
  md_geometry *g = make(*state, b);
  md_source_gaussian(b, 1); /* all of it is overwritten */
  md_source_point(b, point);
  check_units(b, at_point);
  md_source_vector wall[3];
  for (int c = 0; c < 3; c++)
    wall[c] = (md_source_vector){MD_SOURCE_WALL, .at = {[MD_T] = point[MD_T]}, .colour = c};
  md_source_fill(b, wall);
  check_units(b, on_wall);
  drop(g, b);
}

/* Sums over the lattice, collective: of the numbers, their squares and fourth powers, and the
 * product of neighbouring components. */
typedef struct moments {
  double count, first, second, fourth, neighbours;
} moments;

static moments moments_of(const md_context *context, const md_field b[MD_PARITIES]) {
  moments m = {0};
  for (int p = 0; p < MD_PARITIES; p++)
    for (int64_t i = 0; i < b[p].sites; i++) {
      int x[MD_DIMS];
      double v[REALS];
      get(&b[p], i, x, v);
      for (int k = 0; k < REALS; k++) {
        m.count++;
        m.first += v[k];
        m.second += v[k] * v[k];
        m.fourth += v[k] * v[k] * v[k] * v[k];
        m.neighbours += v[k] * v[(k + 1) % REALS];
      }
    }
  long long whole[5] = {(long long)m.count, llround(m.first * 0x1p20), llround(m.second * 0x1p20),
                        llround(m.fourth * 0x1p20), llround(m.neighbours * 0x1p20)};
  md_sum_integers(context, whole, 5);
  m = (moments){(double)whole[0], 0, 0, 0, 0};
  double *mean[4] = {&m.first, &m.second, &m.fourth, &m.neighbours};
  for (int k = 0; k < 4; k++) *mean[k] = (double)whole[k + 1] * 0x1p-20 / m.count;
  return m;
}

static void noise_has_its_moments(void **state) {
  md_field b[MD_PARITIES];
  md_geometry *g = make(*state, b);
  md_source_random(b, 5);
  moments m = moments_of(*state, b);
  md_require_at_most(fabs(m.first), 5.0 * sqrt(0.5 / m.count), "mean of Z2 noise");
  md_require_at_most(fabs(m.second - 0.5), 1e-6, "square of Z2 noise");
  md_require_at_most(fabs(m.neighbours), 5.0 * sqrt(0.25 / m.count), "components of Z2 noise");
  md_source_gaussian(b, 5);
  m = moments_of(*state, b);
  md_require_at_most(fabs(m.first), 5.0 * sqrt(0.5 / m.count), "mean of normal noise");
  md_require_at_most(fabs(m.second - 0.5), 5.0 * sqrt(0.5 / m.count), "square of normal noise");
  md_require_at_most(fabs(m.fourth - 0.75), 5.0 * sqrt(6.0 / m.count), "fourth power");
  md_require_at_most(fabs(m.neighbours), 5.0 * sqrt(0.25 / m.count), "components of normal noise");
  drop(g, b);
}

static void noise_does_not_depend_on_the_cut(void **state) {
  md_context *context = *state, alone = {.ranks = 1, .threads = context->threads};
  md_field part[MD_PARITIES], whole[MD_PARITIES];
  md_geometry *g = make(context, part), *one = make(&alone, whole);
  for (md_source_kind kind = MD_SOURCE_COLOUR_WALL; kind <= MD_SOURCE_GAUSSIAN; kind++) {
    md_source_vector noise[N_RHS];
    for (int r = 0; r < N_RHS; r++)
      noise[r] = (md_source_vector){.kind = kind, .at = {[MD_T] = 1}, .seed = 8, .number = r};
    md_source_fill(part, noise);
    md_source_fill(whole, noise);
    for (int p = 0; p < MD_PARITIES; p++)
      for (int64_t i = 0; i < part[p].sites; i++) {
        int x[MD_DIMS], y[MD_DIMS];
        double v[REALS], w[REALS];
        get(&part[p], i, x, v);
        get(&whole[p], md_site(one, x), y, w);
        assert_memory_equal(x, y, sizeof x);
        assert_memory_equal(v, w, sizeof v);
      }
  }
  drop(g, part);
  drop(one, whole);
}

/* One right-hand side of a field into another place of another. */
static void right_hand_sides_are_copied(void **state) {
  md_field from[MD_PARITIES], to[MD_PARITIES];
  md_geometry *g = make(*state, from), *same = make(*state, to);
  for (int a = 0; a < N_RHS; a++)
    for (int b = 0; b < N_RHS; b++) {
      md_source_gaussian(from, 8);
      md_source_gaussian(to, 9);
      md_field_copy_rhs(&to[MD_ODD], a, &from[MD_ODD], b);
      md_source_gaussian(from, 9);
      for (int64_t i = 0; i < g->sites; i++) {
        int x[MD_DIMS];
        double v[REALS], w[REALS];
        get(&from[MD_ODD], i, x, v);
        get(&to[MD_ODD], i, x, w);
        for (int r = 0; r < N_RHS; r++)
          assert_true((memcmp(v + MD_FERMION_REALS * r, w + MD_FERMION_REALS * r,
                              MD_FERMION_REALS * sizeof *v) == 0) == (r != a));
      }
      md_source_gaussian(from, 8);
      for (int64_t i = 0; i < g->sites; i++) {
        double v[MD_FERMION_REALS], w[MD_FERMION_REALS];
        md_field_get(&from[MD_ODD], i, b, v);
        md_field_get(&to[MD_ODD], i, a, w);
        assert_memory_equal(v, w, sizeof v);
      }
    }
  drop(g, from);
  drop(same, to);
}

static struct CMUnitTest tests[] = {
    cmocka_unit_test(points_and_walls),
    cmocka_unit_test(parts_of_walls),
    cmocka_unit_test(phases_and_colours),
    cmocka_unit_test(noise_has_its_moments),
    cmocka_unit_test(noise_does_not_depend_on_the_cut),
    cmocka_unit_test(right_hand_sides_are_copied),
};
MD_RUN_TESTS(tests)
