#include "dirac/eigen/basis.h"
#include "base/device.h"
#include "base/memory.h"
#include "base/memory_need.h"
#include "dirac/backend.h"
#include "dirac/dense.h"
#include "lattice/fields/linear.h"
#include "lattice/fields/panel.h"
#include "lattice/fields/source.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The filter. */
md_eigen_filter md_eigen_filter_for(double low, double high) {
  enum { STEEP = 2, MOST = 1000 };
  if (!(low < 0.25 * high)) return (md_eigen_filter){1, 0.0, high};
  low = fmax(low, high * STEEP * STEEP / MOST / MOST);
  return (md_eigen_filter){(int)ceil(STEEP * sqrt(high / low)), low, high};
}

/* T_degree(x), for any x. */
static double chebyshev(int degree, double x) {
  if (fabs(x) <= 1.0) return cos(degree * acos(x));
  const double size = cosh(degree * acosh(fabs(x)));
  return x < 0.0 && degree % 2 ? -size : size;
}

double md_eigen_filter_value(const md_eigen_filter *filter, double lambda) {
  const double centre = 0.5 * (filter->high + filter->low);
  const double half = 0.5 * (filter->high - filter->low);
  return chebyshev(filter->degree, (lambda - centre) / half) /
         chebyshev(filter->degree, -centre / half);
}

md_status md_eigen_scratch_create(md_context *context, const md_operator *a,
                                  md_eigen_scratch *scratch) {
  *scratch = (md_eigen_scratch){0};
  MD_TRY(md_operator_field(context, a, &scratch->before));
  MD_TRY(md_operator_field(context, a, &scratch->now));
  if (!md_normal_fuses(a, MD_DOUBLE)) return md_operator_field(context, a, &scratch->next);
  const size_t bytes = (size_t)a->shape.n_rhs * sizeof(double);
  double ones[MD_MAX_RHS];
  void *memory;
  for (int r = 0; r < a->shape.n_rhs; r++) ones[r] = 1.0;
  MD_TRY(md_device_allocate(context, bytes, "the filter", &memory));
  scratch->ones = memory;
  return md_device_upload(context, scratch->ones, ones, bytes);
}

void md_eigen_scratch_destroy(md_eigen_scratch *scratch) {
  MD_FIELDS_DESTROY(&scratch->before, &scratch->now, &scratch->next);
  md_device_free(scratch->ones);
  scratch->ones = NULL;
}

/* out = factor (A - centre) in; added to out where `ones` is not NULL */
static md_status shifted(md_context *context, md_operator *a, double factor, double centre,
                         const double *ones, md_field *out, md_field *in) {
  const md_operator_end end = {.x = in, .a = -factor * centre, .b = factor};
  if (!ones) return md_operator_apply(context, a, out, in, &end);
  const md_hop_end second = {.x = in, .a = end.a, .b = -factor};
  const md_hop_step step = {.by = ones};
  md_normal *of = a->normal;
  MD_TRY(md_dirac_hop(context, of->dirac, &of->odd, in, NULL));
  return md_dirac_hop_step(context, of->dirac, out, &of->odd, &second, &step);
}

/* T_{k+1} = 2 x T_k - T_{k-1} with signs s_k, s_{k+1} = -s_{k-1}: then s_{k-1} T_{k-1} only has
 * something added to become s_{k+1} T_{k+1}, which an operator that fuses does on its way. */
md_status md_eigen_filter_apply(md_context *context, md_operator *a, const md_eigen_filter *filter,
                                md_eigen_scratch *s, md_field *out, md_field *in) {
  const double centre = 0.5 * (filter->high + filter->low);
  const double half = 0.5 * (filter->high - filter->low),
               last = filter->degree % 4 < 2 ? 1.0 : -1.0;
  double scale[MD_MAX_RHS], none[MD_MAX_RHS] = {0.0};
  for (int r = 0; r < in->n_rhs; r++) scale[r] = last / chebyshev(filter->degree, -centre / half);
  md_linear_copy(&s->before, in);
  MD_TRY(shifted(context, a, 1.0 / half, centre, NULL, &s->now, in));
  for (int k = 1; k < filter->degree; k++) {
    const double factor = (k % 2 ? -2.0 : 2.0) / half;
    md_field *to = s->ones ? &s->before : &s->next;
    MD_TRY(shifted(context, a, factor, centre, s->ones, to, &s->now));
    if (!s->ones) md_linear_add(1.0, &s->next, &s->before);
    md_field_swap(&s->before, &s->now);
  }
  md_linear_axpby(scale, &s->now, none, out);
  return MD_OK;
}

