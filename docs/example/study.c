/* study LATTICE MASS [MODES]: the pion correlator of HISQ quarks on a gauge configuration, from a
 * point source at the origin, solved with the lowest eigenvectors (8, or MODES) taken out. A
 * program that owns MPI, in C17 and C++17; runs under mpirun with any number of ranks that the
 * lattice allows. Prints t and C(t). */
#include <minidirac/minidirac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* All that is made on the way, and ended at the end. */
typedef struct study {
  md_context *context;
  md_lattice *lattice;  /* thin links */
  md_improved *links;   /* fat and long ones */
  md_quark *quark;      /* D of them */
  md_eigenmodes *modes; /* of -Deo Doe */
  md_fermion *b, *x;    /* M x = b */
  md_solve_result solved;
  double *correlator; /* [t] */
  int rank;
} study;

/* Reads the lattice and makes the links of the action. */
static md_status prepare(study *s, const char *path) {
  const md_lattice_request layout = md_lattice_defaults();
  const md_smearing hisq = md_smearing_defaults("hisq");
  md_means means;
  MD_TRY(md_lattice_read(s->context, path, &layout, &s->lattice));
  MD_TRY(md_lattice_observe(s->lattice, &means));
  if (s->rank == 0) fprintf(stderr, "plaquette %.12f\n", means.plaquette);
  return md_improved_make(s->lattice, &hisq, &s->links);
}

/* The operator for the three colours of the source, and its lowest modes. Both stay where the
 * operator works, on the GPU where it takes one. */
static md_status find_modes(study *s, int count) {
  md_quark_request request = md_quark_defaults();
  md_eigen_search search = md_eigen_defaults(count);
  request.n_rhs = 3;
  MD_TRY(md_quark_create(s->links, &request, &s->quark));
  MD_TRY(md_eigen_find(s->quark, &search, &s->modes));
  if (s->rank == 0)
    fprintf(stderr, "%d modes by %s, the lowest %.6e\n", md_eigen_converged(s->modes),
            md_quark_backend(s->quark), md_eigen_values(s->modes)[0]);
  return MD_OK;
}

static md_status solve(study *s, double mass) {
  md_solve_request request = md_solve_defaults(mass);
  request.modes = s->modes;
  MD_TRY(md_quark_fermion(s->quark, &s->b));
  MD_TRY(md_quark_fermion(s->quark, &s->x));
  MD_TRY(md_fermion_source(s->b, "point:0,0,0,0"));
  MD_TRY(md_quark_solve(s->quark, &request, s->x, s->b, &s->solved));
  if (s->rank == 0)
    fprintf(stderr, "%d iterations, true residual %.2e\n", s->solved.iterations,
            s->solved.residual);
  return s->solved.converged ? MD_OK : MD_UNREACHED; /* no failure of the call: no message */
}

static md_status measure(study *s) {
  const int times = md_lattice_layout(s->lattice).dims[3];
  s->correlator = (double *)malloc((size_t)times * sizeof(double));
  if (!s->correlator) MPI_Abort(MPI_COMM_WORLD, MD_ENVIRONMENT); /* this program may */
  MD_TRY(md_fermion_pion(s->x, s->correlator));
  for (int t = 0; t < times && s->rank == 0; t++) printf("%d %.12e\n", t, s->correlator[t]);
  return MD_OK;
}

static void end(study *s) {
  free(s->correlator);
  md_solve_result_free(&s->solved);
  md_fermion_destroy(s->x);
  md_fermion_destroy(s->b);
  md_eigen_destroy(s->modes);
  md_quark_destroy(s->quark);
  md_improved_destroy(s->links);
  md_lattice_destroy(s->lattice);
  md_context_close(s->context);
}

int main(int argc, char **argv) {
  study s;
  int level;
  memset(&s, 0, sizeof s);
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &s.rank);
  if (argc < 3 || argc > 4) {
    if (s.rank == 0) fprintf(stderr, "usage: %s LATTICE MASS [MODES]\n", argv[0]);
    MPI_Finalize();
    return MD_INPUT;
  }
  md_status status = md_context_open_on(MPI_COMM_WORLD, &s.context);
  if (status == MD_OK) status = prepare(&s, argv[1]);
  if (status == MD_OK) status = find_modes(&s, argc == 4 ? atoi(argv[3]) : 8);
  if (status == MD_OK) status = solve(&s, atof(argv[2]));
  if (status == MD_OK) status = measure(&s);
  if (status != MD_OK && s.rank == 0) fprintf(stderr, "%s\n", md_context_message(s.context));
  end(&s);
  MPI_Finalize(); /* of this program, so here; the library would not */
  return (int)status;
}
