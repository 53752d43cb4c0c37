#include "dirac/precondition/precondition.h"
#include "lattice/fields/linear.h"
#include "lattice/fields/panel.h"

#include <math.h>
#include <stdlib.h>

/* The Chebyshev iteration (G. Golub and R. Varga, Numer. Math. 3 (1961) 147; Y. Saad, Iterative
 * Methods for Sparse Linear Systems, 2nd ed., algorithm 12.1) as a polynomial of A. */
typedef struct chebyshev {
  md_operator *of;
  int degree;
  double low, high;
  md_field step, rest, at; /* the last change of z; r - A z; z, which may be read by A */
} chebyshev;

static md_status apply_chebyshev(md_context *context, md_operator *p, md_field *out, md_field *in,
                                 const md_operator_end *end) {
  chebyshev *c = p->state;
  const double theta = 0.5 * (c->high + c->low), delta = 0.5 * (c->high - c->low);
  const double sigma = theta / delta;
  double a[MD_MAX_RHS], b[MD_MAX_RHS] = {0.0}, rho = 1.0 / sigma;
  (void)end;
  for (int r = 0; r < in->n_rhs; r++) a[r] = 1.0 / theta;
  md_linear_axpby(a, in, b, &c->step);
  md_linear_copy(&c->at, &c->step);
  for (int k = 1; k <= c->degree; k++) {
    const double next = 1.0 / (2.0 * sigma - rho);
    const md_operator_end less = {in, 1.0, -1.0};
    MD_TRY(md_operator_apply(context, c->of, &c->rest, &c->at, &less));
    for (int r = 0; r < in->n_rhs; r++) {
      a[r] = 2.0 * next / delta;
      b[r] = next * rho;
    }
    md_linear_axpby(a, &c->rest, b, &c->step);
    md_linear_add(1.0, &c->step, &c->at);
    rho = next;
  }
  md_linear_copy(out, &c->at);
  return MD_OK;
}

static void destroy_chebyshev(md_operator *p) {
  chebyshev *c = p->state;
  if (!c) return;
  MD_FIELDS_DESTROY(&c->step, &c->rest, &c->at);
  free(c);
}

md_status md_chebyshev_create(md_context *context, md_operator *of, int degree, md_operator *p) {
  static const md_operator_kind kind = {"chebyshev", apply_chebyshev, false, destroy_chebyshev};
  *p = md_operator_like(of, &kind);
  if (!of->hermitian || !of->positive || degree < 1)
    return md_fail(context, MD_INPUT,
                   "a Chebyshev preconditioner needs a Hermitian and positive operator and a "
                   "degree of 1 at least, got operator %s and %d",
                   of->kind->name, degree);
  chebyshev *c = p->state = calloc(1, sizeof *c);
  if (!c) return md_fail_memory(context, sizeof *c, "polynomial");
  const double reach = 4.0 / ((degree + 1.0) * (degree + 1.0));
  *c = (chebyshev){.of = of,
                   .degree = degree,
                   .low = fmin(fmax(of->least, reach * of->most), 0.5 * of->most),
                   .high = of->most};
  p->flops *= degree;
  p->bytes *= degree;
  MD_TRY(md_operator_field(context, of, &c->step));
  MD_TRY(md_operator_field(context, of, &c->rest));
  return md_operator_field(context, of, &c->at);
}

/* The projection on modes. */
typedef struct lifted {
  const md_modes *modes;
  double from;
  double *c; /* [modes][n_rhs] of (re, im) */
} lifted;

static md_status apply_lifted(md_context *context, md_operator *p, md_field *out, md_field *in,
                              const md_operator_end *end) {
  const lifted *l = p->state;
  const md_modes *m = l->modes;
  const double to = m->values[m->count - 1] + l->from;
  (void)end;
  MD_TRY(md_panel_dots(context, m->count, m->vectors, in, l->c));
  for (int i = 0; i < m->count * in->n_rhs; i++) {
    const double more = to / (m->values[i / in->n_rhs] + l->from) - 1.0;
    l->c[2 * i] *= more;
    l->c[2 * i + 1] *= more;
  }
  md_linear_copy(out, in);
  return md_agree(context, md_panel_add(context, m->count, m->vectors, l->c, out));
}

static void destroy_lifted(md_operator *p) {
  lifted *l = p->state;
  if (l) free(l->c);
  free(l);
}

md_status md_modes_preconditioner_create(md_context *context, const md_operator *of,
                                         const md_modes *modes, md_operator *p) {
  static const md_operator_kind kind = {"modes", apply_lifted, false, destroy_lifted};
  *p = md_operator_like(of, &kind);
  if (!modes || modes->count == 0 || of->shape.precision != MD_DOUBLE || !of->positive ||
      modes->vectors->space != of->shape.space)
    return md_fail(context, MD_INPUT,
                   "a preconditioner of modes needs modes and a positive operator on fields in "
                   "double in their space, got %d modes and %s in %s",
                   modes ? modes->count : 0, of->kind->name,
                   md_precision_name(of->shape.precision));
  const size_t bytes = 2 * (size_t)modes->count * (size_t)of->shape.n_rhs * sizeof(double);
  lifted *l = p->state = calloc(1, sizeof *l);
  if (l) *l = (lifted){modes, of->modes_from, malloc(bytes)};
  return l && l->c ? MD_OK : md_fail_memory(context, bytes, "projection");
}

/* One in a narrower precision. */
typedef struct narrowed {
  md_operator *narrow;
  md_field in, out;
} narrowed;

static md_status apply_narrowed(md_context *context, md_operator *p, md_field *out, md_field *in,
                                const md_operator_end *end) {
  narrowed *n = p->state;
  double norm[MD_MAX_RHS], inverse[MD_MAX_RHS];
  (void)end;
  MD_TRY(md_linear_norm2(context, in, NULL, norm));
  for (int r = 0; r < in->n_rhs; r++) {
    norm[r] = sqrt(norm[r]);
    inverse[r] = norm[r] > 0.0 ? 1.0 / norm[r] : 0.0;
  }
  MD_TRY(md_agree(context, md_field_convert_times(context, &n->in, inverse, in)));
  MD_TRY(md_operator_apply(context, n->narrow, &n->out, &n->in, NULL));
  return md_agree(context, md_field_convert_times(context, out, norm, &n->out));
}

static void destroy_narrowed(md_operator *p) {
  narrowed *n = p->state;
  if (!n) return;
  MD_FIELDS_DESTROY(&n->in, &n->out);
  free(n);
}

md_status md_narrowed_create(md_context *context, const md_operator *wide, md_operator *narrow,
                             md_operator *p) {
  static const md_operator_kind kind = {"narrowed", apply_narrowed, false, destroy_narrowed};
  *p = md_operator_like(wide, &kind);
  p->flops = narrow->flops;
  p->bytes = narrow->bytes;
  narrowed *n = p->state = calloc(1, sizeof *n);
  if (!n) return md_fail_memory(context, sizeof *n, "preconditioner");
  n->narrow = narrow;
  MD_TRY(md_operator_field(context, narrow, &n->in));
  return md_operator_field(context, narrow, &n->out);
}
