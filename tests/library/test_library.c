/* The public library from a program that owns MPI, linked against libminidirac.so alone: contexts
 * twice, side by side and on parts of the ranks, failures without an end, arrays in and out, D
 * against a loop of its own, solves, modes, files, a study; signals, environment, threads and MPI
 * stay the program's. `test_library level`: MPI is started with too low a thread level. */
#include <minidirac/minidirac.h>

#include <math.h>
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;
static int rank, ranks, modes_of_test = 6;
static char folder[64];
static md_context *context; /* of the tests but the first */
static const int dims[4] = {4, 6, 4, 8};

static void fail(int line, const char *what, const md_context *of) {
  fprintf(stderr, "test_library:%d: rank %d: %s; message '%s'\n", line, rank, what,
          md_context_message(of));
  MPI_Abort(MPI_COMM_WORLD, 1);
}
#define TRUE(condition)                                                                            \
  do {                                                                                             \
    if (!(condition)) fail(__LINE__, #condition, context);                                         \
  } while (0)
#define OK(call) TRUE((call) == MD_OK)
/* A failure with a message that has the words in it. */
#define REFUSED(status, words, call)                                                               \
  TRUE((call) == (status) && strstr(md_context_message(context), words))

static char *path_of(const char *name) {
  static char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static md_lattice *hot_lattice(md_context *on, uint64_t seed) {
  md_lattice_request request = md_lattice_defaults();
  md_lattice *lattice;
  memcpy(request.dims, dims, sizeof dims);
  if (md_lattice_create(on, &request, &lattice) != MD_OK ||
      md_lattice_start(lattice, "hot", seed) != MD_OK)
    fail(__LINE__, "hot lattice", on);
  return lattice;
}

static double plaquette(md_lattice *lattice) {
  md_means means = {0};
  if (md_lattice_observe(lattice, &means) != MD_OK) fail(__LINE__, "observe", context);
  return means.plaquette;
}

static void contexts_live_side_by_side(void) {
  md_context *a, *b, *part, *none = NULL;
  MPI_Comm half;
  OK(md_context_open_on(MPI_COMM_WORLD, &a));
  context = a;
  TRUE(md_context_open_on(MPI_COMM_NULL, &none) == MD_INPUT);
  TRUE(strstr(md_context_message(none), "MPI_COMM_NULL"));
  md_context_close(none);
  OK(md_context_open_on(MPI_COMM_WORLD, &b));
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  OK(md_context_open_on(half, &part));
  MPI_Comm_free(&half); /* the context has its own */
  md_lattice *of_a = hot_lattice(a, 5), *of_b = hot_lattice(b, 5), *of_part = hot_lattice(part, 5);
  const double p = plaquette(of_a);
  TRUE(p == plaquette(of_b) && p == plaquette(of_part));
  if (rank % 2 == 0) /* one part goes on alone */
    TRUE(md_lattice_start(of_part, "warm", 1) == MD_INPUT);
  TRUE(!*md_context_message(a) && !*md_context_message(b));
  TRUE(rank % 2 || strstr(md_context_message(part), "cold|hot"));
  md_lattice_destroy(of_b);
  md_context_close(b);
  TRUE(p == plaquette(of_a) && p == plaquette(of_part));
  md_lattice_destroy(of_a);
  md_context_close(a);
  context = part;
  TRUE(p == plaquette(of_part));
  md_lattice_destroy(of_part);
  md_context_close(part);
  OK(md_context_open_on(MPI_COMM_WORLD, &context)); /* again */
}

static double *array(const md_lattice *lattice, size_t reals) {
  double *values = (double *)calloc(md_lattice_layout(lattice).local_sites * reals, sizeof *values);
  if (!values) fail(__LINE__, "memory", context);
  return values;
}

static void arrays_go_in_and_out(void) {
  md_lattice *from = hot_lattice(context, 7), *to = hot_lattice(context, 8);
  const size_t sites = md_lattice_layout(from).local_sites, links = sites * 72 * sizeof(double);
  double *a = array(from, 72), *b = array(from, 72), *v = array(from, 12), *w = array(from, 12);
  md_lattice_get(from, a);
  OK(md_lattice_set(to, a));
  md_lattice_get(to, b);
  TRUE(memcmp(a, b, links) == 0 && plaquette(from) == plaquette(to));
  static const struct {
    const char *precision;
    double within;
  } kinds[] = {{"double", 0}, {"single", 1e-7}, {"half", 1e-3}, {"bf16", 1e-2}, {"fixed", 1e-4}};
  for (size_t i = 0; i < sites * 12; i++) v[i] = sin((double)i + rank);
  for (int k = 0; k < 5; k++) {
    md_fermion *field, *other;
    double worst = 0.0, norm[2], direct[2] = {0, 0}, sums[2];
    OK(md_fermion_create(from, 2, kinds[k].precision, "host", &field));
    OK(md_fermion_create(from, 2, "double", "host", &other));
    OK(md_fermion_set(field, v));
    OK(md_fermion_copy(other, field));
    OK(md_fermion_get(other, w));
    for (size_t i = 0; i < sites * 12; i++) {
      worst = fmax(worst, fabs(w[i] - v[i]));
      direct[i / (sites * 6)] += w[i] * w[i];
    }
    TRUE(worst <= kinds[k].within && md_fermion_n_rhs(field) == 2);
    OK(md_fermion_norm2(other, norm));
    MPI_Allreduce(direct, sums, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int r = 0; r < 2; r++) TRUE(fabs(norm[r] / sums[r] - 1) < 1e-12);
    md_fermion_destroy(field);
    md_fermion_destroy(other);
  }
  free(a), free(b), free(v), free(w);
  md_lattice_destroy(from);
  md_lattice_destroy(to);
}

static md_quark *quark_of(md_improved *links, int n_rhs, const char *inner) {
  md_quark_request request = md_quark_defaults();
  md_quark *quark;
  request.n_rhs = n_rhs;
  request.inner = inner;
  OK(md_quark_create(links, &request, &quark));
  return quark;
}

static md_improved *improved_of(md_lattice *lattice, const char *action) {
  const md_smearing how = md_smearing_defaults(action);
  md_improved *links;
  OK(md_improved_make(lattice, &how, &links));
  return links;
}

/* A field of the quark with random numbers. */
static md_fermion *random_of(md_quark *quark, const char *source) {
  md_fermion *field;
  OK(md_quark_fermion(quark, &field));
  OK(md_fermion_source(field, source));
  return field;
}

/* <a, Deo b> = -<Doe a, b> for every action. */
static void hops_are_antihermitian(void) {
  static const char *const actions[] = {"naive", "asqtad", "hisq"};
  md_lattice *lattice = hot_lattice(context, 3);
  for (int k = 0; k < 3; k++) {
    md_improved *links = improved_of(lattice, actions[k]);
    md_quark *quark = quark_of(links, 2, "none");
    md_fermion *a = random_of(quark, "random:1"), *b = random_of(quark, "u1:2"), *even, *odd;
    double left[4], right[4], norm[2];
    OK(md_quark_fermion(quark, &even));
    OK(md_quark_fermion(quark, &odd));
    OK(md_quark_hop(quark, 0, even, b));
    OK(md_quark_hop(quark, 1, odd, a));
    OK(md_fermion_dot(a, even, left));
    OK(md_fermion_dot(odd, b, right));
    OK(md_fermion_norm2(even, norm));
    for (int i = 0; i < 4; i++) TRUE(fabs(left[i] + right[i]) < 1e-12 * norm[0]);
    TRUE(norm[0] > 1.0);
    REFUSED(MD_INPUT, "two fields", md_quark_hop(quark, 0, a, a));
    md_fermion_destroy(a), md_fermion_destroy(b), md_fermion_destroy(even), md_fermion_destroy(odd);
    md_quark_destroy(quark);
    md_improved_destroy(links);
  }
  md_lattice_destroy(lattice);
}

/* out += factor U in, or U^dag in; complex numbers (re, im). */
static void multiply(double *out, double factor, const double *u, bool dagger, const double *in) {
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) {
      const double *m = u + (dagger ? 2 * (3 * j + i) : 2 * (3 * i + j));
      const double re = m[0], im = dagger ? -m[1] : m[1];
      out[2 * i] += factor * (re * in[2 * j] - im * in[2 * j + 1]);
      out[2 * i + 1] += factor * (re * in[2 * j + 1] + im * in[2 * j]);
    }
}

/* M of the naive action from the arrays, on one rank, by the formula of docs/conventions.md. */
static void operator_is_that_of_the_formula(void) {
  if (ranks > 1) return;
  md_lattice *lattice = hot_lattice(context, 11);
  md_improved *links = improved_of(lattice, "naive");
  md_quark *quark = quark_of(links, 1, "none");
  md_fermion *in = random_of(quark, "random:4"), *out;
  double *u = array(lattice, 72), *v = array(lattice, 6), *w = array(lattice, 6), worst = 0;
  OK(md_quark_fermion(quark, &out));
  OK(md_quark_apply(quark, 0.3, out, in));
  md_lattice_get(lattice, u);
  OK(md_fermion_get(in, v));
  OK(md_fermion_get(out, w));
  for (int place = 0; place < 4 * 6 * 4 * 8; place++) {
    const int x[4] = {place % 4, place / 4 % 6, place / 24 % 4, place / 96};
    const int stride[4] = {1, 4, 24, 96};
    double expected[6];
    for (int c = 0; c < 6; c++) expected[c] = 0.3 * v[place * 6 + c];
    for (int mu = 0, sum = 0; mu < 4; sum += x[mu], mu++) {
      const int up = x[mu] + 1 == dims[mu] ? place - stride[mu] * x[mu] : place + stride[mu];
      const int down = x[mu] == 0 ? place + stride[mu] * (dims[mu] - 1) : place - stride[mu];
      const double eta = sum % 2 ? -0.5 : 0.5;
      const double forward = mu == 3 && x[mu] + 1 == dims[mu] ? -eta : eta;
      const double backward = mu == 3 && x[mu] == 0 ? -eta : eta;
      multiply(expected, forward, u + (place * 4 + mu) * 18, false, v + up * 6);
      multiply(expected, -backward, u + (down * 4 + mu) * 18, true, v + down * 6);
    }
    for (int c = 0; c < 6; c++) worst = fmax(worst, fabs(w[place * 6 + c] - expected[c]));
  }
  TRUE(worst < 1e-13);
  free(u), free(v), free(w);
  md_fermion_destroy(in), md_fermion_destroy(out);
  md_quark_destroy(quark), md_improved_destroy(links), md_lattice_destroy(lattice);
}

/* |b - M x| / |b|, the largest. */
static double residual(md_quark *quark, double mass, md_fermion *x, md_fermion *b) {
  md_fermion *r;
  double norm[8], of_b[8], worst = 0.0;
  OK(md_quark_fermion(quark, &r));
  OK(md_quark_apply(quark, mass, r, x));
  OK(md_fermion_axpy(-1.0, b, r));
  OK(md_fermion_norm2(r, norm));
  OK(md_fermion_norm2(b, of_b));
  for (int i = 0; i < md_fermion_n_rhs(b); i++) worst = fmax(worst, sqrt(norm[i] / of_b[i]));
  md_fermion_destroy(r);
  return worst;
}

static void solves_meet_their_tolerance(void) {
  static const char *const how[][3] = {
      {"cg", "none", "none"},   {"cg", "single", "none"},     {"block", "half", "none"},
      {"auto", "none", "none"}, {"fcg", "none", "chebyshev"}, {"gcr", "single", "chebyshev"}};
  md_lattice *lattice = hot_lattice(context, 13);
  md_improved *links = improved_of(lattice, "hisq");
  for (size_t k = 0; k < sizeof how / sizeof *how; k++) {
    md_quark *quark = quark_of(links, 3, how[k][1]);
    md_fermion *b = random_of(quark, "point:1,2,3,4"), *x = random_of(quark, "wall:0");
    md_solve_request request = md_solve_defaults(0.2);
    md_solve_result result;
    request.solver = how[k][0];
    request.precondition = how[k][2];
    OK(md_quark_solve(quark, &request, x, b, &result));
    TRUE(result.converged && result.residual <= 1e-10 && result.n_rhs == 3);
    TRUE(fabs(residual(quark, 0.2, x, b) / result.residual - 1) < 5e-2);
    TRUE(result.history[0] > result.history[result.iterations] && result.seconds > 0);
    md_solve_result_free(&result);
    request.guess = x;
    OK(md_quark_solve(quark, &request, b, b, &result)); /* in place, from the solution of b */
    TRUE(result.iterations <= 2);
    md_solve_result_free(&result);
    request.guess = NULL;
    request.max_iterations = 2;
    OK(md_quark_solve(quark, &request, x, b, &result));
    TRUE(!result.converged);
    md_solve_result_free(&result);
    request.solver = "bicg";
    REFUSED(MD_INPUT, "bicg", md_quark_solve(quark, &request, x, b, &result));
    md_fermion_destroy(b), md_fermion_destroy(x);
    md_quark_destroy(quark);
  }
  md_improved_destroy(links);
  md_lattice_destroy(lattice);
}

static void shifts_are_solved_together(void) {
  const double shifts[2] = {0.0, 0.3};
  md_lattice *lattice = hot_lattice(context, 17);
  md_improved *links = improved_of(lattice, "naive");
  md_quark *quark = quark_of(links, 1, "none");
  md_fermion *b = random_of(quark, "random:3"), *x[2], *half, *whole;
  md_solve_request request = md_solve_defaults(0.5);
  double residuals[2], norm[1], of_b[1];
  for (int k = 0; k < 2; k++) OK(md_quark_fermion(quark, &x[k]));
  md_fermion *const same[2] = {x[0], x[0]};
  const double endless[2] = {0.0, INFINITY};
  REFUSED(MD_INPUT, "a field of its own",
          md_quark_multishift(quark, &request, 2, shifts, same, b, residuals));
  REFUSED(MD_INPUT, "shifts must be finite",
          md_quark_multishift(quark, &request, 2, endless, x, b, residuals));
  OK(md_quark_multishift(quark, &request, 2, shifts, x, b, residuals));
  OK(md_quark_fermion(quark, &half));
  OK(md_quark_fermion(quark, &whole));
  for (int k = 0; k < 2; k++) { /* (m^2 + shift - Deo Doe) x_e - b_e */
    OK(md_quark_hop(quark, 1, half, x[k]));
    OK(md_quark_hop(quark, 0, whole, half));
    OK(md_fermion_axpy(-0.25 - shifts[k], x[k], whole));
    OK(md_fermion_axpy(1.0, b, whole));
    OK(md_fermion_norm2(whole, norm));
    OK(md_fermion_norm2(b, of_b));
    TRUE(residuals[k] <= 1e-10);
    /* the odd sites of `whole` are those of b, half of its norm */
    TRUE(fabs(norm[0] / of_b[0] - 0.5) < 1e-9);
    OK(md_fermion_axpy(-1.0, b, whole)); /* zero again there */
  }
  md_fermion_destroy(b), md_fermion_destroy(x[0]), md_fermion_destroy(x[1]);
  md_fermion_destroy(half), md_fermion_destroy(whole);
  md_quark_destroy(quark), md_improved_destroy(links), md_lattice_destroy(lattice);
}

/* A v = lambda v by hops; into a file and back; a solve without them takes longer. */
static void modes_deflate(void) {
  md_lattice *lattice = hot_lattice(context, 19);
  md_improved *links = improved_of(lattice, "hisq");
  md_quark *quark = quark_of(links, 1, "none"), *other;
  md_eigen_search search = md_eigen_defaults(modes_of_test);
  md_quark_request periodic = md_quark_defaults();
  md_solve_request request = md_solve_defaults(0.01);
  md_solve_result plain, deflated;
  md_eigenmodes *modes, *read;
  md_fermion *v, *odd, *even, *b, *x;
  double dot[2], norm;
  OK(md_eigen_find(quark, &search, &modes));
  TRUE(md_eigen_count(modes) == modes_of_test && md_eigen_converged(modes) == modes_of_test);
  OK(md_quark_fermion(quark, &v));
  OK(md_quark_fermion(quark, &odd));
  OK(md_quark_fermion(quark, &even));
  for (int k = 0; k < modes_of_test; k++) {
    OK(md_eigen_vector(modes, k, v));
    OK(md_quark_hop(quark, 1, odd, v));
    OK(md_quark_hop(quark, 0, even, odd));
    OK(md_fermion_dot(v, even, dot));
    OK(md_fermion_norm2(v, &norm));
    TRUE(fabs(norm - 1) < 1e-10 && fabs(dot[0] + md_eigen_values(modes)[k]) < 1e-9);
    OK(md_fermion_axpy(md_eigen_values(modes)[k], v, even));
    OK(md_fermion_norm2(even, &norm));
    TRUE(sqrt(norm) < 2e-8);
  }
  OK(md_eigen_write(modes, path_of("modes.h5"), "double", false));
  REFUSED(MD_INPUT, "modes.h5 is there; add replace or",
          md_eigen_write(modes, path_of("modes.h5"), "half", false));
  REFUSED(MD_INPUT, "got half", md_eigen_write(modes, path_of("modes.lime"), "half", false));
  OK(md_eigen_write(modes, path_of("modes.lime"), "double", false));
  FILE *lime = fopen(path_of("modes.lime"), "rb");
  TRUE(lime && fgetc(lime) == 0x45 && fgetc(lime) == 0x67); /* the first bytes of LIME */
  if (lime) fclose(lime);
  OK(md_eigen_read(quark, NAN, path_of("modes.lime"), &read));
  TRUE(md_eigen_values(read)[0] == md_eigen_values(modes)[0]);
  md_eigen_destroy(read);
  OK(md_eigen_read(quark, NAN, path_of("modes.h5"), &read));
  TRUE(md_eigen_values(read)[0] == md_eigen_values(modes)[0]);
  b = random_of(quark, "random:9");
  x = random_of(quark, "random:9");
  OK(md_quark_solve(quark, &request, x, b, &plain));
  request.modes = read;
  OK(md_quark_solve(quark, &request, x, b, &deflated));
  TRUE(plain.converged && deflated.converged && deflated.iterations < plain.iterations);
  TRUE(residual(quark, 0.01, x, b) < 1.1e-10);
  md_solve_result_free(&plain), md_solve_result_free(&deflated);
  md_lattice *twin = hot_lattice(context, 19);
  md_improved *of_twin = improved_of(twin, "hisq");
  md_quark *apart = quark_of(of_twin, 1, "none");
  md_fermion *x_apart = random_of(apart, "random:9"), *b_apart = random_of(apart, "random:9");
  const double shift = 0.1;
  REFUSED(MD_INPUT, "on the lattice of the operator",
          md_quark_multishift(apart, &request, 1, &shift, &x_apart, b_apart, &norm));
  md_fermion_destroy(x_apart), md_fermion_destroy(b_apart);
  md_quark_destroy(apart), md_improved_destroy(of_twin), md_lattice_destroy(twin);
  periodic.boundary = "periodic";
  OK(md_quark_create(links, &periodic, &other));
  REFUSED(MD_INPUT, "boundary", md_quark_solve(other, &request, x, b, &plain));
  md_eigen_destroy(modes);
  REFUSED(MD_INPUT, "boundary", md_eigen_read(other, NAN, path_of("modes.h5"), &modes));
  TRUE(!modes);
  search.tolerance = 1e-30, search.max_restarts = 1;
  REFUSED(MD_UNREACHED, "0 have after 1 restart;", md_eigen_find(quark, &search, &modes));
  request.modes = modes;
  REFUSED(MD_INPUT, "must have converged, got none", md_quark_solve(quark, &request, x, b, &plain));
  md_eigen_destroy(modes);
  md_fermion_destroy(v), md_fermion_destroy(odd), md_fermion_destroy(even);
  md_fermion_destroy(b), md_fermion_destroy(x);
  md_eigen_destroy(read);
  md_quark_destroy(other), md_quark_destroy(quark);
  md_improved_destroy(links), md_lattice_destroy(lattice);
}

static void smeared_links_come_and_go(void) {
  md_smearing ape = md_smearing_defaults("ape"), hisq = md_smearing_defaults("hisq");
  md_lattice *lattice = hot_lattice(context, 23), *smooth;
  md_improved *made = improved_of(lattice, "hisq"), *given, *none;
  double *fat = array(lattice, 72), *lon = array(lattice, 72), norm[2];
  OK(md_smear_lattice(lattice, &ape, &smooth));
  TRUE(plaquette(smooth) > plaquette(lattice));
  md_lattice_destroy(smooth);
  REFUSED(MD_INPUT, "md_improved_make", md_smear_lattice(lattice, &hisq, &smooth));
  hisq.u0 = 0.9;
  REFUSED(MD_INPUT, "hisq takes no u0, got 0.9", md_improved_make(lattice, &hisq, &none));
  OK(md_improved_get(made, 0, fat));
  OK(md_improved_get(made, 1, lon));
  REFUSED(MD_INPUT, "0 to 1", md_improved_get(made, 2, lon));
  OK(md_improved_set(lattice, "hisq", fat, lon, &given));
  REFUSED(MD_INPUT, "asqtad or hisq", md_improved_set(lattice, "naive", fat, lon, &none));
  md_quark *a = quark_of(made, 1, "none"), *b = quark_of(given, 1, "none");
  md_fermion *in = random_of(a, "random:5"), *out = random_of(a, "u1:1"),
             *same = random_of(a, "u1:2");
  OK(md_quark_apply(a, 0.1, out, in));
  OK(md_quark_apply(b, 0.1, same, in));
  OK(md_fermion_axpy(-1.0, out, same));
  OK(md_fermion_norm2(same, norm));
  TRUE(norm[0] == 0.0);
  free(fat), free(lon);
  md_fermion_destroy(in), md_fermion_destroy(out), md_fermion_destroy(same);
  md_quark_destroy(a), md_quark_destroy(b);
  md_improved_destroy(made), md_improved_destroy(given);
  md_lattice_destroy(lattice);
}

/* Sweeps begin with links in SU(3), of which NaN are none. */
static void sweep_unsound(void) {
  static const double factor[] = {1.01, NAN};
  const md_chain_request chain = md_chain_defaults(6.0);
  for (int i = 0; i < 2; i++) {
    md_lattice *lattice = hot_lattice(context, 29);
    double *links = array(lattice, 4 * 18);
    md_means means;
    md_lattice_get(lattice, links);
    if (rank == 0) links[5] *= factor[i];
    OK(md_lattice_set(lattice, links));
    OK(md_lattice_observe(lattice, &means));
    TRUE(!(means.unitarity_deviation < 1e-4));
    REFUSED(MD_INPUT, i == 0 ? "in SU(3)" : "must be finite", md_lattice_sweep(lattice, &chain));
    free(links);
    md_lattice_destroy(lattice);
  }
}

/* Other links in the place of fat ones are thin. */
static void fat_links_are_replaced(md_lattice *thin) {
  const md_smearing fat7 = md_smearing_defaults("fat7");
  const char *path = path_of("thin.nersc");
  double *links = array(thin, 4 * 18);
  md_lattice_get(thin, links);
  for (int start = 0; start < 2; start++) {
    md_lattice *lattice;
    OK(md_smear_lattice(thin, &fat7, &lattice));
    REFUSED(MD_INPUT, "hold thin links", md_lattice_write(lattice, path, "double", true));
    OK(start ? md_lattice_start(lattice, "hot", 3) : md_lattice_set(lattice, links));
    OK(md_lattice_write(lattice, path, "double", true));
    md_lattice_destroy(lattice);
  }
  free(links);
}

/* A number of the report of a study, on rank 0. */
static double reported(const char *path, const char *key) {
  char line[4096], quoted[64];
  double value = NAN;
  FILE *file = fopen(path, "r");
  snprintf(quoted, sizeof quoted, "\t\"%s\":", key);
  while (file && fgets(line, sizeof line, file))
    if (strncmp(line, quoted, strlen(quoted)) == 0) value = atof(line + strlen(quoted));
  if (file) fclose(file);
  return value;
}

/* A file that a process of its own reads, a propagator, and a study of the lattice. */
static void files_and_studies(void) {
  md_lattice *lattice = hot_lattice(context, 29), *read, *none;
  md_lattice_request request = md_lattice_defaults();
  md_chain_request chain = md_chain_defaults(6.0);
  chain.sweeps = 0;
  REFUSED(MD_INPUT, "got 0 and 0", md_lattice_sweep(lattice, &chain));
  chain.sweeps = 2;
  chain.overrelax = -1;
  REFUSED(MD_INPUT, "got 2 and -1", md_lattice_sweep(lattice, &chain));
  chain.overrelax = 0;
  OK(md_lattice_sweep(lattice, &chain));
  sweep_unsound();
  fat_links_are_replaced(lattice);
  OK(md_lattice_write(lattice, path_of("lattice.h5"), "double", false));
  REFUSED(MD_INPUT, "lattice.h5",
          md_lattice_write(lattice, path_of("lattice.h5"), "double", false));
  OK(md_lattice_read(context, path_of("lattice.h5"), &request, &read));
  TRUE(plaquette(read) == plaquette(lattice));
  REFUSED(MD_INPUT, "nothing.h5", md_lattice_read(context, path_of("nothing.h5"), &request, &none));
  TRUE(!none);
  FILE *damaged = rank == 0 ? fopen(path_of("damaged.h5"), "w") : NULL;
  if (damaged) fprintf(damaged, "no lattice at all\n"), fclose(damaged);
  MPI_Barrier(MPI_COMM_WORLD);
  REFUSED(MD_INPUT, "damaged.h5", md_lattice_read(context, path_of("damaged.h5"), &request, &none));
  md_fermion *b, *x, *back;
  double correlator[8], *a = array(lattice, 18), *c = array(lattice, 18), norm[3], sum = 0.0;
  OK(md_fermion_create(lattice, 3, "single", "host", &b));
  OK(md_fermion_create(lattice, 3, "double", "host", &x));
  OK(md_fermion_create(lattice, 3, "double", "host", &back));
  OK(md_fermion_source(b, "wall:2"));
  OK(md_fermion_copy(x, b));
  OK(md_fermion_pion(b, correlator));
  OK(md_fermion_norm2(b, norm));
  for (int t = 0; t < 8; t++) sum += correlator[t];
  TRUE(correlator[2] == 3 * 4 * 6 * 4 && sum == norm[0] + norm[1] + norm[2]);
  const int zero[1][3] = {{0}}, far[3][4] = {{0}, {0, 0, 0, 7}, {0, 0, 0, 16}};
  double pions[3 * 8];
  REFUSED(MD_INPUT, "an origin must lie on the lattice, 0..7 in direction t, got 16",
          md_fermion_pions(b, far, 1, zero, pions));
  REFUSED(MD_INPUT, "0 or more momenta, got -1", md_fermion_pions(b, far, -1, zero, pions));
  REFUSED(MD_INPUT, "6 right-hand sides", md_fermion_source(b, "points:0,0,0,0;1,0,0,0"));
  REFUSED(MD_INPUT, "on the lattice", md_fermion_source(b, "wall:8"));
  OK(md_fermion_write(x, path_of("x.h5"), false));
  OK(md_fermion_read(back, path_of("x.h5")));
  OK(md_fermion_get(x, a));
  OK(md_fermion_get(back, c));
  TRUE(memcmp(a, c, md_lattice_layout(lattice).local_sites * 18 * sizeof *a) == 0);
  free(a), free(c);
  char output[128], report[128];
  snprintf(output, sizeof output, "%s", path_of("study.h5"));
  snprintf(report, sizeof report, "%s", path_of("study.json"));
  const char *const words[] = {"--lattices", path_of("lattice.h5"),
                               "--masses",   "0.5",
                               "--sources",  "point:0,0,0,0",
                               "--output",   output,
                               "--json",     report};
  const double began = MPI_Wtime();
  OK(md_study_perform(context, 10, words));
  TRUE(access(output, F_OK) == 0);
  if (rank == 0) /* of the study, not of the program */
    TRUE(reported(report, "seconds") <= MPI_Wtime() - began + 0.01);
  REFUSED(MD_INPUT, "--masses", md_study_perform(context, 2, words));
  REFUSED(MD_INPUT, "a word", md_study_perform(context, 2, (const char *[]){words[0], NULL}));
  md_fermion_destroy(b), md_fermion_destroy(x), md_fermion_destroy(back);
  md_lattice_destroy(lattice), md_lattice_destroy(read);
}

static void words_and_matrices(void) {
  md_lattice *lattice = hot_lattice(context, 31);
  md_improved *links = improved_of(lattice, "naive");
  md_quark_request request = md_quark_defaults();
  md_quark *quark;
  md_fermion *field;
  request.backend = "gpu";
  REFUSED(MD_INPUT, "gpu", md_quark_create(links, &request, &quark));
  request = md_quark_defaults();
  request.precision = "quadruple";
  REFUSED(MD_INPUT, "double|single", md_quark_create(links, &request, &quark));
  double *thick = array(lattice, 72);
  md_lattice_get(lattice, thick);
  for (int e = 0; e < 18; e++) thick[e] *= 1.1;
  OK(md_lattice_set(lattice, thick));
  free(thick);
  request = md_quark_defaults();
  request.reconstruct = "12";
  REFUSED(MD_INPUT, "must be in SU(3)", md_quark_create(links, &request, &quark));
  request = md_quark_defaults();
  request.inner = "fixed";
  REFUSED(MD_INPUT, "must be in SU(3)", md_quark_create(links, &request, &quark));
  request = md_quark_defaults();
  request.inner = NULL;
  REFUSED(MD_INPUT, "got NULL", md_quark_create(links, &request, &quark));
  request = md_quark_defaults();
  request.backend = NULL;
  REFUSED(MD_INPUT, "the backend must be given, got NULL",
          md_quark_create(links, &request, &quark));
  request = md_quark_defaults();
  request.transport = NULL;
  REFUSED(MD_INPUT, "the transport must be given, got NULL",
          md_quark_create(links, &request, &quark));
  md_lattice *other;
  md_improved *more;
  const md_smearing nameless = md_smearing_defaults(NULL);
  REFUSED(MD_INPUT, "asqtad|hisq|fat7|ape|stout, got NULL",
          md_smear_lattice(lattice, &nameless, &other));
  REFUSED(MD_INPUT, "got NULL", md_improved_make(lattice, &nameless, &more));
  const md_lattice_request layout = md_lattice_defaults();
  REFUSED(MD_INPUT, "the path must be given, got NULL",
          md_lattice_read(context, NULL, &layout, &other));
  REFUSED(MD_INPUT, "the path must be given, got NULL",
          md_lattice_write(lattice, NULL, "double", true));
  TRUE(!other && !more);
  REFUSED(MD_INPUT, "1..128", md_fermion_create(lattice, 0, "double", "host", &field));
  REFUSED(MD_INPUT, "host|device", md_fermion_create(lattice, 1, "double", "moon", &field));
  TRUE(!quark && !field);
  const double a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8}, ab[4] = {19, 22, 43, 50};
  double c[4];
  md_product product = md_product_defaults(2, 2, 2);
  OK(md_product_compute(context, &product, a, b, c));
  product.precision = NULL;
  REFUSED(MD_INPUT, "got NULL", md_product_compute(context, &product, a, b, c));
  product = md_product_defaults(2, 2, 2);
  product.kernel = NULL;
  REFUSED(MD_INPUT, "got NULL", md_product_compute(context, &product, a, b, c));
  TRUE(memcmp(c, ab, sizeof c) == 0);
  md_improved_destroy(links);
  md_lattice_destroy(lattice);
}