/* The basis. */
/* What is left of a vector of f(A), whose norm is 1, when nothing new is in it. */
#define NOTHING_NEW 1e-13

/* Vectors of the basis have one right-hand side, whatever the operator takes. */
static md_status create_vectors(const md_eigen_basis *b, int count, md_field *v) {
  md_field_shape shape = b->a->shape;
  shape.n_rhs = 1;
  for (int i = 0; i < count; i++)
    MD_TRY(md_field_create(b->context, b->a->geometry, &shape, MD_EVEN, &v[i]));
  return MD_OK;
}

/* Of zeros. */
static md_status allocate_matrix(const md_eigen_basis *b, size_t bytes, void **matrix) {
  MD_TRY(md_allocate(b->context, bytes, "the basis of modes", matrix));
  if (*matrix) memset(*matrix, 0, bytes);
  return MD_OK;
}

static md_status create(md_eigen_basis *b) {
  const size_t most = (size_t)b->most, block = (size_t)b->block;
  b->v = calloc(most + block, sizeof *b->v);
  b->turned = calloc((size_t)b->kept, sizeof *b->turned);
  b->values = calloc(most, sizeof *b->values);
  if (!b->v || !b->turned || !b->values)
    return md_fail_memory(b->context, (most + block) * sizeof *b->v, "the basis of modes");
  MD_TRY(allocate_matrix(b, most * most * sizeof *b->h, (void **)&b->h));
  MD_TRY(allocate_matrix(b, most * most * sizeof *b->rotation, (void **)&b->rotation));
  MD_TRY(allocate_matrix(b, 2 * (most + block) * block * sizeof *b->dots, (void **)&b->dots));
  MD_TRY(create_vectors(b, b->most + b->block, b->v));
  MD_TRY(create_vectors(b, b->kept, b->turned));
  if (b->block > 1) MD_TRY(md_operator_field(b->context, b->a, &b->columns));
  return md_eigen_scratch_create(b->context, b->a, &b->scratch);
}

md_status md_eigen_basis_create(md_context *context, md_operator *a, int most, int kept,
                                uint64_t seed, md_eigen_basis *basis) {
  *basis = (md_eigen_basis){.context = context,
                            .a = a,
                            .block = a->shape.n_rhs,
                            .most = most,
                            .kept = kept,
                            .unknowns = md_eigen_unknowns(a->geometry, a->shape.components),
                            .seed = seed};
  return md_agree(context, create(basis));
}

void md_eigen_basis_destroy(md_eigen_basis *b) {
  for (int i = 0; b->v && i < b->most + b->block; i++) md_field_destroy(&b->v[i]);
  for (int i = 0; b->turned && i < b->kept; i++) md_field_destroy(&b->turned[i]);
  md_field_destroy(&b->columns);
  md_eigen_scratch_destroy(&b->scratch);
  MD_FREE(b->v, b->turned, b->h, b->rotation, b->values, b->dots);
  *b = (md_eigen_basis){0};
}

static md_status require_finite(md_context *context, double value) {
  if (isfinite(value)) return MD_OK;
  return md_fail(context, MD_UNREACHED,
                 "sums of the search for modes must be finite, got %g; check the links for NaN",
                 value);
}

/* y -= sum over i < known of x_i <x_i, y> for every right-hand side of y, twice ("twice is enough":
 * Parlett, The Symmetric Eigenvalue Problem, 6.9; classical Gram-Schmidt, all inner products in one
 * pass over the vectors and all subtractions in another); the coefficients of the first `wanted`
 * are added to column[i * most + r] where it is not NULL. */
static md_status orthogonalise(md_eigen_basis *b, int known, const md_field *x, md_field *y,
                               int wanted, double complex *column) {
  const int n = y->n_rhs;
  for (int pass = 0; pass < 2 && known > 0; pass++) {
    MD_TRY(md_panel_dots(b->context, known, x, y, b->dots));
    for (int i = 0; i < known * n; i++) {
      double *dot = b->dots + 2 * i;
      if (column && i % n < wanted) column[i / n * b->most + i % n] += dot[0] + I * dot[1];
      dot[0] = -dot[0], dot[1] = -dot[1];
    }
    MD_TRY(md_defer(b->context, md_panel_add(b->context, known, x, b->dots, y)));
  }
  return MD_OK;
}

static md_status normalise(md_eigen_basis *b, int i, double *norm) {
  double norm2, none = 0.0;
  MD_TRY(md_linear_norm2(b->context, &b->v[i], NULL, &norm2));
  MD_TRY(require_finite(b->context, norm2));
  *norm = sqrt(norm2);
  if (!(*norm > 0.0)) return MD_OK;
  const double scale = 1.0 / *norm;
  md_linear_axpby(&scale, &b->v[i], &none, &b->v[i]);
  return MD_OK;
}

