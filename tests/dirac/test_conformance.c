/* Every backend, precision, reconstruct, packing and right-hand-side count against cpu_ref, on
 * awkward extents, with and without self-halo; input and the other range's sites untouched; the
 * same bits with overlap on and off. */
#include "backend_cases.h"

#include <math.h>
#include <string.h>

static const int lattices[][4] = {{8, 4, 4, 4}, {6, 4, 2, 8}, {2, 4, 4, 2}, {16, 2, 4, 4}};

static bool same_bits(md_context *context, const md_field *a, const md_field *b) {
  md_field u, v;
  bool same = true;
  host_copy(context, a, &u);
  host_copy(context, b, &v);
  for (int64_t i = 0; i < u.sites && same; i++)
    for (int r = 0; r < u.n_rhs && same; r++) {
      double p[6], q[6];
      md_field_get(&u, i, r, p);
      md_field_get(&v, i, r, q);
      same = memcmp(p, q, sizeof p) == 0;
    }
  md_field_destroy(&u);
  md_field_destroy(&v);
  return same;
}

typedef struct bench {
  md_geometry *g;
  md_gauge gauge[MD_MOST_LINK_FIELDS];
  md_dirac dirac, oracle;
  md_field in, x, out, before; /* of the backend */
  md_field host_in, host_x;    /* what the backend's fields hold, in double */
} bench;

static void expected_hop(md_context *context, bench *b, const md_hop_end *e, md_field *expected) {
  md_field source;
  case_field(context, &b->oracle, &b->host_in, &source);
  MD_REQUIRE(context, md_dirac_field(context, &b->oracle, b->out.parity, expected));
  const md_hop_end end = {.x = &b->host_x, .a = e ? e->a : 0, .b = e ? e->b : 0};
  MD_REQUIRE(context, md_dirac_hop(context, &b->oracle, expected, &source, e ? &end : NULL));
  md_field_destroy(&source);
}

/* Of the directions that the rank grid does not divide: none, or every direction has one, as deep
 * as the action's hops or as those of another action. */
typedef enum halo_kind { NO_HALO, OWN_HALO, DEEPER_HALO, HALO_KINDS } halo_kind;

static void set_up(md_context *context, const backend_case *c, const int n[4], halo_kind halo,
                   int parity, bench *b) {
  const md_backend_request *r = &c->request;
  const md_backend_request request = {
      .n_rhs = r->n_rhs, .antiperiodic = r->antiperiodic, .action = r->action, .twist = r->twist};
  md_field random;
  b->g = halo == DEEPER_HALO
             ? md_test_deep_geometry(context, n, NULL, true)
             : md_test_action_geometry(context, c->request.action, n, halo == OWN_HALO);
  md_test_random_links(context, b->g, c->request.action, 3, b->gauge);
  case_dirac(context, c, b->gauge, &b->dirac);
  MD_REQUIRE(context, md_dirac_create(context, b->gauge, "cpu_ref", &request, &b->oracle));
  md_test_random_field(context, b->g, MD_DOUBLE, c->request.n_rhs, 1 - parity, 17, &random);
  case_field(context, &b->dirac, &random, &b->in);
  case_field(context, &b->dirac, &random, &b->before);
  md_field_destroy(&random);
  md_test_random_field(context, b->g, MD_DOUBLE, c->request.n_rhs, parity, 19, &random);
  case_field(context, &b->dirac, &random, &b->x);
  case_field(context, &b->dirac, &random, &b->out);
  md_field_destroy(&random);
  host_copy(context, &b->in, &b->host_in);
  host_copy(context, &b->x, &b->host_x);
}

static void tear_down(bench *b) {
  md_field *fields[] = {&b->in, &b->x, &b->out, &b->before, &b->host_in, &b->host_x};
  for (int i = 0; i < 6; i++) md_field_destroy(fields[i]);
  md_test_destroy_links(b->dirac.request.action, b->gauge);
  md_dirac_destroy(&b->dirac);
  md_dirac_destroy(&b->oracle);
  md_geometry_destroy(b->g);
}

static void check(md_context *context, const backend_case *c, bench *b, const md_hop_end *e) {
  char name[128];
  md_field expected, got;
  MD_REQUIRE(context, md_dirac_hop(context, &b->dirac, &b->out, &b->in, e));
  expected_hop(context, b, e, &expected);
  host_copy(context, &b->out, &got);
  const double error = md_test_distance(context, &got, &expected);
  if (!(error <= case_tolerance(c)))
    fail_msg("%s, %dx%dx%dx%d, parity %d: error %.3g, allowed %.3g",
             case_name(c, name, sizeof name), b->g->global[0], b->g->global[1], b->g->global[2],
             b->g->global[3], b->out.parity, error, case_tolerance(c));
  if (!same_bits(context, &b->in, &b->before))
    fail_msg("%s changed its input", case_name(c, name, sizeof name));
  md_field_destroy(&expected);
  md_field_destroy(&got);
}

/* Interior and boundary each write their own sites only, and together what ALL writes. */
static void check_ranges(md_context *context, const backend_case *c, bench *b) {
  md_field overlapped;
  char name[128];
  case_field(context, &b->dirac, &b->host_x, &overlapped);
  b->dirac.overlap = false;
  MD_REQUIRE(context, md_dirac_hop(context, &b->dirac, &b->out, &b->in, NULL));
  b->dirac.overlap = true;
  MD_REQUIRE(context, md_dirac_hop(context, &b->dirac, &overlapped, &b->in, NULL));
  if (!same_bits(context, &b->out, &overlapped))
    fail_msg("%s: overlap changes bits", case_name(c, name, sizeof name));
  md_field_destroy(&overlapped);
}

