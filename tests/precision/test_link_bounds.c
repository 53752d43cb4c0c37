/* The bounds on stored links, from both sides: what rounding makes of 18, 12 or 8 reals, and of 13
 * or 9 for a number times a matrix in U(3), stays within them, and of many links some use nearly
 * all of them, so that a bound twice too wide fails as one does that is too narrow. */
#include "base/random_math.h"
#include "lattice/gauge/su3.h"
#include "support.h"
#include "validate/validate.h"

#include <math.h>
#include <string.h>

enum { RANDOM = 4000, SPECIAL = 9 };
static const double number = -1.0 / 24; /* of which links with a phase are multiples */

/* A real of a link as stored. */
static double stored(md_precision precision, double x) {
  switch (precision) {
  case MD_SINGLE:
    return (float)x;
  case MD_HALF:
    return md_float_of_half(md_half_of_float((float)x));
  case MD_BF16:
    return md_float_of_bf16(md_bf16_of_float((float)x));
  case MD_FIXED:
    return (double)md_fixed_of_float((float)(x * MD_FIXED_STEPS)) / MD_FIXED_STEPS;
  default:
    return x;
  }
}

static double stored_angle(md_precision precision, double phi) {
  const double most = precision == MD_FIXED  ? 1.0 - 1.0 / MD_FIXED_STEPS
                      : precision == MD_HALF ? 6e4
                                             : 1e18;
  const double part = precision == MD_FIXED ? 0.25 : 0.5;
  return atan(stored(precision, fmin(fmax(tan(part * phi), -most), most))) / part;
}

/* As a backend keeps 8 reals: g for p, q and phi as rounded, of the phi with Re a >= 0. */
static void store_8(md_precision precision, const double u[18], double kept[18]) {
  const double phi = 0.5 * atan2(u[1], u[0]), pi = acos(-1.0);
  md_eight e;
  md_eight_of(u, false, &e);
  for (int k = 0; k < 4; k++) e.pq[k] = stored(precision, e.pq[k]);
  e.phi = stored_angle(precision, phi);
  if (md_eight_settle(u, &e) < 0.0) {
    e.phi = stored_angle(precision, phi > 0.0 ? phi - pi : phi + pi);
    md_eight_settle(u, &e);
  }
  for (int k = 0; k < 3; k++) e.g[k] = stored(precision, e.g[k]);
  md_link_of_eight(&e, kept);
}

static void store_link(const md_backend_request *request, const double u[18], double kept[18]);

/* out = factor e^{i phi} u */
static void turn(double factor, double phi, const double u[18], double out[18]) {
  const double re = factor * cos(phi), im = factor * sin(phi);
  for (int c = 0; c < 18; c += 2) {
    out[c] = re * u[c] - im * u[c + 1];
    out[c + 1] = re * u[c + 1] + im * u[c];
  }
}

/* As a backend keeps 13 and 9 reals: 12 or 8 of what is in SU(3), and tan(phi/2). */
static void store_with_phase(const md_backend_request *request, const double u[18],
                             double kept[18]) {
  md_backend_request rest = *request;
  double w[18], det[2], v[18];
  rest.reconstruct =
      request->reconstruct == MD_RECONSTRUCT_13 ? MD_RECONSTRUCT_12 : MD_RECONSTRUCT_8;
  turn(1.0 / number, 0.0, u, w);
  md_su3_determinant(w, det);
  double phi = atan2(det[1], det[0]) / 3.0;
  if (acos(-1.0) / 3.0 - fabs(phi) < 1e-12 && u[3] > 0.0) phi = -phi; /* det rounded otherwise */
  turn(1.0, -phi, w, v);
  store_link(&rest, v, w);
  turn(number, 2.0 * atan(stored(request->precision, tan(0.5 * phi))), w, kept);
}

static void store_link(const md_backend_request *request, const double u[18], double kept[18]) {
  if (md_reconstruct_has_phase(request->reconstruct)) {
    store_with_phase(request, u, kept);
    return;
  }
  if (request->reconstruct == MD_RECONSTRUCT_8) {
    store_8(request->precision, u, kept);
    return;
  }
  for (int c = 0; c < 18; c++) kept[c] = stored(request->precision, u[c]);
  if (request->reconstruct == MD_RECONSTRUCT_12) md_su3_third_row(kept);
}

/* Unit; U_00 = 0; -1 at U_00, where phi is pi/2; phases at which phi is small, and changes branch;
 * diagonal; first row nearly along x. */
static void special_link(int k, double u[18]) {
  static const double angle[SPECIAL][2] = {{0, 0},       {0, 0},     {3.141592653589793, 0},
                                           {1e-6, 1e-3}, {3.1, 0.1}, {-3.14159, 2.0},
                                           {2.0, -4.0},  {0.5, 0.5}, {1e-9, -1e-9}};
  memset(u, 0, 18 * sizeof *u);
  const double phase[3] = {angle[k][0], angle[k][1], -angle[k][0] - angle[k][1]};
  for (int row = 0; row < 3; row++) {
    const int column = k == 1 ? (row + 1) % 3 : row;
    u[2 * (3 * row + column)] = cos(phase[row]);
    u[2 * (3 * row + column) + 1] = sin(phase[row]);
  }
}

