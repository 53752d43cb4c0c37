/* Unit links in a constant magnetic field: the spectrum of -D^2 is that of Hofstadter's problem on
 * the torus, found here by brute force in another gauge.
 *
 * On a lattice of extent 2 in z and t, periodic, forward and backward hops along z and t cancel,
 * and -D^2 is that of the xy plane alone. -Deo Doe and -Doe Deo of the backend, column by column,
 * together have the eigenvalues of -D^2 with u_x = exp(-i b y), u_y = 1 and the twist at y = Ly-1.
 */
#include "backend_cases.h"
#include "lattice/fields/linear.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>

enum { LX = 4, LY = 6, PLANE = LX * LY };

typedef double complex matrix[PLANE][PLANE];

/* Eigenvalues of the leading n x n part of a Hermitian matrix, which is destroyed, by Jacobi's
 * rotations; rising. */
static int rising(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}
static void rotate(matrix a, int n, int p, int q) {
  const double size = cabs(a[p][q]);
  if (size < 1e-300) return;
  const double complex phase = a[p][q] / size;
  const double theta = 0.5 * atan2(2.0 * size, creal(a[q][q]) - creal(a[p][p]));
  const double c = cos(theta), s = sin(theta);
  for (int k = 0; k < n; k++) { /* columns */
    const double complex x = a[k][p], y = a[k][q];
    a[k][p] = c * x - s * conj(phase) * y;
    a[k][q] = s * phase * x + c * y;
  }
  for (int k = 0; k < n; k++) { /* rows */
    const double complex x = a[p][k], y = a[q][k];
    a[p][k] = c * x - s * phase * y;
    a[q][k] = s * conj(phase) * x + c * y;
  }
}
static void eigenvalues_of(matrix a, int n, double *values) {
  for (int sweep = 0; sweep < 30; sweep++)
    for (int p = 0; p < n; p++)
      for (int q = p + 1; q < n; q++) rotate(a, n, p, q);
  for (int k = 0; k < n; k++) values[k] = creal(a[k][k]);
  qsort(values, (size_t)n, sizeof *values, rising);
}

/* -D^2 of the plane with c_f times unit links, D by its definition. */
static void textbook(const md_action_data *action, const double *c, int flux, matrix result) {
  static matrix d;
  const double b = 2.0 * M_PI * flux / PLANE;
  for (int i = 0; i < PLANE * PLANE; i++) d[i / PLANE][i % PLANE] = 0.0;
  for (int from = 0; from < PLANE; from++)
    for (int mu = 0; mu < 2; mu++) {
      double complex phase = mu == 1 && from % LX % 2 ? -0.5 : 0.5; /* eta / 2 */
      int x = from % LX, y = from / LX;
      for (int step = 1; step <= 3; step++) {
        if (mu == 0) phase *= cexp(-I * b * y);
        if (mu == 1 && y == LY - 1) phase *= cexp(I * b * LY * x);
        if (mu == 0) x = (x + 1) % LX;
        if (mu == 1) y = (y + 1) % LY;
        for (int f = 0; f < action->fields; f++)
          if (action->field[f].hop == step) {
            d[from][y * LX + x] += c[f] * phase;
            d[y * LX + x][from] -= c[f] * conj(phase);
          }
      }
    }
  for (int i = 0; i < PLANE; i++)
    for (int j = 0; j < PLANE; j++) {
      result[i][j] = 0.0;
      for (int k = 0; k < PLANE; k++) result[i][j] -= d[i][k] * d[k][j];
    }
}

/* The site of the plane z = t = 0 that has number k among those of a parity; x and y. */
static void place_of(int parity, int k, int x[MD_DIMS]) {
  x[1] = 2 * k / LX;
  x[0] = 2 * k % LX + ((x[1] + parity) & 1);
  x[2] = x[3] = 0;
}

/* The first colour at a site of the plane, seen by all ranks; or sets it to 1. */
static double complex value_at(md_context *context, const md_field *f, const int x[MD_DIMS]) {
  double parts[4] = {-INFINITY, -INFINITY}, v[MD_FERMION_REALS * MD_MAX_RHS];
  for (int64_t i = 0; i < f->sites; i++) {
    int y[MD_DIMS];
    md_global_coordinates(f->geometry, f->parity, i, y);
    if (y[0] != x[0] || y[1] != x[1] || y[2] || y[3]) continue;
    md_field_get(f, i, 0, v);
    parts[0] = v[0], parts[1] = v[1];
  }
  md_maximum(context, parts, 2);
  return parts[0] + I * parts[1];
}
static void set_point(md_field *f, const int x[MD_DIMS]) {
  const double one[MD_FERMION_REALS * MD_MAX_RHS] = {1.0};
  md_linear_zero(f);
  for (int64_t i = 0; i < f->sites; i++) {
    int y[MD_DIMS];
    md_global_coordinates(f->geometry, f->parity, i, y);
    if (y[0] == x[0] && y[1] == x[1] && !y[2] && !y[3]) md_field_set(f, i, one);
  }
}

