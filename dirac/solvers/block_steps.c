#include "dirac/solvers/block_steps.h"
#include "dirac/backend.h"
#include "dirac/dense.h"
#include "lattice/fields/linear.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { OF_DIRECTIONS, OF_HOPPED }; /* slots of sums */

md_status md_block_steps_check(md_context *context, const md_operator *a) {
  const bool narrow = a->shape.precision != MD_DOUBLE && a->shape.space == MD_DEVICE;
  const int most = narrow ? MD_MAX_NARROW_BLOCK : MD_MAX_BLOCK;
  if (!a->normal && !a->factor)
    return md_fail(context, MD_INPUT, "block CG needs an operator F F^dag, got %s", a->kind->name);
  if (a->shape.n_rhs >= 2 && a->shape.n_rhs <= most) return MD_OK;
  return md_fail(context, MD_INPUT,
                 "block CG takes 2 to %d right-hand sides%s, got %d; take cg for others", most,
                 narrow ? " with an inner precision on a GPU" : "", a->shape.n_rhs);
}

md_status md_block_steps_create(md_block_steps *b) {
  const bool narrow = b->a->shape.precision != MD_DOUBLE;
  b->n = b->a->shape.n_rhs;
  b->sound = true;
  b->apart = narrow && b->a->shape.space == MD_DEVICE;
  b->least_pivot = b->apart ? 4e-7 : 1e-13;
  b->enough_pivot = b->apart ? 1e-4 : 1e-6;
  const size_t entries = (size_t)b->n * (size_t)b->n;
  const size_t matrices = MD_BLOCK_MATRICES + 2 * MD_BLOCK_KEPT;
  double complex *all = calloc(matrices * entries, sizeof *all);
  if (!all) return md_fail_memory(b->context, matrices * entries * sizeof *all, "block matrices");
  for (size_t m = 0; m < MD_BLOCK_MATRICES; m++) b->matrix[m] = all + m * entries;
  b->steps = all + MD_BLOCK_MATRICES * entries;
  b->late = b->steps + MD_BLOCK_KEPT * entries;
  b->kept[0] = b->p;
  for (int k = 1; k < MD_BLOCK_KEPT && b->apart; k++) {
    b->kept[k] = &b->others[k - 1];
    MD_TRY(md_operator_field(b->context, b->a, b->kept[k]));
  }
  MD_TRY(md_block_create(b->context, &b->a->shape, &b->block));
  return md_operator_field(b->context, b->a, &b->a_p);
}

void md_block_steps_destroy(md_block_steps *b) {
  md_block_destroy(b->block);
  md_field_destroy(&b->a_p);
  for (int k = 1; k < MD_BLOCK_KEPT; k++) md_field_destroy(&b->others[k - 1]);
  free(b->matrix[0]);
}

static void copy(const md_block_steps *b, int to, int from) {
  memcpy(b->matrix[to], b->matrix[from], (size_t)b->n * (size_t)b->n * sizeof *b->matrix[to]);
}

/* The Cholesky factor of GRAM and its inverse; the smallest pivot as md_matrix_cholesky returns it.
 */
static double factorise(md_block_steps *b, double least) {
  const double smallest =
      md_matrix_cholesky(b->n, least, b->matrix[MD_BLOCK_GRAM], b->matrix[MD_BLOCK_FACTOR]);
  if (!(smallest >= 0.0)) b->sound = false;
  md_matrix_upper_inverse(b->n, b->matrix[MD_BLOCK_FACTOR], b->matrix[MD_BLOCK_INVERSE]);
  return smallest;
}

static md_status wait(md_block_steps *b, int slot, int to) {
  return md_block_wait(b->context, b->block, slot, (double *)b->matrix[to]);
}

/* r = Q S with orthonormal Q = r PENDING, from the sums of r on their way. Where the columns are
 * so nearly dependent that the rounding of Cholesky's QR, that of their squared condition number,
 * matters, r becomes Q and the factorisation is repeated. */
static md_status orthonormalise(md_block_steps *b) {
  double complex **m = b->matrix;
  MD_TRY(wait(b, OF_HOPPED, MD_BLOCK_GRAM));
  const double smallest = factorise(b, b->least_pivot);
  copy(b, MD_BLOCK_S, MD_BLOCK_FACTOR);
  copy(b, MD_BLOCK_PENDING, MD_BLOCK_INVERSE);
  if (b->sound && smallest < b->enough_pivot) {
    const md_block_step step = {.b = (double *)m[MD_BLOCK_PENDING], .slot = OF_HOPPED};
    MD_TRY(md_block_update(b->context, b->block, b->r, &step));
    MD_TRY(wait(b, OF_HOPPED, MD_BLOCK_GRAM));
    factorise(b, b->least_pivot);
    copy(b, MD_BLOCK_OTHER, MD_BLOCK_S);
    md_matrix_product(b->n, m[MD_BLOCK_FACTOR], m[MD_BLOCK_OTHER], m[MD_BLOCK_S]);
    copy(b, MD_BLOCK_PENDING, MD_BLOCK_INVERSE);
  }
  b->rank = 0;
  for (int j = 0; j < b->n; j++) b->rank += m[MD_BLOCK_FACTOR][j * b->n + j] != 0.0;
  return MD_OK;
}

