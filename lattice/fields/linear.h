#pragma once

#include "lattice/fields/field.h"
#include "lattice/fields/rank_sums.h"

MD_C_BEGIN

/* Vector operations of the solvers on the local sites of fields of equal shape and parity; where
 * one operand is 16-bit, the others may also be MD_SINGLE, the arithmetic type (not of copy). A
 * coefficient array has one entry per right-hand side. Half-precision fields get new scales. Sums
 * are over the whole lattice, in double, one result per right-hand side (md_sum: the same for
 * every rank grid and thread count on the host); those functions are collective, meet a failure
 * that a rank has deferred since the last agreement (md_defer) or the device's, and return it on
 * all ranks; the others are local. Every function dispatches on the field's space, so that one
 * solver source serves host and device. */
void md_linear_zero(md_field *x);
/* out = in (same precision). */
void md_linear_copy(md_field *out, const md_field *in);
/* y = a x + y; x may be y itself. */
void md_linear_axpy(const double *a, const md_field *x, md_field *y);
/* The same with one a for every right-hand side. */
static inline void md_linear_add(double a, const md_field *x, md_field *y) {
  double each[MD_MAX_RHS];
  for (int r = 0; r < x->n_rhs; r++) each[r] = a;
  md_linear_axpy(each, x, y);
}
/* y = x + b y */
void md_linear_xpby(const md_field *x, const double *b, md_field *y);
/* y = a x + b y; x may be y itself, so that b = 0 scales. */
void md_linear_axpby(const double *a, const md_field *x, const double *b, md_field *y);
/* y = y + (re[0] + i im[0]) x[0] + (re[1] + i im[1]) x[1] + ... of `count` fields of one precision,
 * the first of which may be y itself. A device reads and writes y once for several. */
void md_linear_add_complex(int count, const double (*re)[MD_MAX_RHS],
                           const double (*im)[MD_MAX_RHS], const md_field *x, md_field *y);
/* Sums take a guess where the size of the result is known about, NULL elsewhere: guess[r], the same
 * on all ranks, is not below the sum of the absolute terms by more than 2^14 nor above the result
 * by more than 2^40. A device then reads the fields once less. Beyond the lower bound the result is
 * as accurate, but its last bits depend on how the lattice is cut. The host needs none. */
/* norms[r] = |x_r|^2 */
md_status md_linear_norm2(md_context *context, const md_field *x, const double *guess,
                          double *norms);
/* dots[r] = Re <x_r, y_r> */
md_status md_linear_dot(md_context *context, const md_field *x, const md_field *y,
                        const double *guess, double *dots);
/* <x[k]_r, y_r>, linear in y, for `count` fields x of one precision: the real part in
 * dots[2 k n_rhs + r], the imaginary part in dots[(2 k + 1) n_rhs + r], guesses likewise. On a
 * device the host waits once for all. */
md_status md_linear_dots(md_context *context, int count, const md_field *x, const md_field *y,
                         const double *guess, double *dots);
/* y = a x + b y, b NULL for 1, and norms[r] = |y_r|^2, on the host in one pass, on a device with a
 * guess where sites have many reals. */
md_status md_linear_axpby_norm2(md_context *context, const double *a, const md_field *x,
                                const double *b, md_field *y, const double *guess, double *norms);
/* norms[r] = |y_r|^2 of what `queue` makes of y. On a device its kernels may add to `sums`, which
 * are zero, find by[r], unless `by` is NULL, in device memory, and leave no sums (NULL) where this
 * rank has failed; on the host sums is NULL and y is read once it is there. `guess` is never NULL
 * here: without one a device would run `queue` twice. */
typedef md_status (*md_linear_queue)(void *user, const double *by, const md_partial_sums *sums);
md_status md_linear_norm2_of(md_context *context, const md_field *y, const double *by,
                             md_linear_queue queue, void *user, const double *guess, double *norms);
/* The two updates of CG that read p in one pass: x = x + a p, p = r + b p. */
void md_linear_cg_update(const double *a, const double *b, const md_field *r, md_field *p,
                         md_field *x);
/* Where x is updated for several directions at once: next = r + b p, a field of p's precision that
 * is neither; and x += a[0] p[0] + a[1] p[1] + ... of directions of one precision, at most
 * MD_LINEAR_MOST_DIRECTIONS, a[k][rhs]. A device reads and writes the last x once where sites have
 * many reals. */
enum { MD_LINEAR_MOST_DIRECTIONS = 4 };
void md_linear_cg_direction(const double *b, const md_field *r, const md_field *p, md_field *next);
void md_linear_cg_add(int count, const double (*a)[MD_MAX_RHS], const md_field *p, md_field *x);
/* The same as md_linear_cg_update for `count` pairs p[k], x[k] of one precision, `steps` times with
 * the residuals r[0], r[1], ...: x = x + a[k * steps + j] p, p = r[j] + b[k * steps + j] p. On the
 * host every residual is read once for several pairs and every pair once for all steps. */
enum { MD_LINEAR_MOST_STEPS = 4 };
void md_linear_cg_updates(int count, int steps, const double *const *a, const double *const *b,
                          const md_field *const *r, md_field *const *p, md_field *const *x);

MD_C_END