/* The whole set for plain D and few right-hand sides; else the two lattices with extents of 2, and
 * on more ranks than these can be cut into the last one too. */
static bool is_wanted(const md_context *context, const backend_case *c, size_t lattice) {
  const md_backend_request *r = &c->request;
  const bool plain = r->action == MD_ACTION_NAIVE && !md_links_twisted(&r->twist);
  const bool few = r->n_rhs <= 3;
  const bool chosen = lattice == 1 || lattice == 2 || (lattice == 3 && context->ranks > 8);
  return (plain && few) || ((plain || few) && chosen);
}

/* A lattice that also serves an action of longer hops costs no longer messages. */
static void check_depth(md_context *context, const backend_case *c, const int n[4], bench *b) {
  bench own;
  set_up(context, c, n, OWN_HALO, MD_EVEN, &own);
  assert_int_equal(md_halo_bytes(b->dirac.halo), md_halo_bytes(own.dirac.halo));
  tear_down(&own);
}

static void run(md_context *context, const backend_case *c) {
  for (size_t l = 0; l < sizeof lattices / sizeof *lattices; l++)
    for (int halo = 0; halo < HALO_KINDS; halo++)
      for (int parity = 0; parity < MD_PARITIES; parity++) {
        const int *n = lattices[l];
        bench b;
        if (!is_wanted(context, c, l) || !md_test_fits(context, n[0], n[1], n[2], n[3])) continue;
        if (halo == DEEPER_HALO && (l != 1 || md_action_depth(c->request.action) > 1)) continue;
        set_up(context, c, n, (halo_kind)halo, parity, &b);
        if (halo == DEEPER_HALO) check_depth(context, c, n, &b);
        const md_hop_end end = {.x = &b.x, .a = 0.3, .b = -1.7};
        const md_hop_end in_place = {.x = &b.out, .a = 0.3, .b = -1.7};
        check(context, c, &b, NULL);
        check(context, c, &b, &end);
        MD_REQUIRE(context, md_field_convert(context, &b.out, &b.host_x));
        check(context, c, &b, &in_place);
        check_ranges(context, c, &b);
        tear_down(&b);
      }
}

static void every_backend_agrees_with_cpu_ref(void **state) {
  const int n_rhs[] = {1, 3, 16};
  each_physics_case(*state, n_rhs, 3, run);
}

static void hops_need_their_depth(void **state) {
  md_context *context = *state;
  const md_backend_request request = {.n_rhs = 1, .action = MD_ACTION_HISQ};
  md_geometry *g = md_test_geometry(context, 8, 4, 4, 4, false);
  md_gauge fields[MD_MOST_LINK_FIELDS];
  md_dirac dirac;
  md_test_random_links(context, g, MD_ACTION_HISQ, 1, fields);
  assert_int_equal(md_dirac_create(context, fields, "cpu_ref", &request, &dirac), MD_INPUT);
  assert_non_null(strstr(context->message, "needs halos of depth 3, got a geometry of depth 1"));
  md_test_destroy_links(MD_ACTION_HISQ, fields);
  md_geometry_destroy(g);
}

static void bad_requests_are_refused(void **state) {
  md_context *context = *state;
  const md_backend *found;
  const md_backend_request plain = {.n_rhs = 1, .antiperiodic = true};
  md_backend_request half = plain, fat = plain, twisted = plain, phased = plain;
  half.precision = MD_HALF;
  assert_int_equal(md_backend_find(context, "nothing", &plain, &found), MD_INPUT);
  assert_non_null(strstr(context->message, "backend must be one of auto|cpu_ref"));
  assert_int_equal(md_backend_find(context, "cpu_ref", &half, &found), MD_INPUT);
  assert_non_null(strstr(context->message, "does not serve precision half; those of this build "
                                           "that do: cpu_simd"));
  fat.action = MD_ACTION_HISQ;
  fat.packing = MD_PACKING_BLOCK8;
  fat.precision = MD_HALF;
  assert_int_equal(md_backend_find(context, "tensor_emu", &fat, &found), MD_OK);
  fat = plain;
  fat.action = MD_ACTION_ASQTAD;
  fat.reconstruct = twisted.reconstruct = MD_RECONSTRUCT_12;
  assert_int_equal(md_backend_find(context, "cpu_simd", &fat, &found), MD_INPUT);
  assert_non_null(strstr(context->message, "must be in SU(3), those of action asqtad are not"));
  fat.reconstruct = MD_RECONSTRUCT_13;
  assert_int_equal(md_backend_find(context, "cpu_simd", &fat, &found), MD_INPUT);
  assert_non_null(strstr(context->message, "cpu_simd does not serve links of 13 reals"));
  fat.twist.imaginary_mu = 0.1;
  assert_int_equal(md_backend_find(context, "auto", &fat, &found), MD_INPUT);
  assert_non_null(strstr(context->message, "links of 13 reals must be without phases"));
  phased.reconstruct = MD_RECONSTRUCT_9;
  assert_int_equal(md_backend_find(context, "auto", &phased, &found), MD_INPUT);
  assert_non_null(strstr(context->message, "action naive has none; use 18, 12 or 8"));
  twisted.twist.flux = 1;
  assert_int_equal(md_backend_find(context, "cpu_simd", &twisted, &found), MD_INPUT);
  assert_non_null(strstr(context->message, "which --imaginary-mu and --magnetic end"));
  assert_int_equal(md_backend_find(context, "auto", &plain, &found), MD_OK);
}

static struct CMUnitTest tests[] = {
    cmocka_unit_test(every_backend_agrees_with_cpu_ref),
    cmocka_unit_test(hops_need_their_depth),
    cmocka_unit_test(bad_requests_are_refused),
};
MD_RUN_TESTS(tests)
