#include "dirac/precondition/precondition.h"
#include "lattice/fields/linear.h"

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

static md_status apply(md_context *context, md_operator *p, md_field *out, md_field *in,
                       const md_operator_end *end) {
  chebyshev *c = p->state;
  const double theta = 0.5 * (c->high + c->low), delta = 0.5 * (c->high - c->low);
  const double sigma = theta / delta;
  double one[MD_MAX_RHS], a[MD_MAX_RHS], b[MD_MAX_RHS], rho = 1.0 / sigma;
  (void)end;
  for (int r = 0; r < in->n_rhs; r++) {
    one[r] = 1.0;
    a[r] = 1.0 / theta;
    b[r] = 0.0;
  }
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
    md_linear_axpy(one, &c->step, &c->at);
    rho = next;
  }
  md_linear_copy(out, &c->at);
  return MD_OK;
}

static void destroy(md_operator *p) {
  chebyshev *c = p->state;
  if (!c) return;
  md_field_destroy(&c->step);
  md_field_destroy(&c->rest);
  md_field_destroy(&c->at);
  free(c);
}

md_status md_chebyshev_create(md_context *context, md_operator *of, int degree, md_operator *p) {
  static const md_operator_kind kind = {"chebyshev", apply, false, destroy};
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
