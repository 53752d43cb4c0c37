#include "dirac/precondition/precondition.h"
#include "lattice/fields/linear.h"
#include "lattice/fields/panel.h"

#include <stdlib.h>

typedef struct lifted {
  const md_modes *modes;
  double least;
  double *c; /* [modes][n_rhs] of (re, im) */
} lifted;

static md_status apply(md_context *context, md_operator *p, md_field *out, md_field *in,
                       const md_operator_end *end) {
  const lifted *l = p->state;
  const md_modes *m = l->modes;
  const double to = m->values[m->count - 1] + l->least;
  (void)end;
  MD_TRY(md_panel_dots(context, m->count, m->vectors, in, l->c));
  for (int i = 0; i < m->count * in->n_rhs; i++) {
    const double more = to / (m->values[i / in->n_rhs] + l->least) - 1.0;
    l->c[2 * i] *= more;
    l->c[2 * i + 1] *= more;
  }
  md_linear_copy(out, in);
  return md_agree(context, md_panel_add(context, m->count, m->vectors, l->c, out));
}

static void destroy(md_operator *p) {
  lifted *l = p->state;
  if (l) free(l->c);
  free(l);
}

md_status md_modes_preconditioner_create(md_context *context, const md_operator *of,
                                         const md_modes *modes, md_operator *p) {
  static const md_operator_kind kind = {"modes", apply, false, destroy};
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
  if (l) *l = (lifted){modes, of->least, malloc(bytes)};
  return l && l->c ? MD_OK : md_fail_memory(context, bytes, "projection");
}
