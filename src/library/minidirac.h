#ifndef MINIDIRAC_H
#define MINIDIRAC_H

/* libminidirac: lattices, staggered Dirac operators, solves, eigenvectors and correlators for
 * programs in C17 and C++17. docs/library.md is the page about it, docs/example a whole program.
 *
 * - MPI belongs to the program: it starts MPI before the first context and ends it after the last
 *   one, from one thread, which makes all calls. The library ends no process, catches no signal,
 *   sets no variable of the environment and prints nothing but warnings, by rank 0 on stderr.
 *   OpenMP threads are as many as the program has asked OpenMP for when it opens a context. A GPU,
 *   where one is used, is that of the rank's number on its host, and becomes the thread's current
 *   one.
 * - A function that can fail returns an md_status; md_context_message then says why. Unless it says
 *   "local", a function is collective: all ranks of the context call it, in the same order and with
 *   the same values but for data, and all get the same status.
 * - Handles are made by create, make, read and find, which assign NULL on failure, and ended by
 *   destroy, which takes NULL. What a handle was made of outlives it, the context all of them.
 * - Choices are words, those of the options of `minidirac` but for `--inner auto`, which goes by a
 *   mass: a word that is none is MD_INPUT, and the message lists them. A request is what its
 *   function of defaults returns, with changes.
 * - Directions are x, y, z, t. An array of the caller lies on the host unless a function says "on
 *   the GPU", in double, complex numbers as (re, im), and holds the local block of the rank: the
 *   whole lattice on one rank, else the part that md_lattice_layout tells. With its extents T, Z,
 *   Y, X links are [T][Z][Y][X][mu][row][column], bare: no phases, no boundary sign; fermions are
 *   [right-hand side][T][Z][Y][X][colour].
 * - M = m + D; D, phases and signs are those of docs/conventions.md. With four spins M, and the
 *   hop H, are those of docs/actions.md. Masses and eigenvalues are in units of the inverse
 *   lattice spacing. */
#include "base/status.h"

/* The C++ interface of MPI, which is gone since 2012, would have to be linked. */
#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* "0.2.0". Local. */
const char *md_version(void);

/* ---- The ranks that work together ---------------------------------------------------------- */

typedef struct md_context md_context;

/* A context on a copy of `communicator`, which the caller may free. Contexts may be open side by
 * side, on the same ranks or on others, and be closed in any order that is the same on their ranks.
 * On failure *context only has the message and is to be closed all the same; it is NULL where
 * memory is short. MD_ENVIRONMENT: MPI has not been started, or has ended, or has a thread level
 * below MPI_THREAD_FUNNELED, or this is not its main thread; MD_INPUT: no intracommunicator.
 * Collective over the communicator. */
md_status md_context_open_on(MPI_Comm communicator, md_context **context);
/* The same on MPI_COMM_WORLD, for a program without calls of MPI: starts MPI where nobody has, and
 * then closing this context, which is to be the last one, ends it. */
md_status md_context_open_world(md_context **context);
/* NULL is fine. Collective. */
void md_context_close(md_context *context);
/* For GPUs: the context takes GPU `number` of the host, modulo how many there are, in place of that
 * of the rank's number on its host. Before anything is on the device; for contexts side by side
 * whose ranks share a host. Local. */
void md_context_choose_device(md_context *context, int number);
/* Of the last failure: one line, the rule, the value, what to do. Local. */
const char *md_context_message(const md_context *context);

/* ---- Lattices of thin links ---------------------------------------------------------------- */

typedef struct md_lattice md_lattice;

typedef struct md_lattice_request {
  int dims[4];          /* extents, even; not looked at where a file has them */
  int grid[4];          /* ranks along each direction; all 0: chosen [0] */
  const char *space;    /* where fields will lie, for which the grid is chosen ["host"] */
  int longest_hop;      /* of the actions: 1 is enough for naive, which then sends less [3] */
  bool ignore_checksum; /* of a file: one that does not fit is a warning [false] */
} md_lattice_request;
md_lattice_request md_lattice_defaults(void);

