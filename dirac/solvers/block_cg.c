#include "dirac/solvers/block_cg.h"
#include "base/interrupt.h"
#include "dirac/solvers/small_matrix.h"
#include "lattice/fields/block.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Below this smallest pivot a Cholesky QR is repeated: its columns are orthonormal to the rounding
 * over it, and what is missing there costs the search directions as much of their conjugacy. */
#define ENOUGH_PIVOT 1e-6

/* Matrices of one solve, n x n each. */
enum { GRAM, OTHER, FACTOR, INVERSE, ADJOINT, ALPHA, STEP, C, S, PENDING, MATRICES };
enum { OF_DIRECTIONS, OF_HOPPED }; /* slots of sums */

typedef struct block_cg {
  md_context *context;
  md_dirac *dirac;
  const md_solver_request *request;
  md_cg_state *state;
  md_block *block;
  md_field a_p, work;
  double complex *matrix[MATRICES];
  int n;
} block_cg;

md_status md_block_cg_check(md_context *context, const md_dirac *dirac) {
  if (dirac->shape.precision != MD_DOUBLE)
    return md_fail(context, MD_INPUT, "block CG works with fields in double, got %s of backend %s",
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
  MD_TRY(md_block_create(b->context, b->dirac->geometry, &b->dirac->shape, &b->block));
  MD_TRY(md_dirac_field(b->context, b->dirac, MD_EVEN, &b->a_p));
  return md_dirac_field(b->context, b->dirac, MD_ODD, &b->work);
}

static void destroy(block_cg *b) {
  md_block_destroy(b->block);
  md_field_destroy(&b->a_p);
  md_field_destroy(&b->work);
  free(b->matrix[0]);
}

static void copy(const block_cg *b, int to, int from) {
  memcpy(b->matrix[to], b->matrix[from], (size_t)b->n * (size_t)b->n * sizeof *b->matrix[to]);
}

/* The Cholesky factor of GRAM and its inverse; *smallest as md_matrix_cholesky returns it. */
static md_status factorise(block_cg *b, double *smallest) {
  *smallest = md_matrix_cholesky(b->n, b->matrix[GRAM], b->matrix[FACTOR]);
  if (!(*smallest >= 0.0))
    return md_fail(b->context, MD_UNREACHED,
                   "sums of the block solver must be finite, which failed in iteration %d; check "
                   "the links for NaN",
                   b->state->iteration + 1);
  md_matrix_upper_inverse(b->n, b->matrix[FACTOR], b->matrix[INVERSE]);
  return MD_OK;
}

/* r = Q S with orthonormal Q = r PENDING, from the sums of r on their way: the product is left to
 * the passes that read r. Where the columns are so nearly dependent that the rounding of Cholesky's
 * QR, that of their squared condition number, matters, r becomes Q and the factorisation is
 * repeated. */
static md_status orthonormalise(block_cg *b) {
  double smallest;
  MD_TRY(md_block_wait(b->context, b->block, OF_HOPPED, (double *)b->matrix[GRAM]));
  MD_TRY(factorise(b, &smallest));
  copy(b, S, FACTOR);
  copy(b, PENDING, INVERSE);
  if (smallest >= ENOUGH_PIVOT) return MD_OK;
  const md_block_step step = {.b = (double *)b->matrix[PENDING], .slot = OF_HOPPED};
  MD_TRY(md_block_update(b->context, b->block, &b->state->r, &step));
  MD_TRY(md_block_wait(b->context, b->block, OF_HOPPED, (double *)b->matrix[GRAM]));
  MD_TRY(factorise(b, &smallest));
  copy(b, OTHER, S);
  md_matrix_product(b->n, b->matrix[FACTOR], b->matrix[OTHER], b->matrix[S]);
  copy(b, PENDING, INVERSE);
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

/* a_p = A p, ALPHA = -(p^H A p)^-1 and STEP = (p^H A p)^-1 C, where p^H A p = m^2 p^H p + (D p)^H
 * D p; the host works while the device is at the second stencil. */
static md_status find_step(block_cg *b) {
  const double mass = b->request->mass;
  const md_epilogue second = {.x = &b->state->p, .a = mass * mass, .b = -1.0};
  double complex **m = b->matrix;
  const int n = b->n;
  double smallest;
  MD_TRY(md_dirac_hop(b->context, b->dirac, &b->work, &b->state->p, NULL));
  MD_TRY(md_block_gram(b->context, b->block, &b->work, OF_HOPPED));
  MD_TRY(md_dirac_hop(b->context, b->dirac, &b->a_p, &b->work, &second));
  MD_TRY(md_block_wait(b->context, b->block, OF_DIRECTIONS, (double *)m[OTHER]));
  MD_TRY(md_block_wait(b->context, b->block, OF_HOPPED, (double *)m[GRAM]));
  for (int e = 0; e < n * n; e++) m[GRAM][e] += mass * mass * m[OTHER][e];
  MD_TRY(factorise(b, &smallest));
  md_matrix_adjoint_of(n, m[INVERSE], m[ADJOINT]);
  md_matrix_product(n, m[INVERSE], m[ADJOINT], m[ALPHA]);
  md_matrix_product(n, m[ALPHA], m[C], m[STEP]);
  for (int e = 0; e < n * n; e++) m[ALPHA][e] = -m[ALPHA][e];
  return MD_OK;
}

/* alpha = (p^H A p)^-1; Q S = Q - A p alpha; x += p alpha C; p = Q + p S^H; C = S C. Beside the
 * stencils: one pass over D p, one over r and A p, one over r, p and x. */
static md_status iterate_once(block_cg *b) {
  md_cg_state *s = b->state;
  double complex **m = b->matrix;
  MD_TRY(find_step(b));
  const md_block_step residual = {.b = (double *)m[PENDING],
                                  .x = &b->a_p,
                                  .a = (double *)m[ALPHA],
                                  .slot = OF_HOPPED,
                                  .backwards = true};
  MD_TRY(md_block_update(b->context, b->block, &s->r, &residual));
  MD_TRY(orthonormalise(b));
  md_matrix_adjoint_of(b->n, m[S], m[ADJOINT]);
  const md_block_step direction = {.b = (double *)m[ADJOINT],
                                   .x = &s->r,
                                   .a = (double *)m[PENDING],
                                   .z = &s->x,
                                   .c = (double *)m[STEP],
                                   .slot = OF_DIRECTIONS};
  MD_TRY(md_block_update(b->context, b->block, &s->p, &direction));
  copy(b, OTHER, C);
  md_matrix_product(b->n, m[S], m[OTHER], m[C]);
  s->iteration++;
  return MD_OK;
}

/* r and p hold the first residual: r = Q C, p = Q. */
static md_status start(block_cg *b) {
  MD_TRY(md_block_gram(b->context, b->block, &b->state->r, OF_HOPPED));
  MD_TRY(orthonormalise(b));
  copy(b, C, S);
  const md_block_step step = {.b = (double *)b->matrix[PENDING], .slot = OF_DIRECTIONS};
  MD_TRY(md_agree(b->context, md_field_convert(b->context, &b->state->p, &b->state->r)));
  return md_block_update(b->context, b->block, &b->state->p, &step);
}

static md_status iterate(block_cg *b) {
  md_cg_state *s = b->state;
  MD_TRY(start(b));
  bool all = record(b);
  while (!all && s->iteration < s->most) {
    MD_TRY(iterate_once(b));
    all = record(b);
    if (b->request->observe) MD_TRY(b->request->observe(b->request->user, s));
    if ((s->interrupted = md_interrupted(b->context))) break;
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
