#pragma once

#include "dirac/operators.h"

MD_C_BEGIN

/* How an equation that is asked for becomes A y = c, which solvers see, and back, and its true
 * residual, which decides: in double, of the original equation, from the solution alone. One kind
 * for each family of actions. */
typedef struct md_system md_system;

typedef struct md_system_kind {
  /* work[0] = c; work[0] = c - A y. Collective, as the other two. */
  md_status (*source)(md_context *context, md_system *s);
  md_status (*residual)(md_context *context, md_system *s);
  /* The rest of x from y, if there is one; then work = b - (what is asked for) x. */
  md_status (*reconstruct)(md_context *context, md_system *s);
  /* work[0] from md_system_true_residuals is c - A y over this; NULL: 1, as where y is all that is
   * asked for. */
  double (*of_true)(const md_system *s);
} md_system_kind;

/* Fields are MD_DOUBLE, of the operator `a`; y is x[0], or apart. */
struct md_system {
  const md_system_kind *kind;
  md_operator *a; /* borrowed: the exact operator of the equation that is asked for */
  int fields;     /* of b, x and work: MD_PARITIES or 1 */
  int n_rhs;      /* of those that were asked for; the fields' others are zero */
  bool is_apart;  /* y is `apart`, from which x[0] is reconstructed too */
  md_field apart;
  md_field base; /* where y is apart: x[0] is this and what y gives; without data that alone */
  /* Makes b of a source that does not stand there as it is. NULL: it does. Collective. */
  md_status (*put)(md_context *context, md_system *s, const md_field b[MD_PARITIES]);
  /* What is asked for in x, MD_DOUBLE on the host, where that is not x as it stands; `midpoint`: of
   * domain walls the quark field in the middle of the fifth dimension, or NULL. NULL: it is x. */
  md_status (*solution)(md_context *context, const md_system *s, md_field x[MD_PARITIES],
                        md_field *midpoint);
  md_field b[MD_PARITIES], x[MD_PARITIES], work[MD_PARITIES];
  double b_norm[MD_MAX_RHS]; /* |b| */
  /* |c - A y| <= tolerance * scale is |b - (..) x| <= tolerance * |b|. */
  double scale[MD_MAX_RHS];
};

/* The fields of a new one, for the right-hand sides of b, which are put in if `filled` and b has
 * data. Destroy also after a failure. Local. */
md_status md_system_create(md_context *context, const md_system_kind *kind, md_operator *a,
                           int fields, const md_field *b, bool filled, md_system *s);

/* M x = b by its even sites, where `full` is M (md_full_create); `direct`: with y = x_e and an A
 * that is md_schur_create's. For the staggered family
 *   A y = (m^2 - Deo Doe) x_e = m b_e - Deo b_o,   x_o = (b_o - Doe x_e) / m
 * With odd sites from even ones the residual of M x = b is that of A y = c over m. b of domain
 * walls is a field of the four-dimensional world, as is the solution; `put` is to be called for
 * it. */
md_status md_system_even_odd(md_context *context, md_operator *full, bool direct,
                             const md_field b[MD_PARITIES], md_system *s);
/* A x = b itself, for any operator of one parity. b: host or device, any precision, of a's
 * components, as above. Local, both; destroy also after a failure. */
md_status md_system_plain(md_context *context, md_operator *a, const md_field *b, md_system *s);
void md_system_destroy(md_system *s);

/* The field y. */
static inline md_field *md_system_y(md_system *s) {
  return s->is_apart ? &s->apart : &s->x[0];
}
/* Assigns what is asked for, see `solution`. Local. */
md_status md_system_solution(md_context *context, const md_system *s, md_field x[MD_PARITIES],
                             md_field *midpoint);

/* b_norm and scale from b; to be called again where b or the operator has changed. MD_INPUT where a
 * source is not finite, or too large or small, but not zero, to be squared. work is overwritten.
 * Collective. */
md_status md_system_measure(md_context *context, md_system *s);
/* work = b - (..) x and residuals[r] = |work_r| / |b_r|, |work_r| for a source of zeros.
 * MD_UNREACHED where one is not finite. Collective. */
md_status md_system_true_residuals(md_context *context, md_system *s, double *residuals);
/* work[0] = c - A y from the last true residual. Local. */
void md_system_go_on(md_system *s);

/* The norm of each right-hand side over `count` fields. Collective. */
md_status md_system_norms(md_context *context, int count, const md_field *f, double *norms);

MD_C_END