/* Unit links on extents of the request; links of a file of any format that `minidirac` reads. */
md_status md_lattice_create(md_context *context, const md_lattice_request *request,
                            md_lattice **lattice);
md_status md_lattice_read(md_context *context, const char *path, const md_lattice_request *request,
                          md_lattice **lattice);
/* By the suffix of the path; precision "double" or "single". The file appears when it is whole; one
 * that is there is MD_INPUT unless `replace`. */
md_status md_lattice_write(md_lattice *lattice, const char *path, const char *precision,
                           bool replace);
void md_lattice_destroy(md_lattice *lattice);

typedef struct md_layout {
  int dims[4], local[4], origin[4]; /* of the lattice; of this rank's block; where that begins */
  int grid[4];
  size_t local_sites;
} md_layout;
md_layout md_lattice_layout(const md_lattice *lattice); /* local */

/* Assigns all links, which files then call thin, from arrays; to arrays (local). Nothing made of
 * the lattice may exist yet when links are assigned. */
md_status md_lattice_set(md_lattice *lattice, const double *links);
void md_lattice_get(const md_lattice *lattice, double *links);
/* "cold": unit links; "hot": random ones by the seed, the same on every rank grid. */
md_status md_lattice_start(md_lattice *lattice, const char *kind, uint64_t seed);
/* One or more heatbath sweeps, first, first + 1, ..., of links in SU(3), of the chain of this seed
 * at beta = 6/g^2, each followed by `overrelax` microcanonical ones, on the "host" or the "device".
 */
typedef struct md_chain_request {
  double beta;
  int sweeps, overrelax; /* [1, 0] */
  uint64_t seed, first;  /* [1, 0] */
  const char *space;     /* ["host"] */
} md_chain_request;
md_chain_request md_chain_defaults(double beta);
md_status md_lattice_sweep(md_lattice *lattice, const md_chain_request *request);

typedef struct md_means {
  double plaquette, plaquette_ss, plaquette_st, link_trace; /* Re tr / 3; space-space, -time */
  double unitarity_deviation;                               /* largest of a link from SU(3) */
} md_means;
md_status md_lattice_observe(md_lattice *lattice, md_means *means);

/* ---- Smeared and improved links ------------------------------------------------------------ */

typedef struct md_smearing {
  const char *recipe;  /* "naive" (none), "asqtad", "hisq", "fat7", "ape", "stout" */
  const char *space;   /* where they are made, "host" or "device" ["host"] */
  double u0;           /* of asqtad and fat7 [1] */
  double naik_epsilon; /* of hisq [0] */
  double alpha, rho;   /* of ape, of stout [0.5, 0.1] */
  int steps;           /* of ape and stout [1] */
} md_smearing;
md_smearing md_smearing_defaults(const char *recipe);

/* A new lattice of links by fat7, ape or stout, which takes the layout of `thin`. */
md_status md_smear_lattice(md_lattice *thin, const md_smearing *how, md_lattice **smeared);

/* The link fields of an action on a lattice: field 0 is the thin one of naive, the fat one of
 * asqtad and hisq, field 1 the long one of these, with its coefficient. */
typedef struct md_improved md_improved;

/* From the thin links, by the recipe that has the action's name. */
md_status md_improved_make(md_lattice *lattice, const md_smearing *how, md_improved **links);
/* From files of fat and of long links, whose phases are found and taken off; from arrays of them.
 * The lattice lends its layout alone. action: "asqtad" or "hisq". MD_INPUT also for files that say
 * that their links are of another action, or not of one lattice. */
md_status md_improved_read(md_lattice *lattice, const char *action, const char *fat,
                           const char *long_links, md_improved **links);
md_status md_improved_set(md_lattice *lattice, const char *action, const double *fat,
                          const double *long_links, md_improved **links);