/* Through memory of the GPU where there is one; elsewhere refused, as that of the host is. */
static void arrays_lie_on_a_gpu(void) {
  md_lattice *lattice = hot_lattice(context, 37);
  const size_t bytes = md_lattice_layout(lattice).local_sites * 18 * sizeof(double);
  md_fermion *b, *x;
  void *memory;
  double *host = array(lattice, 18), norm[3] = {1, 1, 1};
  OK(md_fermion_create(lattice, 3, "double", "host", &b));
  OK(md_fermion_create(lattice, 3, "double", "host", &x));
  OK(md_fermion_source(b, "random:4"));
  TRUE(md_fermion_set_device(x, host) != MD_OK);
  TRUE(md_fermion_get_device(b, host) != MD_OK && strstr(md_context_message(context), "GPU"));
  const md_status made = md_device_array_create(context, bytes, &memory);
  if (made == MD_OK) {
    OK(md_fermion_get_device(b, memory));
    OK(md_fermion_set_device(x, memory));
    OK(md_fermion_axpy(-1.0, x, b));
    OK(md_fermion_norm2(b, norm));
    TRUE(norm[0] == 0.0 && norm[1] == 0.0 && norm[2] == 0.0);
  } else {
    TRUE(made == MD_ENVIRONMENT && !memory);
  }
  md_device_array_destroy(memory);
  free(host);
  md_fermion_destroy(b), md_fermion_destroy(x), md_lattice_destroy(lattice);
}

