#include "lattice/fields/linear.h"
#include "lattice/fields/spaces.h"

const md_linear_table *md_linear_host(md_isa isa, md_precision precision) {
  static const md_linear_table *const tables[MD_PRECISIONS][MD_ISAS] =
      MD_EVERY_PRECISION(&md_linear_host);
  return tables[precision][isa];
}

/* By space and precision. */
static const md_linear_table *table_of(const md_field *f) {
  if (MINIDIRAC_HAVE_CUDA && f->space == MD_DEVICE) return &md_linear_device[f->precision];
  return md_linear_host(md_isa_best(), f->precision);
}

/* The table of the operand that is stored in the fewest bits. */
static const md_linear_table *narrower(const md_field *x, const md_field *y) {
  const size_t bytes_x = md_precision_bytes(x->precision);
  return table_of(bytes_x < md_precision_bytes(y->precision) ? x : y);
}

void md_linear_zero(md_field *x) {
  table_of(x)->copy(x, NULL);
}

void md_linear_copy(md_field *out, const md_field *in) {
  table_of(in)->copy(out, in);
}

void md_linear_axpby(const double *a, const md_field *x, const double *b, md_field *y) {
  narrower(x, y)->axpby(a, x, b, y);
}

void md_linear_axpy(const double *a, const md_field *x, md_field *y) {
  md_linear_axpby(a, x, NULL, y);
}

void md_linear_xpby(const md_field *x, const double *b, md_field *y) {
  md_linear_axpby(NULL, x, b, y);
}

void md_linear_add_complex(int count, const double (*re)[MD_MAX_RHS],
                           const double (*im)[MD_MAX_RHS], const md_field *x, md_field *y) {
  if (count > 0) narrower(x, y)->add_complex(count, re, im, x, y);
}

md_status md_linear_dot(md_context *context, const md_field *x, const md_field *y,
                        const double *guess, double *dots) {
  return narrower(x, y)->dot(context, x, y, guess, dots);
}

md_status md_linear_norm2(md_context *context, const md_field *x, const double *guess,
                          double *norms) {
  return md_linear_dot(context, x, x, guess, norms);
}

md_status md_linear_dots(md_context *context, int count, const md_field *x, const md_field *y,
                         const double *guess, double *dots) {
  return count > 0 ? narrower(x, y)->dots(context, count, x, y, guess, dots) : MD_OK;
}

md_status md_linear_axpby_norm2(md_context *context, const double *a, const md_field *x,
                                const double *b, md_field *y, const double *guess, double *norms) {
  return narrower(x, y)->axpby_norm2(context, a, x, b, y, guess, norms);
}

md_status md_linear_norm2_of(md_context *context, const md_field *y, const double *by,
                             md_linear_queue queue, void *user, const double *guess,
                             double *norms) {
  if (MINIDIRAC_HAVE_CUDA && y->space == MD_DEVICE)
    return md_device_norm2_of(context, y, by, queue, user, guess, norms);
  MD_TRY(queue(user, by, NULL));
  return md_linear_norm2(context, y, guess, norms);
}

void md_linear_cg_update(const double *a, const double *b, const md_field *r, md_field *p,
                         md_field *x) {
  md_linear_cg_updates(1, 1, &a, &b, &r, &p, &x);
}

void md_linear_cg_direction(const double *b, const md_field *r, const md_field *p, md_field *next) {
  const md_linear_table *t = narrower(r, p);
  if (t->cg_direction && t->cg_direction(b, r, p, next)) return;
  md_linear_copy(next, p);
  md_linear_xpby(r, b, next);
}

void md_linear_cg_add(int count, const double (*a)[MD_MAX_RHS], const md_field *p, md_field *x) {
  const md_linear_table *t = narrower(p, x);
  if (count > 0 && t->cg_add && t->cg_add(count, a, p, x)) return;
  for (int k = 0; k < count; k++) md_linear_axpy(a[k], &p[k], x);
}

void md_linear_cg_updates(int count, int steps, const double *const *a, const double *const *b,
                          const md_field *const *r, md_field *const *p, md_field *const *x) {
  if (count > 0 && steps > 0) table_of(p[0])->cg_updates(count, steps, a, b, r, p, x);
}