/* MD_INPUT for a field that the action does not have. Local. */
md_status md_improved_get(const md_improved *links, int field, double *array);
void md_improved_destroy(md_improved *links);

/* ---- Fermion fields ------------------------------------------------------------------------ */

/* Right-hand sides on even and odd sites, kept in a precision ("double", "single", "half", "bf16",
 * "fixed") and a space ("host" or "device") until destroyed. */
typedef struct md_fermion md_fermion;

/* Zeros. 1 to 128 right-hand sides. */
md_status md_fermion_create(md_lattice *lattice, int n_rhs, const char *precision,
                            const char *space, md_fermion **field);
/* The same of quarks with four spins: arrays [rhs][t][z][y][x][4][3]. */
md_status md_spinor_create(md_lattice *lattice, int n_rhs, const char *precision, const char *space,
                           md_fermion **field);
void md_fermion_destroy(md_fermion *field);
int md_fermion_n_rhs(const md_fermion *field); /* local */
/* From and to arrays; between fields of one lattice and number of right-hand sides. */
md_status md_fermion_set(md_fermion *field, const double *values);
md_status md_fermion_get(const md_fermion *field, double *values);
/* The same from and to arrays on the GPU of the context, after all that was queued there on any
 * stream; what was assigned is there when they return. Fields in double on the device take and give
 * values without another copy. MD_INPUT for memory that is not of this GPU; MD_ENVIRONMENT without
 * one. */
md_status md_fermion_set_device(md_fermion *field, const double *values);
md_status md_fermion_get_device(const md_fermion *field, double *values);
/* Memory on the GPU for such an array, zeros. MD_ENVIRONMENT without a GPU or that much memory. */
md_status md_device_array_create(md_context *context, size_t bytes, void **array);
void md_device_array_destroy(void *array);
md_status md_fermion_copy(md_fermion *to, const md_fermion *from);
/* A source in the words of --source: "point:x,y,z,t", "wall:t", "corner:t", "evenwall:t",
 * "oddwall:t", "points:...", "seeded:N,SEED" take 3 right-hand sides for each point, a colour each,
 * 12 with four spins; "colour:t,SEED", "random:SEED", "u1:SEED" take any number. Same on every rank
 * grid. */
md_status md_fermion_source(md_fermion *field, const char *source);
/* norms[r] = |x_r|^2; dots[2 r] + i dots[2 r + 1] = <x_r, y_r>, linear in y, of two fields of one
 * lattice, precision, space and number. Sums over both parities, in double. */
md_status md_fermion_norm2(const md_fermion *x, double *norms);
md_status md_fermion_dot(const md_fermion *x, const md_fermion *y, double *dots);
/* y = a x + y, of such fields, a real. */
md_status md_fermion_axpy(double a, const md_fermion *x, md_fermion *y);
/* Propagator files: HDF5, or by the suffix SciDAC (.lime, .scidac), MILC (.milc, .ks) or Fermilab
 * (.fnal), the last two of three right-hand sides in single precision. A file that is there is
 * MD_INPUT unless `replace`. */
md_status md_fermion_write(const md_fermion *field, const char *path, bool replace);
md_status md_fermion_read(md_fermion *field, const char *path);

/* correlator[t], dims[3] of them: |x|^2 summed over space, colours and right-hand sides. With x the
 * solution for a point source's three colours this is the pion correlator. */
md_status md_fermion_pion(const md_fermion *x, double *correlator);
/* The same of each right-hand side from its own origin with momenta p = 2 pi n / L:
 * correlators[(r count + k) dims[3] + t], t from the origin's time slice. MD_INPUT for an origin
 * outside the lattice. */
md_status md_fermion_pions(const md_fermion *x, const int (*origin)[4], int count,
                           const int (*momenta)[3], double *correlators);