/* What is the program's. */
typedef struct process {
  struct sigaction actions[NSIG];
  char *variables[1024];
  int count, threads;
} process;

static void look(process *p) {
  memset(p, 0, sizeof *p);
  for (int s = 1; s < NSIG; s++) sigaction(s, NULL, &p->actions[s]);
  for (; environ[p->count] && p->count < 1024; p->count++)
    p->variables[p->count] = strdup(environ[p->count]);
  p->threads = omp_get_max_threads();
}

static void compare(const process *before, const process *after) {
  TRUE(before->count == after->count && before->threads == after->threads);
  for (int i = 0; i < before->count; i++)
    TRUE(strcmp(before->variables[i], after->variables[i]) == 0);
  for (int s = 1; s < NSIG; s++)
    TRUE(before->actions[s].sa_handler == after->actions[s].sa_handler);
}

static int too_low_a_level(int *argc, char ***argv) {
  int level;
  MPI_Init(argc, argv);
  MPI_Query_thread(&level);
  if (level >= MPI_THREAD_FUNNELED) {
    printf("MPI gives a higher level than was asked for\n");
    MPI_Finalize();
    return 77;
  }
  REFUSED(MD_ENVIRONMENT, "MPI_Init_thread", md_context_open_on(MPI_COMM_WORLD, &context));
  md_context_close(context);
  MPI_Finalize();
  return 0;
}