/* Eigenvalues of -Deo Doe (parity even) or -Doe Deo on the plane. */
static void spectrum_of(md_context *context, const backend_case *c, md_dirac *dirac, int parity,
                        double *values) {
  static matrix a;
  const md_field_shape host = {MD_DOUBLE, MD_HOST, MD_FERMION_REALS, c->request.n_rhs, true, false};
  md_field point, v, dv, ddv;
  MD_REQUIRE(context, md_field_create(context, dirac->geometry, &host, parity, &point));
  MD_REQUIRE(context, md_dirac_field(context, dirac, 1 - parity, &dv));
  MD_REQUIRE(context, md_dirac_field(context, dirac, parity, &ddv));
  for (int column = 0; column < PLANE / 2; column++) {
    md_field got;
    int x[MD_DIMS];
    place_of(parity, column, x);
    set_point(&point, x);
    case_field(context, dirac, &point, &v);
    MD_REQUIRE(context, md_dirac_hop(context, dirac, &dv, &v, NULL));
    MD_REQUIRE(context, md_dirac_hop(context, dirac, &ddv, &dv, NULL));
    host_copy(context, &ddv, &got);
    for (int row = 0; row < PLANE / 2; row++) {
      place_of(parity, row, x);
      a[row][column] = -value_at(context, &got, x);
    }
    md_field_destroy(&v);
    md_field_destroy(&got);
  }
  md_field *all[] = {&point, &dv, &ddv};
  for (int i = 0; i < 3; i++) md_field_destroy(all[i]);
  eigenvalues_of(a, PLANE / 2, values);
}

static void check_flux(md_context *context, const backend_case *c) {
  static const double coefficient[MD_MOST_LINK_FIELDS] = {1.125, -1.0 / 24.0}, one[] = {1.0};
  static const int dims[MD_DIMS] = {LX, LY, 2, 2};
  static matrix plane;
  const md_action_data *action = md_action_get(c->request.action);
  const double *factor = action->fields == 1 ? one : coefficient;
  if (!md_links_twisted(&c->request.twist) || case_is_spared(c)) return;
  md_geometry *g = md_test_action_geometry(context, c->request.action, dims, false);
  md_gauge gauge[MD_MOST_LINK_FIELDS];
  char name[128];
  for (int f = 0; f < action->fields; f++) {
    MD_REQUIRE(context, md_gauge_create(context, g, &gauge[f]));
    for (int k = 0; k < MD_PARITIES * MD_DIMS; k++) {
      const md_field *links = &gauge[f].links[k / MD_DIMS][k % MD_DIMS];
      for (int64_t i = 0; i < MD_LINK_REALS * links->stride; i++)
        ((double *)links->data)[i] *= factor[f];
    }
  }
  for (int flux = -1; flux <= 5; flux += 3) {
    backend_case now = *c;
    md_dirac dirac;
    double got[PLANE], expected[PLANE];
    now.request.antiperiodic = false;
    now.request.twist = (md_twist){.flux = flux};
    case_dirac(context, &now, gauge, &dirac);
    for (int p = 0; p < MD_PARITIES; p++)
      spectrum_of(context, &now, &dirac, p, got + p * (PLANE / 2));
    qsort(got, PLANE, sizeof *got, rising);
    textbook(action, factor, flux, plane);
    eigenvalues_of(plane, PLANE, expected);
    for (int k = 0; k < PLANE; k++)
      md_require_at_most(fabs(got[k] - expected[k]), 8.0 * case_tolerance(c),
                         case_name(c, name, sizeof name));
    md_dirac_destroy(&dirac);
  }
  md_test_destroy_links(c->request.action, gauge);
  md_geometry_destroy(g);
}

static void flux_gives_the_bands_of_hofstadter(void **state) {
  const int n_rhs[] = {1, 2}, dims[MD_DIMS] = {LX, LY, 2, 2};
  if (!md_test_fits(*state, LX, LY, 2, 2)) md_test_skip_lattice(*state, dims);
  each_physics_case(*state, n_rhs, 2, check_flux);
}

static struct CMUnitTest tests[] = {cmocka_unit_test(flux_gives_the_bands_of_hofstadter)};
MD_RUN_TESTS(tests)
