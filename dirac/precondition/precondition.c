#include "dirac/precondition/precondition.h"
#include "lattice/fields/linear.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[MD_PRECONDITIONS] = {"none", "chebyshev", "modes"};

const char *md_precondition_name(md_precondition kind) {
  return names[kind];
}

md_precondition md_precondition_of(const char *name) {
  int kind = 0;
  while (kind + 1 < MD_PRECONDITIONS && strcmp(names[kind], name) != 0) kind++;
  return (md_precondition)kind;
}

typedef struct narrowed {
  md_operator *narrow;
  md_field in, out;
} narrowed;

static md_status apply(md_context *context, md_operator *p, md_field *out, md_field *in,
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

static void destroy(md_operator *p) {
  narrowed *n = p->state;
  if (!n) return;
  md_field_destroy(&n->in);
  md_field_destroy(&n->out);
  free(n);
}

md_status md_narrowed_create(md_context *context, const md_operator *wide, md_operator *narrow,
                             md_operator *p) {
  static const md_operator_kind kind = {"narrowed", apply, false, destroy};
  *p = md_operator_like(wide, &kind);
  p->flops = narrow->flops;
  p->bytes = narrow->bytes;
  narrowed *n = p->state = calloc(1, sizeof *n);
  if (!n) return md_fail_memory(context, sizeof *n, "preconditioner");
  n->narrow = narrow;
  MD_TRY(md_operator_field(context, narrow, &n->in));
  return md_operator_field(context, narrow, &n->out);
}