int main(int argc, char **argv) {
  static process before, after;
  int level, ended;
  TRUE(md_context_open_on(MPI_COMM_WORLD, &context) == MD_ENVIRONMENT);
  TRUE(strstr(md_context_message(context), "not been started"));
  md_context_close(context);
  if (argc > 1 && strcmp(argv[1], "level") == 0) return too_low_a_level(&argc, &argv);
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  snprintf(folder, sizeof folder, "/tmp/minidirac_library_XXXXXX");
  if (rank == 0 && !mkdtemp(folder)) fail(__LINE__, "mkdtemp", NULL);
  MPI_Bcast(folder, sizeof folder, MPI_CHAR, 0, MPI_COMM_WORLD);
  look(&before);
  static void (*const tests[])(void) = {contexts_live_side_by_side,
                                        arrays_go_in_and_out,
                                        hops_are_antihermitian,
                                        operator_is_that_of_the_formula,
                                        solves_meet_their_tolerance,
                                        shifts_are_solved_together,
                                        modes_deflate,
                                        smeared_links_come_and_go,
                                        files_and_studies,
                                        words_and_matrices,
                                        arrays_lie_on_a_gpu};
  for (size_t k = 0; k < sizeof tests / sizeof *tests; k++) tests[k]();
  md_context_close(context);
  context = NULL;
  look(&after);
  compare(&before, &after);
  MPI_Finalized(&ended);
  TRUE(!ended);
  static const char *const files[] = {"modes.h5", "modes.lime", "lattice.h5", "damaged.h5",
                                      "x.h5",     "study.h5",   "study.json", "thin.nersc"};
  for (size_t k = 0; rank == 0 && k < sizeof files / sizeof *files; k++) unlink(path_of(files[k]));
  if (rank == 0 && rmdir(folder) != 0) fail(__LINE__, "a file was left behind", NULL);
  MPI_Finalize();
  return 0;
}
