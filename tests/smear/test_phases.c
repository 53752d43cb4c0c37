/* Staggered phases and boundary signs are found in thin, fat and long links, and taken off; fat and
 * long links come back from files, of ours and of MILC. */
#include "io/lattice_file.h"
#include "smear_support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Links of a lattice at beta 5.7, of which the sums of paths are still rough. */
typedef struct sample {
  md_geometry *geometry;
  md_gauge thin;
  smear_links links;
} sample;

static sample make_sample(md_context *context, const char *action) {
  sample s = {0};
  assert_true(smear_load(context, getenv("MINIDIRAC_INPUTS"), "beta5.7_4x4x4x8.lime", &s.geometry,
                         &s.thin));
  const md_smear_request request = smear_request(action);
  s.links = smear_make(context, &s.thin, &request);
  return s;
}

static void free_sample(sample *s) {
  md_gauge_destroy(&s->thin);
  smear_free(&s->links);
  md_geometry_destroy(s->geometry);
}

static void copy_links(md_gauge *to, const md_gauge *from) {
  for (int k = 0; k < MD_PARITIES * MD_DIMS; k++)
    for (int64_t i = 0; i < to->geometry->sites; i++) {
      double u[MD_LINK_REALS];
      md_gauge_get(from, k % 2, k / 2, i, u);
      md_gauge_set(to, k % 2, k / 2, i, u);
    }
}

/* Every convention with and without the boundary sign is put in, found and taken off again. */
static void there_and_back(md_context *context, const md_gauge *bare, md_link_kind kind) {
  md_gauge gauge;
  MD_REQUIRE(context, md_gauge_create(context, bare->geometry, &gauge));
  for (int code = 0; code < 2 * MD_PHASE_CONVENTIONS; code++) {
    const md_phases put = {.convention = (md_phase_convention)(code / 2), .antiperiodic = code % 2};
    md_phases found;
    copy_links(&gauge, bare);
    MD_REQUIRE(context, md_phases_apply(context, &gauge, kind, &put));
    MD_REQUIRE(context, md_phases_find(context, &gauge, kind, "links", &found));
    assert_int_equal(found.convention, put.convention);
    assert_int_equal(found.antiperiodic, put.antiperiodic);
    assert_true(found.score > 0.8 && found.boundary_score > 0.8);
    if (code > 0) assert_true(md_test_local_difference(context, &gauge, bare) > 1e-3);
    MD_REQUIRE(context, md_phases_apply(context, &gauge, kind, &found));
    md_require_at_most(md_test_local_difference(context, &gauge, bare), 0.0, "phases taken off");
  }
  md_gauge_destroy(&gauge);
}

static void found_and_taken_off(void **state) {
  md_context *context = *state;
  sample s = make_sample(context, "asqtad");
  there_and_back(context, &s.thin, MD_LINKS_THIN);
  there_and_back(context, &s.links.fat, MD_LINKS_FAT);
  there_and_back(context, &s.links.long_links, MD_LINKS_LONG);
  free_sample(&s);
  s = make_sample(context, "hisq");
  there_and_back(context, &s.links.fat, MD_LINKS_FAT);
  there_and_back(context, &s.links.long_links, MD_LINKS_LONG);
  free_sample(&s);
}

/* The definition: the sign of eta by the coordinates that count, and of the hop when it goes over
 * the end of the lattice. */
static int sign_of(const md_phases *phases, int hop, int mu, const int x[MD_DIMS], int times) {
  const int xyzt[MD_DIMS] = {0, x[0], x[0] + x[1], x[0] + x[1] + x[2]};
  const int txyz[MD_DIMS] = {x[3], x[3] + x[0], x[3] + x[0] + x[1], 0};
  int odd = mu == MD_T && phases->antiperiodic && x[MD_T] + hop >= times;
  if (phases->convention == MD_PHASES_XYZT) odd += xyzt[mu];
  if (phases->convention == MD_PHASES_TXYZ) odd += txyz[mu];
  return odd % 2 ? -1 : 1;
}

static void put_where_the_conventions_say(void **state) {
  md_context *context = *state;
  md_geometry *g = md_test_geometry(context, 4, 4, 4, 8, false);
  for (int code = 0; code < 2 * 2 * MD_PHASE_CONVENTIONS; code++) {
    const md_phases put = {.convention = (md_phase_convention)(code / 4),
                           .antiperiodic = code / 2 % 2};
    const int hop = code % 2 ? 3 : 1;
    md_gauge unit;
    MD_REQUIRE(context, md_gauge_create(context, g, &unit));
    MD_REQUIRE(context,
               md_phases_apply(context, &unit, hop == 3 ? MD_LINKS_LONG : MD_LINKS_FAT, &put));
    for (int k = 0; k < MD_PARITIES * MD_DIMS; k++)
      for (int64_t i = 0; i < g->sites; i++) {
        double u[MD_LINK_REALS];
        int x[MD_DIMS];
        md_global_coordinates(g, k % 2, i, x);
        md_gauge_get(&unit, k % 2, k / 2, i, u);
        assert_true(u[0] == sign_of(&put, hop, k / 2, x, 8));
      }
    md_gauge_destroy(&unit);
  }
  md_geometry_destroy(g);
}