static void make_link(md_random *random, int n, double u[18]) {
  if (n < SPECIAL)
    special_link(n, u);
  else
    md_su3_random(random, u);
}

/* For 13 and 9 reals a multiple of a matrix in U(3), without a phase, where the third root changes
 * branch, or anywhere. */
static void make_link_of(const md_backend_request *request, md_random *random, int n,
                         double u[18]) {
  double v[18];
  make_link(random, n, v);
  memcpy(u, v, sizeof v);
  if (!md_reconstruct_has_phase(request->reconstruct)) return;
  const double third = acos(-1.0) / 3.0, any = 9.0 * md_random_next_uniform(random);
  turn(number, n % 5 == 0 ? 0.0 : n % 5 == 1 ? third : any, v, u);
}

/* The largest |error| / bound over random links, `noise` taking them off the group; all others are
 * held to the bound here. Of 12 reals it is the third row that counts. */
static double used(const md_backend_request *request, double noise) {
  const double size = md_reconstruct_has_phase(request->reconstruct) ? number : 1.0;
  md_random random = md_random_begin(41, 0, 0);
  double largest = 0.0;
  for (int n = 0; n < RANDOM; n++) {
    double u[18], kept[18], bound[18], other[18], other_bound[18];
    make_link_of(request, &random, n, u);
    for (int c = 0; c < 18 && noise > 0.0; c++)
      u[c] += size * noise * (md_random_next_uniform(&random) - 0.5);
    store_link(request, u, kept);
    md_bound_link(request, size, u, false, bound);
    md_bound_link(request, size, u, true, other_bound);
    for (int c = 0; c < 18; c++) {
      const double share = fabs(kept[c] - u[c]) / bound[c];
      if (n < SPECIAL && kept[c] != u[c]) md_require_at_most(share, 1.0, "special link");
      if (request->reconstruct == MD_RECONSTRUCT_12 && c < 12) continue;
      if (n >= SPECIAL && !(share <= largest)) largest = kept[c] == u[c] ? largest : share;
      assert_true(other_bound[c] >= bound[c]);
    }
    /* U^dag kept, read as U */
    md_su3_adjoint(other, u);
    store_link(request, other, kept);
    md_su3_adjoint(other, kept);
    for (int c = 0; c < 18; c++)
      md_require_at_most(fabs(other[c] - u[c]), other_bound[c], "of U^dag");
  }
  return largest;
}

static void bounds_are_kept_and_needed(void **state) {
  (void)state;
  for (int p = 0; p < MD_PRECISIONS; p++)
    for (int r = MD_RECONSTRUCT_18; r < MD_RECONSTRUCTS; r++)
      for (int packing = MD_PACKING_NONE; packing <= MD_PACKING_SINGLE; packing++) {
        const md_backend_request request = {.precision = (md_precision)p,
                                            .reconstruct = (md_reconstruct)r,
                                            .packing = (md_packing)packing,
                                            .n_rhs = 1,
                                            .antiperiodic = true};
        const double share = used(&request, 0.0);
        print_message("%s, %s reals: %.2f of the bound is used\n",
                      md_precision_name(request.precision),
                      md_reconstruct_name(request.reconstruct), share);
        if (p == MD_DOUBLE && r == MD_RECONSTRUCT_18) continue; /* stored as they are */
        md_require_at_most(share, 1.0, "share of the bound");
        /* In 32 bits and more the bound on arithmetic is what counts, and is not reached. */
        if (p == MD_DOUBLE || (p == MD_SINGLE && r != MD_RECONSTRUCT_18)) continue;
        md_require_at_most(r == MD_RECONSTRUCT_18 ? 0.95 : 0.6, share, "least share");
      }
}

/* The distance of a file's link from the group is part of the bound, and no more than it. */
static void links_off_the_group(void **state) {
  (void)state;
  for (int r = MD_RECONSTRUCT_12; r < MD_RECONSTRUCTS; r++) {
    const md_backend_request request = {
        .precision = MD_DOUBLE, .reconstruct = (md_reconstruct)r, .n_rhs = 1, .antiperiodic = true};
    const double share = used(&request, 1e-6);
    md_require_at_most(share, 1.0, "share of the bound");
    md_require_at_most(0.999, share, "least share");
  }
}

/* Coordinates and links are inverse to each other, in both branches. */
static void eight_coordinates_make_the_link(void **state) {
  (void)state;
  md_random random = md_random_begin(43, 0, 0);
  for (int n = 0; n < RANDOM; n++) {
    double u[18], v[18];
    md_eight e;
    make_link(&random, n, u);
    for (int branch = 0; branch < 2; branch++) {
      const double re_a = md_eight_of(u, branch == 1, &e);
      if (re_a < -0.99) continue; /* g of the other branch is infinite */
      md_link_of_eight(&e, v);
      for (int c = 0; c < 18; c++) md_require_at_most(fabs(u[c] - v[c]), 1e-12, "link");
      assert_true(branch == 0 ? re_a >= -1e-15 : re_a <= 1e-15);
    }
  }
}

static struct CMUnitTest tests[] = {cmocka_unit_test(bounds_are_kept_and_needed),
                                    cmocka_unit_test(links_off_the_group),
                                    cmocka_unit_test(eight_coordinates_make_the_link)};
MD_RUN_TESTS(tests)