/* a_p = A p and GRAM = p^H A p = m^2 p^H p + (D p)^H D p; the host works while the device is at the
 * second stencil. */
static md_status hop_twice(md_block_steps *b) {
  md_normal *of = b->a->normal;
  const double mass2 = of->mass * of->mass;
  const md_hop_end second = {.x = b->p, .a = mass2, .b = -1.0};
  double complex **m = b->matrix;
  MD_TRY(md_dirac_hop(b->context, of->dirac, &of->odd, b->p, NULL));
  MD_TRY(md_block_gram(b->context, b->block, &of->odd, OF_HOPPED));
  MD_TRY(md_dirac_hop(b->context, of->dirac, &b->a_p, &of->odd, &second));
  MD_TRY(wait(b, OF_DIRECTIONS, MD_BLOCK_OTHER));
  MD_TRY(wait(b, OF_HOPPED, MD_BLOCK_GRAM));
  for (int e = 0; e < b->n * b->n; e++) m[MD_BLOCK_GRAM][e] += mass2 * m[MD_BLOCK_OTHER][e];
  return MD_OK;
}

/* The same of A = F F^dag: p^H A p = (F^dag p)^H F^dag p. */
static md_status apply(md_block_steps *b) {
  MD_TRY(md_operator_apply(b->context, b->a, &b->a_p, b->p, NULL));
  MD_TRY(md_block_gram(b->context, b->block, b->a->factor, OF_HOPPED));
  return wait(b, OF_HOPPED, MD_BLOCK_GRAM);
}

/* a_p = A p, ALPHA and STEP. */
static md_status find_step(md_block_steps *b) {
  double complex **m = b->matrix;
  const int n = b->n;
  MD_TRY(b->a->normal ? hop_twice(b) : apply(b));
  factorise(b, MD_MATRIX_LEAST_PIVOT);
  md_matrix_adjoint_of(n, m[MD_BLOCK_INVERSE], m[MD_BLOCK_ADJOINT]);
  md_matrix_product(n, m[MD_BLOCK_INVERSE], m[MD_BLOCK_ADJOINT], m[MD_BLOCK_ALPHA]);
  md_matrix_product(n, m[MD_BLOCK_ALPHA], m[MD_BLOCK_C], m[MD_BLOCK_STEP]);
  for (int e = 0; e < n * n; e++) m[MD_BLOCK_ALPHA][e] = -m[MD_BLOCK_ALPHA][e];
  return MD_OK;
}

/* Gives one part of x what it lacks. */
static md_status add_late(md_block_steps *b, int part) {
  const md_block_part sites = {.index = part, .count = MD_BLOCK_KEPT};
  const size_t entries = (size_t)b->n * (size_t)b->n;
  md_field p[MD_BLOCK_KEPT];
  int some = 0;
  for (int k = b->added[part]; k < b->count; k++, some++) {
    p[some] = *b->kept[k % MD_BLOCK_KEPT];
    memcpy(b->late + (size_t)some * entries, b->steps + (size_t)(k % MD_BLOCK_KEPT) * entries,
           entries * sizeof *b->late);
  }
  b->added[part] = b->count;
  return some == 0 ? MD_OK
                   : md_block_add(b->context, b->block, b->x, some, p, (double *)b->late, &sites);
}

/* This iteration's direction is to be added to x, and to one part of it at once. */
static md_status keep_direction(md_block_steps *b) {
  const size_t entries = (size_t)b->n * (size_t)b->n;
  const int k = b->count++ % MD_BLOCK_KEPT;
  memcpy(b->steps + (size_t)k * entries, b->matrix[MD_BLOCK_STEP], entries * sizeof *b->steps);
  return add_late(b, k);
}

/* The place of the next direction, which becomes the present one. */
static md_field *turn(md_block_steps *b) {
  if (b->apart) b->p = b->kept[b->count % MD_BLOCK_KEPT];
  return b->p;
}

/* Beside the stencils an iteration makes three passes: one over D p and one over r and A p here,
 * and, where x is by itself, one over a part of x and the last p while the host works on the sums
 * of r, */
md_status md_block_steps_residual(md_block_steps *b) {
  double complex **m = b->matrix;
  MD_TRY(find_step(b));
  const md_block_step residual = {.b = (double *)m[MD_BLOCK_PENDING],
                                  .x = &b->a_p,
                                  .a = (double *)m[MD_BLOCK_ALPHA],
                                  .slot = OF_HOPPED,
                                  .backwards = true};
  MD_TRY(md_block_update(b->context, b->block, b->r, &residual));
  if (b->apart) MD_TRY(keep_direction(b));
  MD_TRY(orthonormalise(b));
  copy(b, MD_BLOCK_OTHER, MD_BLOCK_C);
  md_matrix_product(b->n, m[MD_BLOCK_S], m[MD_BLOCK_OTHER], m[MD_BLOCK_C]);
  return MD_OK;
}