static const md_phases milc = {.convention = MD_PHASES_TXYZ, .antiperiodic = true};

static void refusals(void **state) {
  md_context *context = *state;
  sample s = make_sample(context, "asqtad");
  md_phases found;
  md_gauge fat;
  /* Long links without the Naik coefficient, and signs of no convention. */
  assert_int_equal(md_phases_find(context, &s.thin, MD_LINKS_LONG, "links", &found), MD_INPUT);
  assert_non_null(strstr(context->message, "Naik"));
  for (int k = 0; k < MD_PARITIES * MD_DIMS; k++)
    for (int64_t i = 0; i < s.geometry->sites; i++) {
      double u[MD_LINK_REALS];
      int x[MD_DIMS];
      md_global_coordinates(s.geometry, k % 2, i, x);
      md_gauge_get(&s.thin, k % 2, k / 2, i, u);
      for (int c = 0; c < MD_LINK_REALS && (x[0] / 2 + x[3] / 2) % 2; c++) u[c] = -u[c];
      md_gauge_set(&s.thin, k % 2, k / 2, i, u);
    }
  assert_int_equal(md_phases_find(context, &s.thin, MD_LINKS_THIN, "links", &found), MD_INPUT);
  assert_non_null(strstr(context->message, "must be clear"));
  /* Zeros have no signs. */
  const double zero[MD_LINK_REALS] = {0};
  for (int k = 0; k < MD_PARITIES * MD_DIMS; k++)
    for (int64_t i = 0; i < s.geometry->sites; i++) md_gauge_set(&s.thin, k % 2, k / 2, i, zero);
  MD_REQUIRE(context, md_phases_score(context, &s.thin, MD_LINKS_THIN, &found));
  assert_true(found.score == 0.0 && found.boundary_score == 0.0 && !found.clear);
  /* Phases in thin links, and links that are not in SU(3), are not smeared. */
  smear_free(&s.links);
  md_gauge_destroy(&s.thin);
  md_geometry_destroy(s.geometry);
  s = make_sample(context, "asqtad");
  const md_smear_request request = smear_request("fat7");
  assert_int_equal(md_smear(context, &s.links.fat, &request, &fat, NULL, NULL), MD_INPUT);
  assert_non_null(strstr(context->message, "must be in SU(3)"));
  MD_REQUIRE(context, md_phases_apply(context, &s.thin, MD_LINKS_THIN, &milc));
  assert_int_equal(md_smear(context, &s.thin, &request, &fat, NULL, NULL), MD_INPUT);
  assert_non_null(strstr(context->message, "txyz (MILC)"));
  assert_non_null(strstr(context->message, "antiperiodic"));
  free_sample(&s);
}

static void load(md_context *context, const char *path, md_link_kind kind, md_geometry **geometry,
                 md_gauge *gauge, md_phases *phases) {
  const int grid[MD_DIMS] = {0};
  md_improved_info info;
  MD_REQUIRE(context, md_improved_load(context, path, kind, grid, false, geometry, gauge, &info));
  *phases = info.phases;
  md_lattice_info_destroy(&info.lattice);
}

typedef struct file_case {
  const char *format, *suffix;
  md_precision precision;
  bool labelled;
  double tolerance;
} file_case;

/* Writes the long links, with MILC's phases in them when not `bare`. */
static void save(md_context *context, const char *path, const file_case *c, bool bare,
                 md_gauge *links) {
  md_lattice_output output = {.precision = c->precision,
                              .label = {.kind = MD_LINKS_LONG, .bare = bare, .made = "hisq, test"}};
  MD_REQUIRE(context, md_lattice_format_find(context, path, c->format, &output.format));
  if (!bare) MD_REQUIRE(context, md_phases_apply(context, links, MD_LINKS_LONG, &milc));
  MD_REQUIRE(context, md_lattice_save_as(context, path, &output, links));
  if (!bare) MD_REQUIRE(context, md_phases_apply(context, links, MD_LINKS_LONG, &milc));
}