/* estimates[r] = Re <b_r, x_r> / V of tr M^-1 / V, for M x = b with noise b. */
md_status md_fermion_condensate(const md_fermion *b, const md_fermion *x, double *estimates);

/* ---- Dirac operators and solves ------------------------------------------------------------ */

/* D of a quark on links that its action has, ready to be applied and inverted for any mass. */
typedef struct md_quark md_quark;

typedef struct md_quark_request {
  int n_rhs;                     /* that are worked on at once [1] */
  const char *backend, *packing; /* ["auto", "auto"] */
  const char *precision, *inner; /* of fields; of iterations below double ["double", "none"] */
  const char *reconstruct, *transport; /* reals of a link; of halos ["18", "auto"] */
  const char *boundary;                /* in t, or "periodic" ["antiperiodic"] */
  double imaginary_mu;                 /* phase exp(i mu) on t-links [0] */
  int flux_quanta;                     /* of a magnetic field along z, seen by the quark [0] */
  int slices;            /* of "domainwall" and "mobius", their fifth dimension; 0: 12 [0] */
  double height, b5, c5; /* M5; of "mobius" alone; NaN: 1.8, 1.5, 0.5 [NaN] */
} md_quark_request;
md_quark_request md_quark_defaults(void);

/* It keeps copies of the links. */
md_status md_quark_create(md_improved *links, const md_quark_request *request, md_quark **quark);
void md_quark_destroy(md_quark *quark);
const char *md_quark_backend(const md_quark *quark); /* the name of the one that works; local */
/* Zeros on which it works without a copy: of its precision, space and number; with a fifth
 * dimension of all slices, [rhs][t][z][y][x][slices][4][3], of which hop and apply are. */
md_status md_quark_fermion(md_quark *quark, md_fermion **field);

/* The sites of one parity of out become D in: Deo in for parity 0 (even), Doe in for 1 (odd), with
 * four spins H in, slice by slice. The other sites of out stay. out = M in on all sites. Fields as
 * of md_quark_fermion, not the same. */
md_status md_quark_hop(md_quark *quark, int parity, md_fermion *out, md_fermion *in);
md_status md_quark_apply(md_quark *quark, double mass, md_fermion *out, md_fermion *in);

/* The lowest eigenvectors of -Deo Doe, or of S S^dag, on even sites, see below. */
typedef struct md_eigenmodes md_eigenmodes;

typedef struct md_solve_request {
  double mass;
  double tolerance;         /* on |b - M x| / |b| of every right-hand side [1e-10] */
  int max_iterations;       /* [10000] */
  const char *solver;       /* "cg", "block", "auto", "fcg", "gcr", "bicgstab" ["cg"] */
  const char *precondition; /* of fcg and gcr: "none", "chebyshev", "modes" ["none"] */
  int degree;               /* of chebyshev [8] */
  md_eigenmodes *modes;     /* of this quark's links, to deflate with, or NULL [NULL] */
  const md_fermion *guess;  /* even sites of a solution to begin with, or NULL [NULL] */
} md_solve_request;
md_solve_request md_solve_defaults(double mass);

/* Arrays belong to it until md_solve_result_free. */
typedef struct md_solve_result {
  bool converged;
  int iterations, n_rhs;
  double residual; /* largest true one, in double */
  double seconds, gflops;
  double *residuals;   /* [n_rhs], true ones */
  int *rhs_iterations; /* [n_rhs] */
  double *history;     /* [iterations + 1]: largest residual of the recursion after each */
} md_solve_result;

/* Solves M x = b; of domain walls for the quark of the four-dimensional world, from walls to walls.
 * Fields of any precision and space, of the quark's number; x is assigned, rounded
 * to its precision after the residual was taken. MD_OK also where it did not converge; MD_INPUT
 * where b is not finite, or its norm neither 0 nor from 1e-130 to 1e150; MD_UNREACHED where another
 * number is not finite. The result is to be freed after any outcome. */