/* P = Q + P ADJOINT; x, unless NULL, takes STEP of the old one. */
static md_status find_direction(md_block_steps *b, md_field *x) {
  double complex **m = b->matrix;
  md_field *last = b->p;
  const md_block_step direction = {.b = (double *)m[MD_BLOCK_ADJOINT],
                                   .x = b->r,
                                   .a = (double *)m[MD_BLOCK_PENDING],
                                   .z = x,
                                   .c = (double *)m[MD_BLOCK_STEP],
                                   .to = b->apart ? turn(b) : NULL,
                                   .slot = b->a->normal ? OF_DIRECTIONS : -1};
  return md_block_update(b->context, b->block, last, &direction);
}

/* one over r, p and the other x here. */
md_status md_block_steps_direction(md_block_steps *b) {
  md_matrix_adjoint_of(b->n, b->matrix[MD_BLOCK_S], b->matrix[MD_BLOCK_ADJOINT]);
  return find_direction(b, b->apart ? NULL : b->x);
}

md_status md_block_steps_solution(md_block_steps *b) {
  if (!b->apart)
    return md_block_add(b->context, b->block, b->x, 1, b->p, (double *)b->matrix[MD_BLOCK_STEP],
                        NULL);
  for (int part = 0; part < MD_BLOCK_KEPT; part++) MD_TRY(add_late(b, part));
  return MD_OK;
}

/* C and PENDING of a new r. */
static md_status take_residual(md_block_steps *b) {
  b->sound = true;
  MD_TRY(md_block_gram(b->context, b->block, b->r, OF_HOPPED));
  MD_TRY(orthonormalise(b));
  copy(b, MD_BLOCK_C, MD_BLOCK_S);
  return MD_OK;
}

/* Sums are good to the rounding of the largest of those before them (md_block_wait), and directions
 * have norm 1. So in double, where no caller has divided r by its norms, each column of r is
 * divided by a power of two near its norm, its unit. */
static md_status take_units(md_block_steps *b, double unit[MD_MAX_BLOCK]) {
  double complex *by = b->matrix[MD_BLOCK_OTHER];
  double norm2[MD_MAX_BLOCK];
  for (int j = 0; j < b->n; j++) unit[j] = 1.0;
  if (b->r->precision != MD_DOUBLE) return MD_OK;
  MD_TRY(md_linear_norm2(b->context, b->r, NULL, norm2));
  memset(by, 0, (size_t)b->n * (size_t)b->n * sizeof *by);
  for (int j = 0; j < b->n; j++) {
    if (norm2[j] > 0.0 && isfinite(norm2[j])) unit[j] = exp2(round(0.5 * log2(norm2[j])));
    by[j * b->n + j] = 1.0 / unit[j];
  }
  const md_block_step step = {.b = (double *)by, .slot = -1};
  return md_block_update(b->context, b->block, b->r, &step);
}

md_status md_block_steps_begin(md_block_steps *b) {
  double unit[MD_MAX_BLOCK];
  for (int part = 0; part < MD_BLOCK_KEPT; part++) b->added[part] = b->count;
  MD_TRY(take_units(b, unit));
  MD_TRY(take_residual(b));
  for (int e = 0; e < b->n * b->n; e++) b->matrix[MD_BLOCK_C][e] *= unit[e % b->n];
  MD_TRY(md_agree(b->context, md_field_convert(b->context, turn(b), b->r)));
  const md_block_step step = {.b = (double *)b->matrix[MD_BLOCK_PENDING], .slot = OF_DIRECTIONS};
  return md_block_update(b->context, b->block, b->p, &step);
}

md_status md_block_steps_replaced(md_block_steps *b) {
  double complex **m = b->matrix;
  MD_TRY(take_residual(b));
  MD_TRY(md_block_cross(b->context, b->block, &b->a_p, b->r, (double *)m[MD_BLOCK_GRAM]));
  md_matrix_product(b->n, m[MD_BLOCK_GRAM], m[MD_BLOCK_PENDING], m[MD_BLOCK_OTHER]);
  md_matrix_product(b->n, m[MD_BLOCK_ALPHA], m[MD_BLOCK_OTHER], m[MD_BLOCK_ADJOINT]);
  return find_direction(b, NULL);
}

md_status md_block_steps_end(md_block_steps *b) {
  double complex **m = b->matrix;
  md_matrix_product(b->n, m[MD_BLOCK_PENDING], m[MD_BLOCK_C], m[MD_BLOCK_OTHER]);
  const md_block_step step = {.b = (double *)m[MD_BLOCK_OTHER], .slot = -1};
  MD_TRY(md_block_update(b->context, b->block, b->r, &step));
  return md_agree(b->context, md_field_convert(b->context, b->p, b->r));
}

double md_block_steps_norm2(const md_block_steps *b, int j) {
  double norm2 = 0.0;
  for (int i = 0; i < b->n; i++) {
    const double complex e = b->matrix[MD_BLOCK_C][i * b->n + j];
    norm2 += creal(e) * creal(e) + cimag(e) * cimag(e);
  }
  return norm2;
}

void md_block_steps_least_rank(const md_block_steps *b, int *least) {
  if (b->rank > 0 && (*least == 0 || b->rank < *least)) *least = b->rank;
}
