#pragma once

#include "dirac/operators.h"
#include "lattice/fields/modes.h"

MD_C_BEGIN

/* A preconditioner is an operator that approximates the inverse of another one, on fields of the
 * same shape. Those of a Hermitian positive operator are Hermitian and positive here. */
typedef enum md_precondition {
  MD_PRECONDITION_NONE,
  MD_PRECONDITION_CHEBYSHEV,
  MD_PRECONDITION_MODES
} md_precondition;
#define MD_PRECONDITION_WORDS "none|chebyshev|modes"
enum { MD_PRECONDITION_MOST_DEGREE = 1000 };

/* The Chebyshev iteration for A z = r from zero, `degree` times by A = `of`, a Hermitian and
 * positive operator that outlives it: z = p(A) r, where 1 - x p(x) is least on the part of the
 * spectrum that such a polynomial can lower to a tenth, [4 most / (degree + 1)^2, most], or on all
 * of it where that is narrower. Destroy also after a failure. Local. */
md_status md_chebyshev_create(md_context *context, md_operator *of, int degree, md_operator *p);

/* z = r + sum over i of ((lambda + from) / (lambda_i + from) - 1) v_i <v_i, r>, where lambda is
 * the last of the modes v_i of `of` less its modes_from: it lifts all of them to the lower end of
 * the rest of the spectrum. `of` on MD_DOUBLE fields; modes, in their space, outlive it. Destroy
 * also after a failure. Local. */
md_status md_modes_preconditioner_create(md_context *context, const md_operator *of,
                                         const md_modes *modes, md_operator *p);

/* The preconditioner `narrow` of an operator in a narrower precision, for fields like those of
 * `wide`, of any space: each right-hand side is handed down in units of its norm. Destroy also
 * after a failure. Local. */
md_status md_narrowed_create(md_context *context, const md_operator *wide, md_operator *narrow,
                             md_operator *p);

MD_C_END