md_status md_quark_solve(md_quark *quark, const md_solve_request *request, md_fermion *x,
                         const md_fermion *b, md_solve_result *result);
void md_solve_result_free(md_solve_result *result);
/* Solves (M^dag M + shift_k) x_k = b, of "wilson" (S S^dag + shift_k) x_k = b, on the even sites
 * for 1 to 64 shifts together, each with a field of its own; odd sites of x[k] stay. Of the request
 * mass, tolerance, max_iterations and modes. residuals[k]: largest true ones. A quark without an
 * inner precision. MD_UNREACHED where a residual misses the tolerance; x are assigned then too. */
md_status md_quark_multishift(md_quark *quark, const md_solve_request *request, int count,
                              const double *shifts, md_fermion *const *x, const md_fermion *b,
                              double *residuals);

/* ---- Eigenvectors -------------------------------------------------------------------------- */

typedef struct md_eigen_search {
  int modes, block; /* how many; vectors filtered at once, 0: chosen [8, 0] */
  double tolerance; /* on |A v - lambda v|, A = -Deo Doe or S S^dag [1e-8] */
  int max_restarts; /* [1000] */
  uint64_t seed;    /* [1] */
  double mass;      /* of quarks with four spins, whose modes have one; else NaN [NaN] */
} md_eigen_search;
md_eigen_search md_eigen_defaults(int modes);

/* The lowest modes of the operator of the quark, for all masses, or with four spins those of S
 * S^dag of one mass, in double, in the space that it works in. MD_UNREACHED where not all
 * converged: then *modes has those that were found. */
md_status md_eigen_find(md_quark *quark, const md_eigen_search *request, md_eigenmodes **modes);
/* Files of `minidirac eigen`, which belong to links, action, boundary and with four spins a mass,
 * else NaN: MD_INPUT for others. store: "double", "single", and in HDF5 "half", of colour vectors
 * "fixed8" too. Written in the format of the suffix: HDF5 where it names none. */
md_status md_eigen_read(md_quark *quark, double mass, const char *path, md_eigenmodes **modes);
md_status md_eigen_write(md_eigenmodes *modes, const char *path, const char *store, bool replace);
void md_eigen_destroy(md_eigenmodes *modes);
/* All that are there and, of them, the lowest ones that converged. Local. */
int md_eigen_count(const md_eigenmodes *modes);
int md_eigen_converged(const md_eigenmodes *modes);
/* Rising, [count]; live as long as the modes. Local. */
const double *md_eigen_values(const md_eigenmodes *modes);
const double *md_eigen_residuals(const md_eigenmodes *modes);
/* Mode k, a unit vector, into a field of one right-hand side, with a fifth dimension of all slices
 * (md_quark_fermion); zero on odd sites. */
md_status md_eigen_vector(const md_eigenmodes *modes, int k, md_fermion *field);

/* ---- Studies and matrices ------------------------------------------------------------------ */

/* A study of many lattices: `minidirac measure` with these words, as on its command line:
 * "--config" and a deck, "--lattices" and a pattern, ... Results go to the HDF5 file of --output
 * (docs/study.md), a report to the file of --json. MD_UNREACHED where lattices were left out.
 * --threads does not outlast the call. */
md_status md_study_perform(md_context *context, int count, const char *const *words);

/* C = alpha A B + beta C by one of the dense kernels, row-major and without gaps. A and B are of
 * the precision ("double", "single", "tf32", "half", "bf16"), C is double for double, else float;
 * in the kernel's space, host or device. Local. */
typedef struct md_product {
  const char *kernel, *precision; /* ["cpu_tiled", "double"] */
  int64_t m, n, k;                /* C is m x n, A m x k */
  double alpha, beta;             /* [1, 0] */
} md_product;
md_product md_product_defaults(int64_t m, int64_t n, int64_t k);
md_status md_product_compute(md_context *context, const md_product *product, const void *a,
                             const void *b, void *c);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
