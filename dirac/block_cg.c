#include "dirac/block_cg.h"
#include "dirac/small_matrix.h"
#include "lattice/block.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Matrices of one solve, n x n each. */
enum { GRAM, FACTOR, INVERSE, ADJOINT, ALPHA, STEP, C, S, MATRICES };

typedef struct block_cg {
  md_context *context;
  md_dirac *dirac;
  const md_solver_request *request;
  md_cg_state *state;
  md_field a_p, work;
  double complex *matrix[MATRICES];
  int n;
} block_cg;

md_status md_block_cg_check(md_context *context, const md_dirac *dirac) {
  if (dirac->shape.space != MD_HOST || dirac->shape.precision != MD_DOUBLE)
    return md_fail(context, MD_INPUT,
                   "block CG works with fields in double on the host, got %s of backend %s",
                   md_precision_name(dirac->shape.precision), dirac->backend->name);
  if (dirac->shape.n_rhs < 2 || dirac->shape.n_rhs > MD_MAX_BLOCK)
    return md_fail(context, MD_INPUT, "block CG takes 2 to %d right-hand sides, got %d",
                   MD_MAX_BLOCK, dirac->shape.n_rhs);
  return MD_OK;
}

static md_status create(block_cg *b) {
  const size_t entries = (size_t)b->n * (size_t)b->n;
  double complex *all = calloc(MATRICES * entries, sizeof *all);
  if (!all) return md_fail_memory(b->context, MATRICES * entries * sizeof *all, "block matrices");
  for (size_t m = 0; m < MATRICES; m++) b->matrix[m] = all + m * entries;
  MD_TRY(md_dirac_field(b->context, b->dirac, MD_EVEN, &b->a_p));
  return md_dirac_field(b->context, b->dirac, MD_ODD, &b->work);
}

static void destroy(block_cg *b) {
  md_field_destroy(&b->a_p);
  md_field_destroy(&b->work);
  free(b->matrix[0]);
}

/* gram = x^H y and its Cholesky factor; *smallest as md_matrix_cholesky returns it. */
static md_status factorise(block_cg *b, const md_field *x, const md_field *y, double *smallest) {
  MD_TRY(md_block_gram(b->context, x, y, (double *)b->matrix[GRAM]));
  *smallest = md_matrix_cholesky(b->n, b->matrix[GRAM], b->matrix[FACTOR]);
  if (*smallest >= 0.0) return MD_OK;
  return md_fail(b->context, MD_UNREACHED,
                 "sums of the block solver must be finite, which failed in iteration %d; check "
                 "the links for NaN",
                 b->state->iteration + 1);
}

/* r = Q s with orthonormal Q, which r becomes: Cholesky's QR, and again where the columns are so
 * nearly dependent that its rounding, which is that of their squared condition number, matters. */
static md_status orthonormalise(block_cg *b, double complex *s) {
  const size_t bytes = (size_t)b->n * (size_t)b->n * sizeof *s;
  double smallest = 0.0;
  for (int pass = 0; pass < 2 && smallest < 1e-3; pass++) {
    MD_TRY(factorise(b, &b->state->r, &b->state->r, &smallest));
    md_matrix_upper_inverse(b->n, b->matrix[FACTOR], b->matrix[INVERSE]);
    md_block_combine(NULL, NULL, (double *)b->matrix[INVERSE], &b->state->r);
    if (pass == 0)
      memcpy(s, b->matrix[FACTOR], bytes);
    else {
      memcpy(b->matrix[STEP], s, bytes);
      md_matrix_product(b->n, b->matrix[FACTOR], b->matrix[STEP], s);
    }
  }
  return MD_OK;
}

/* |r_j| is the norm of column j of C. Writes the history; true when all are done. */
static bool record(block_cg *b) {
  md_cg_state *s = b->state;
  bool all = true;
  double worst = 0.0;
  for (int j = 0; j < b->n; j++) {
    const double scale = b->request->mass * s->b_norm[j];
    s->r_norm2[j] = 0.0;
    for (int i = 0; i < b->n; i++) {
      const double complex e = b->matrix[C][i * b->n + j];
      s->r_norm2[j] += creal(e) * creal(e) + cimag(e) * cimag(e);
    }
    if (scale > 0.0) worst = fmax(worst, sqrt(s->r_norm2[j]) / scale);
    const bool done = sqrt(s->r_norm2[j]) <= b->request->tolerance * scale;
    if (!done) s->rhs_iterations[j] = s->iteration;
    all = all && done;
  }
  s->history[s->iteration] = worst;
  return all;
}

/* alpha = (p^H A p)^-1; x += p alpha C; Q S = Q - A p alpha; C = S C; p = Q + p S^H. */
static md_status iterate_once(block_cg *b) {
  md_cg_state *s = b->state;
  double complex **m = b->matrix;
  const int n = b->n;
  double smallest;
  MD_TRY(md_dirac_mdag_m(b->context, b->dirac, b->request->mass, &b->a_p, &s->p, &b->work));
  MD_TRY(factorise(b, &s->p, &b->a_p, &smallest));
  md_matrix_upper_inverse(n, m[FACTOR], m[INVERSE]);
  md_matrix_adjoint_of(n, m[INVERSE], m[ADJOINT]);
  md_matrix_product(n, m[INVERSE], m[ADJOINT], m[ALPHA]);
  md_matrix_product(n, m[ALPHA], m[C], m[STEP]);
  md_block_combine((double *)m[STEP], &s->p, NULL, &s->x);
  for (int e = 0; e < n * n; e++) m[ALPHA][e] = -m[ALPHA][e];
  md_block_combine((double *)m[ALPHA], &b->a_p, NULL, &s->r);
  MD_TRY(orthonormalise(b, m[S]));
  memcpy(m[STEP], m[C], (size_t)n * (size_t)n * sizeof *m[C]);
  md_matrix_product(n, m[S], m[STEP], m[C]);
  md_matrix_adjoint_of(n, m[S], m[ADJOINT]);
  md_block_combine(NULL, &s->r, (double *)m[ADJOINT], &s->p);
  s->iteration++;
  return MD_OK;
}

static md_status iterate(block_cg *b) {
  md_cg_state *s = b->state;
  MD_TRY(orthonormalise(b, b->matrix[C]));
  MD_TRY(md_agree(b->context, md_field_convert(b->context, &s->p, &s->r)));
  bool all = record(b);
  while (!all && s->iteration < s->most) {
    MD_TRY(iterate_once(b));
    all = record(b);
    if (b->request->observe) MD_TRY(b->request->observe(b->request->user, s));
  }
  return MD_OK;
}

md_status md_block_cg_iterate(md_context *context, md_dirac *dirac,
                              const md_solver_request *request, md_cg_state *state) {
  block_cg b = {.context = context,
                .dirac = dirac,
                .request = request,
                .state = state,
                .n = dirac->shape.n_rhs};
  MD_TRY(md_agree(context, md_block_cg_check(context, dirac)));
  md_status status = md_agree(context, create(&b));
  if (status == MD_OK) status = iterate(&b);
  destroy(&b);
  return status;
}