static md_status fill(md_eigen_basis *b, md_field *out) {
  const md_field_shape host = {MD_DOUBLE, MD_HOST, out->components, 1, true, false};
  md_field noise[MD_PARITIES] = {{0}, {0}};
  md_status status = MD_OK;
  for (int p = 0; p < MD_PARITIES && status == MD_OK; p++)
    status = md_field_create(b->context, b->a->geometry, &host, p, &noise[p]);
  if (status == MD_OK && !md_counts(b->context)) {
    md_source_gaussian(noise, b->seed + b->drawn);
    status = md_field_convert(b->context, out, &noise[MD_EVEN]);
  }
  for (int p = 0; p < MD_PARITIES; p++) md_field_destroy(&noise[p]);
  b->drawn++;
  return md_agree(b->context, status);
}

/* v[i] becomes a random unit vector, orthogonal to those before it. */
static md_status draw(md_eigen_basis *b, int i) {
  double norm;
  MD_TRY(fill(b, &b->v[i]));
  if (md_counts(b->context)) return MD_OK;
  for (int again = 0; again < 2; again++) { /* where little is left, what is left is cleaned */
    MD_TRY(orthogonalise(b, i, b->v, &b->v[i], 1, NULL));
    MD_TRY(normalise(b, i, &norm));
  }
  return MD_OK;
}

/* A block, or what the space has left beside `known` vectors. */
static int room_for(const md_eigen_basis *b, int wanted, int known) {
  const int64_t left = b->unknowns - known;
  return (int)(left < wanted ? left : wanted);
}

md_status md_eigen_basis_draw(md_eigen_basis *b, int wanted) {
  b->waiting = room_for(b, wanted < b->block ? wanted : b->block, b->count);
  for (int r = 0; r < b->waiting; r++) MD_TRY(draw(b, b->count + r));
  return MD_OK;
}

md_status md_eigen_basis_take(md_eigen_basis *b, const md_field *vector) {
  double norm;
  b->waiting = 0;
  MD_TRY(md_agree(b->context, md_field_convert(b->context, &b->v[b->count], vector)));
  MD_TRY(normalise(b, b->count, &norm));
  MD_TRY(orthogonalise(b, b->count, b->v, &b->v[b->count], 1, NULL));
  MD_TRY(normalise(b, b->count, &norm));
  if (norm > 1e-3) b->count++;
  return MD_OK;
}

/* Vectors that wait become orthonormal among themselves; *least: the smallest share of a norm that
 * this has left of one. Those of which nothing is left are drawn anew. */
static md_status straighten(md_eigen_basis *b, double *least) {
  *least = 1.0;
  for (int r = 0; r < b->waiting; r++) {
    const int i = b->count + r;
    double before = 1.0, norm;
    if (r > 0) MD_TRY(normalise(b, i, &before));
    if (before > NOTHING_NEW) MD_TRY(orthogonalise(b, r, b->v + b->count, &b->v[i], 1, NULL));
    MD_TRY(normalise(b, i, &norm));
    if (before > NOTHING_NEW && norm > NOTHING_NEW)
      *least = r > 0 ? fmin(*least, norm) : *least;
    else
      MD_TRY(draw(b, i));
  }
  return MD_OK;
}

static md_status join(md_eigen_basis *b, int count, const md_field *v) {
  return md_defer(b->context, md_columns_join(b->context, count, v, &b->columns));
}
static md_status split(md_eigen_basis *b, int count, md_field *v) {
  return md_defer(b->context, md_columns_split(b->context, &b->columns, count, v));
}

/* The waiting block is filtered and loses its part in the vectors up to itself; what is left stands
 * behind it. */
static md_status filter(md_eigen_basis *b, int known) {
  const int first = b->count;
  md_field *out = b->block > 1 ? &b->columns : &b->v[known],
           *in = b->block > 1 ? out : &b->v[first];
  if (b->block > 1) MD_TRY(join(b, b->waiting, &b->v[first]));
  MD_TRY(md_eigen_filter_apply(b->context, b->a, &b->filter, &b->scratch, out, in));
  for (int i = 0; i < known; i++)
    for (int r = 0; r < b->waiting; r++) b->h[i * b->most + first + r] = 0.0;
  MD_TRY(orthogonalise(b, known, b->v, out, b->waiting, b->h + first));
  return b->block > 1 ? split(b, b->waiting, &b->v[known]) : MD_OK;
}

