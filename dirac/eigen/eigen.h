#pragma once

#include "dirac/operator.h"
#include "lattice/fields/modes.h"

MD_C_BEGIN

/* The lowest modes of A = -Deo Doe = Doe^dag Doe on the even sites; M^dag M has these eigenvalues
 * plus m^2. Of quarks with four spins A = S S^dag (dirac/wilson/wilson.h). */

/* Modes of one search: dense matrices of their number are made. */
enum { MD_EIGEN_MOST = MD_MODES_MOST };

/* How the eigenvalues of A lie, from a few steps on a random vector: Ritz values, rising, and the
 * share of all eigenvalues that each stands for. The sum of the shares is 1. */
enum { MD_EIGEN_NODES = 30 };
typedef struct md_eigen_density {
  int nodes; /* 0: not known, as the search began from modes that had converged */
  double value[MD_EIGEN_NODES], share[MD_EIGEN_NODES];
} md_eigen_density;

/* An eigenvalue of the Hermitian gamma_5 S with its vector u, |u| = 1. */
typedef struct md_eigen_sign {
  double value, residual;
  double chirality; /* <u, gamma_5 u> */
} md_eigen_sign;

typedef struct md_eigen_result {
  int modes;         /* in the arrays, rising; fewer than asked for only when interrupted */
  double *values;    /* <v, A v> / <v, v> */
  double *residuals; /* |A v - value v| / |v| by the operator itself, without filter */
  md_field *vectors; /* orthonormal, even, in the operator's space; their halos mean nothing */
  int below;         /* the lowest ones that meet the tolerance, without a gap */
  bool converged;    /* all that were asked for, and a new search found no other below them */
  bool interrupted;  /* ended early by a signal */
  int iterations;    /* applications of the filter to a vector */
  int restarts;
  int filter_degree;              /* of the last filter */
  double window_low, window_high; /* what it damps; window_high is a bound on A */
  md_eigen_density density;
  md_eigen_sign *signs; /* of Wilson quarks, of the first `below` modes; NULL: of others */
  double seconds;
} md_eigen_result;

typedef struct md_eigen_request {
  double mass;      /* of S S^dag; 0 for staggered quarks */
  int modes;        /* 1 .. md_eigen_unknowns, MD_EIGEN_MOST at most */
  double tolerance; /* on |A v - lambda v| / |v| of every mode */
  int max_restarts;
  uint64_t seed; /* of the vectors that begin a search */
  /* Vectors that an earlier search found, of any precision and space: those that meet the tolerance
   * are kept, else the search begins from their sum. NULL: it begins at random. */
  const md_modes *start;
  /* Called on every rank after each restart with what there is, vectors excepted: `below` modes
   * have converged, and `residual` is the largest of those asked for. NULL: not called. */
  void (*observe)(void *user, const md_eigen_result *found, double residual);
  void *user;
} md_eigen_request;

/* Eigenvalues that A has, each as often as it is degenerate: one for each pair of components of an
 * even site. */
int64_t md_eigen_unknowns(const md_geometry *geometry, int components);

/* Thick-restart Lanczos (K. Wu, H. Simon, SIAM J. Matrix Anal. Appl. 22 (2000) 602) with full
 * reorthogonalisation on a Chebyshev filter of A. Its window comes from a few steps without filter
 * and is moved as long as the Ritz values say that it lies wrong; what has converged stays then.
 * The N-th Ritz value is an upper bound on the N-th eigenvalue. The operator, which is MD_DOUBLE,
 * says by its number of right-hand sides how many vectors are filtered at once and enter the basis
 * together: a block of p (block Lanczos: G. Golub and R. Underwood, Mathematical Software III
 * (1977) 361). p starting vectors meet a degenerate eigenvalue p times at most: when all modes have
 * converged, a search from p new random vectors that are orthogonal to them follows, and only when
 * it changes none of them they are taken for the lowest. p = 1 is for operators that gain little
 * from many right-hand sides. MD_OK also when not converged or interrupted (see result); MD_INPUT
 * for more modes than unknowns; MD_UNREACHED when a sum is not finite. Free the result, also after
 * a failure. Collective. */
md_status md_eigen_lowest(md_context *context, md_dirac *dirac, const md_eigen_request *request,
                          md_eigen_result *result);
void md_eigen_result_free(md_eigen_result *result);

MD_C_END
