#ifndef MD_DIRAC_EIGEN_BASIS_H
#define MD_DIRAC_EIGEN_BASIS_H

#include "dirac/eigen/filter.h"

#include <complex.h>

/* Orthonormal vectors v[0 .. count], the last of them waiting for its turn, and the projection
 * h[i][j] = <v_i, f(A) v_j> of the filtered operator on the first `count`. */
typedef struct md_eigen_basis {
  md_context *context;
  md_dirac *dirac;
  md_eigen_filter filter;
  md_eigen_scratch scratch;
  md_field *v;      /* most + 1 */
  md_field *turned; /* kept: room for Ritz vectors */
  int most, kept, count;
  int64_t unknowns; /* dimension of the space, at least `most` */
  uint64_t seed, drawn;
  double complex *h, *rotation; /* most x most, rows of `most` entries, and rows of Ritz vectors */
  double *values, *dots;
  int applied; /* filters so far */
} md_eigen_basis;

/* Room for `most` vectors of which `kept` survive a restart. Destroy also after a failure.
 * Collective. */
md_status md_eigen_basis_create(md_context *context, md_dirac *dirac, int most, int kept,
                                uint64_t seed, md_eigen_basis *basis);
void md_eigen_basis_destroy(md_eigen_basis *basis);
/* Bytes of host memory beside the fields. */
int64_t md_eigen_basis_bytes(int most);

/* v[count] becomes a random unit vector, orthogonal to those before it. Collective. */
md_status md_eigen_basis_draw(md_eigen_basis *basis);
/* v[count] becomes the part of `vector`, an even field of any precision and space, that is
 * orthogonal to those before it, as a unit vector, and counts; one that has no such part is left
 * out. Collective. */
md_status md_eigen_basis_take(md_eigen_basis *basis, const md_field *vector);
/* One step of Lanczos: a column of h, and the next vector. Collective. */
md_status md_eigen_basis_step(md_eigen_basis *basis);
/* Ritz values of f(A), falling, into values, and the rows of `rotation`; h is lost. Local. */
md_status md_eigen_basis_solve(md_eigen_basis *basis);
/* h becomes the diagonal matrix of values[0 .. count): those of f(A) of vectors that are its
 * eigenvectors. Local. */
void md_eigen_basis_settle(md_eigen_basis *basis);
/* v[0 .. keep) become the first Ritz vectors, v[keep] the vector that was waiting, and h the
 * diagonal matrix of their values. One pass over the basis. Collective. */
md_status md_eigen_basis_restart(md_eigen_basis *basis, int keep);
/* Forgets all but the sum of v[0 .. count), which waits alone. Collective. */
md_status md_eigen_basis_gather(md_eigen_basis *basis);
/* <v_i, A v_i> / <v_i, v_i> and the residual of it, by A itself. Collective. */
md_status md_eigen_basis_pair(md_eigen_basis *basis, int i, double *value, double *residual);

#endif