md_status md_eigen_basis_step(md_eigen_basis *b) {
  const double poor = 0.1; /* share of a norm whose rounding the others need not notice */
  const int known = b->count + b->waiting;
  double least;
  MD_TRY(filter(b, known));
  b->applied += b->waiting;
  b->waiting = room_for(b, b->waiting, known);
  b->count = known;
  MD_TRY(straighten(b, &least));
  if (least > poor) return MD_OK;
  MD_TRY(join(b, b->waiting, &b->v[known]));
  MD_TRY(orthogonalise(b, known, b->v, &b->columns, 0, NULL));
  MD_TRY(split(b, b->waiting, &b->v[known]));
  return straighten(b, &least);
}

md_status md_eigen_basis_solve(md_eigen_basis *b) {
  const int n = b->count;
  /* Dense rows in place, of -f(A), so that the largest comes first. */
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      const int row = i < j ? i : j, column = i < j ? j : i;
      const double complex e = b->h[row * b->most + column];
      b->rotation[i * n + j] = i < j ? -e : i > j ? -conj(e) : -creal(e);
    }
  memcpy(b->h, b->rotation, (size_t)n * (size_t)n * sizeof *b->h);
  const md_status status =
      md_hermitian_eigen(n, b->h, b->values, b->rotation)
          ? MD_OK
          : md_fail(b->context, MD_UNREACHED,
                    "the projected operator must be finite, which failed after %d filters; check "
                    "the links for NaN",
                    b->applied);
  MD_TRY(md_agree(b->context, status)); /* memory that one rank lacks looks like that too */
  for (int i = 0; i < n; i++) b->values[i] = -b->values[i];
  return MD_OK;
}

void md_eigen_basis_settle(md_eigen_basis *b) {
  memset(b->h, 0, (size_t)b->most * (size_t)b->most * sizeof *b->h);
  for (int i = 0; i < b->count; i++) b->h[i * b->most + i] = b->values[i];
}

md_status md_eigen_basis_restart(md_eigen_basis *b, int keep) {
  const int n = b->count;
  MD_TRY(md_agree(b->context, md_panel_rotate(b->context, n, b->v, keep,
                                              (const double *)b->rotation, b->turned)));
  for (int i = 0; i < keep; i++) md_field_swap(&b->v[i], &b->turned[i]);
  for (int r = 0; keep < n && r < b->waiting; r++) md_field_swap(&b->v[keep + r], &b->v[n + r]);
  b->count = keep;
  md_eigen_basis_settle(b);
  return MD_OK;
}

md_status md_eigen_basis_gather(md_eigen_basis *b, int keep) {
  const int left = b->count - keep, n = left < b->block ? left : b->block;
  const double one = 1.0;
  md_field *v = b->v + keep;
  double norm;
  for (int i = n; i < left; i++) md_linear_axpy(&one, &v[i], &v[i % n]);
  for (int r = 0; r < n; r++) MD_TRY(normalise(b, keep + r, &norm));
  b->count = keep;
  b->waiting = room_for(b, b->block, keep);
  for (int r = n; r < b->waiting; r++) MD_TRY(draw(b, keep + r));
  return MD_OK;
}

/* The same of `count` vectors from v on, a block at most. */
static md_status pairs_of(md_eigen_basis *b, int count, md_field *v, double *values,
                          double *residuals) {
  md_field *in = b->block > 1 ? &b->columns : v, *image = &b->scratch.now;
  double norm2[MD_MAX_RHS], dot[MD_MAX_RHS], minus[MD_MAX_RHS] = {0.0}, rest2[MD_MAX_RHS];
  if (b->block > 1) MD_TRY(join(b, count, v));
  MD_TRY(md_operator_apply(b->context, b->a, image, in, NULL));
  MD_TRY(md_linear_norm2(b->context, in, NULL, norm2));
  MD_TRY(md_linear_dot(b->context, in, image, NULL, dot));
  for (int r = 0; r < count; r++) {
    values[r] = dot[r] / norm2[r];
    minus[r] = -values[r];
  }
  md_linear_axpy(minus, in, image);
  MD_TRY(md_linear_norm2(b->context, image, NULL, rest2));
  for (int r = 0; r < count; r++) {
    residuals[r] = sqrt(rest2[r] / norm2[r]);
    MD_TRY(require_finite(b->context, residuals[r]));
  }
  return MD_OK;
}

md_status md_eigen_basis_pairs(md_eigen_basis *b, int count, double *values, double *residuals) {
  for (int i = 0; i < count; i += b->block) {
    const int left = count - i;
    MD_TRY(pairs_of(b, left < b->block ? left : b->block, &b->v[i], values + i, residuals + i));
  }
  return MD_OK;
}
