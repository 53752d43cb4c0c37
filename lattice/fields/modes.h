#pragma once

#include "lattice/fields/field.h"

MD_C_BEGIN

enum { MD_MODES_MOST = 10000 }; /* of one search and one file */

/* The lowest eigenvectors of A = -Deo Doe on the even sites of a lattice. They are those of M^dag M
 * too, whose eigenvalues are larger by the mass squared. */
typedef struct md_modes {
  int count;
  double *values;    /* <v, A v>, rising */
  double *residuals; /* |A v - value v| when they were found, before they were rounded */
  md_field *vectors; /* unit vectors, even, one right-hand side, of one precision and space; their
                        halos mean nothing */
  double roundoff;   /* of their numbers, relative to the largest of a site at worst */
} md_modes;

/* The largest eigenvalue; 0 where there are none or modes is NULL. */
static inline double md_modes_last(const md_modes *modes) {
  const double last = modes && modes->count > 0 ? modes->values[modes->count - 1] : 0.0;
  return last > 0.0 ? last : 0.0;
}

/* `count` modes of zeros, their vectors in the precision and space of the shape (n_rhs 1). Destroy
 * also after a failure. Local. */
md_status md_modes_create(md_context *context, const md_geometry *geometry,
                          const md_field_shape *shape, int count, md_modes *modes);
void md_modes_destroy(md_modes *modes);

MD_C_END