/* Only files that name their kind can refuse to be of another. */
static void refuse_as_fat(md_context *context, const char *path) {
  const int grid[MD_DIMS] = {0};
  md_improved_info info;
  md_geometry *none = NULL;
  md_gauge gauge;
  assert_int_equal(md_improved_load(context, path, MD_LINKS_FAT, grid, false, &none, &gauge, &info),
                   MD_INPUT);
  assert_non_null(strstr(context->message, "the file says that its links are long"));
  assert_string_equal(info.lattice.header.label.made, "hisq, test");
  assert_null(none);
  md_lattice_info_destroy(&info.lattice);
}

/* The links come back bare from every format, on the geometry of others. */
static void files(void **state) {
  static const file_case cases[] = {{"hdf5", "h5", MD_DOUBLE, true, 0.0},
                                    {"ildg", "lime", MD_DOUBLE, true, 0.0},
                                    {"milc", "milc", MD_SINGLE, false, 1e-8}};
  md_context *context = *state;
  sample s = make_sample(context, "hisq");
  char path[256];
  long process = (long)getpid();
  md_broadcast(context, &process, sizeof process);
  for (int n = 0; n < 6; n++) {
    const file_case *c = &cases[n / 2];
    const bool bare = n % 2;
    md_gauge again;
    md_phases found;
    snprintf(path, sizeof path, "/tmp/minidirac_smear_test_%ld.%s", process, c->suffix);
    save(context, path, c, bare, &s.links.long_links);
    load(context, path, MD_LINKS_LONG, &s.geometry, &again, &found);
    assert_int_equal(found.convention, bare ? MD_PHASES_NONE : MD_PHASES_TXYZ);
    assert_int_equal(found.antiperiodic, !bare);
    md_require_at_most(md_test_local_difference(context, &again, &s.links.long_links), c->tolerance,
                       c->format);
    md_gauge_destroy(&again);
    if (c->labelled) refuse_as_fat(context, path);
    md_barrier(context);
    if (context->rank == 0) unlink(path);
  }
  free_sample(&s);
}

/* A file of other extents than the links that are there already. */
static void other_extents(void **state) {
  md_context *context = *state;
  const int grid[MD_DIMS] = {0};
  sample s = make_sample(context, "hisq");
  char path[4096];
  md_improved_info info;
  md_gauge gauge;
  snprintf(path, sizeof path, "%s/beta6.0_8x8x8x8.h5", getenv("MINIDIRAC_INPUTS"));
  assert_int_equal(
      md_improved_load(context, path, MD_LINKS_FAT, grid, false, &s.geometry, &gauge, &info),
      MD_INPUT);
  assert_non_null(strstr(context->message, "must be 4 x 4 x 4 x 8"));
  md_lattice_info_destroy(&info.lattice);
  free_sample(&s);
}

/* MILC's own, asqtad with u0 = 0.502: phases and sign are where MILC puts them; what is left are
 * links without any, and long links of the length that u0 says. */
static void files_of_milc(void **state) {
  static const char *const names[] = {"thin", "fat.l8", "long.l8"};
  md_context *context = *state;
  md_geometry *geometry = NULL;
  for (int kind = MD_LINKS_FAT; kind <= MD_LINKS_LONG; kind++) {
    char path[4096];
    md_gauge gauge;
    md_phases found;
    md_link_means means;
    snprintf(path, sizeof path, "%s/%s", getenv("MINIDIRAC_SHARED_LATTICES"), names[kind]);
    if (access(path, R_OK) != 0) skip();
    load(context, path, (md_link_kind)kind, &geometry, &gauge, &found);
    assert_int_equal(found.convention, MD_PHASES_TXYZ);
    assert_true(found.antiperiodic && found.score > 0.99 && found.boundary_score > 0.99);
    MD_REQUIRE(context, md_phases_find(context, &gauge, (md_link_kind)kind, path, &found));
    assert_int_equal(found.convention, MD_PHASES_NONE);
    assert_false(found.antiperiodic);
    MD_REQUIRE(context, md_link_measure(context, &gauge, 'X', &means));
    if (kind == MD_LINKS_FAT)
      assert_true(means.link_trace > 1.0 && means.plaquette > 1.0);
    else
      md_require_at_most(fabs(means.norm2 * 576.0 * pow(0.502, 4) - 1.0), 1e-6, "|L|^2");
    md_gauge_destroy(&gauge);
  }
  md_geometry_destroy(geometry);
}

int main(int argc, char **argv) {
  md_context *context = md_test_begin(&argc, &argv);
  context->quiet = true;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_prestate(put_where_the_conventions_say, context),
      cmocka_unit_test_prestate(found_and_taken_off, context),
      cmocka_unit_test_prestate(refusals, context),
      cmocka_unit_test_prestate(files, context),
      cmocka_unit_test_prestate(other_extents, context),
      cmocka_unit_test_prestate(files_of_milc, context)};
  return md_test_end(context, cmocka_run_group_tests(tests, NULL, NULL));
}
