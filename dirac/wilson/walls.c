/* The fifth dimension of domain-wall quarks: its matrices and its walls. */
#include "dirac/wilson/wilson.h"
#include "lattice/fields/linear.h"

#include <math.h>

enum { SPINOR_REALS = 24 };

/* Rows of reals that go alike: of n_rhs 1 some sites of a component, else one site's right-hand
 * sides of a pair (re, im). */
typedef struct rows {
  int planes;                  /* of a slice; spins 0 and 1 are the first half */
  int slices, lanes;           /* reals in a row */
  int64_t start;               /* of the first row in its field */
  int64_t in_apart, out_apart; /* from row to row */
} rows;

/* What slice `from` gives to slice `to`, [to * slices + from], of spins 0 and 1, and 2 and 3. */
typedef double factors[2][MD_MOST_SLICES * MD_MOST_SLICES];

static void find_factors(const md_wall_matrix *m, const md_wall_way *way, int slices, factors f) {
  for (int to = 0; to < slices; to++)
    for (int from = 0; from < slices; from++)
      for (int lower = 0; lower < 2; lower++) {
        const bool transposed = !lower != way->adjoint;
        const int at = transposed ? from * slices + to : to * slices + from;
        const double entry = m ? m->m[at] : to == from;
        f[lower][to * slices + from] = entry * way->factor * (way->gamma5 && lower ? -1.0 : 1.0);
      }
}

#define DEFINE_APPLY(T)                                                                            \
  static void apply_##T(const factors f, bool add, const rows *r, const T *restrict in,            \
                        T *restrict out) {                                                         \
    for (int k = 0; k < r->planes; k++)                                                            \
      for (int s = 0; s < r->slices; s++) {                                                        \
        const double *factor = f[k >= r->planes / 2] + s * r->slices;                              \
        T *to = out + (s * r->planes + k) * r->out_apart;                                          \
        for (int l = 0; l < r->lanes && !add; l++) to[l] = 0;                                      \
        for (int j = 0; j < r->slices; j++) {                                                      \
          const T a = (T)factor[j], *from = in + (j * r->planes + k) * r->in_apart;                \
          if (factor[j] == 0.0) continue;                                                          \
          for (int l = 0; l < r->lanes; l++) to[l] += a * from[l];                                 \
        }                                                                                          \
      }                                                                                            \
  }
DEFINE_APPLY(double)
DEFINE_APPLY(float)
#undef DEFINE_APPLY

void md_wall_apply(const md_wall_matrix *m, const md_wall_way *way, const md_field *in,
                   md_field *out) {
  enum { SITES = 128 };
  if (MINIDIRAC_HAVE_CUDA && in->space == MD_DEVICE) return md_wall_apply_device(m, way, in, out);
  const bool one = in->n_rhs == 1;
  const int step = one ? SITES : 1, row = 2 * in->n_rhs, slices = in->components / SPINOR_REALS;
  factors f;
  find_factors(m, way, slices, f);
#pragma omp parallel for schedule(static)
  for (int64_t site = 0; site < in->sites; site += step) {
    const int64_t left = in->sites - site;
    const rows r = {.planes = one ? SPINOR_REALS : SPINOR_REALS / 2,
                    .slices = slices,
                    .lanes = !one           ? row
                             : left < SITES ? (int)left
                                            : SITES,
                    .start = one ? site : site * (in->components / 2) * row,
                    .in_apart = one ? in->stride : row,
                    .out_apart = one ? out->stride : row};
    if (in->precision == MD_DOUBLE)
      apply_double(f, way->add, &r, (const double *)in->data + r.start,
                   (double *)out->data + r.start);
    else
      apply_float(f, way->add, &r, (const float *)in->data + r.start, (float *)out->data + r.start);
  }
}

double md_wall_norm(const md_wall_matrix *m) {
  double row = 0.0, column = 0.0;
  for (int i = 0; i < m->slices; i++) {
    double along = 0.0, across = 0.0;
    for (int j = 0; j < m->slices; j++) {
      along += fabs(m->m[i * m->slices + j]);
      across += fabs(m->m[j * m->slices + i]);
    }
    row = fmax(row, along);
    column = fmax(column, across);
  }
  return sqrt(row * column);
}

/* unit + hop X */
static void fill(int slices, double unit, double hop, double mass, md_wall_matrix *m) {
  *m = (md_wall_matrix){.slices = slices};
  for (int s = 0; s < slices; s++) {
    m->m[s * slices + s] += unit;
    m->m[s * slices + (s + 1) % slices] += s + 1 < slices ? hop : -mass * hop;
  }
}

md_status md_wall_matrices_make(md_context *context, const md_backend_request *request, double mass,
                                md_wall_matrices *w) {
  const bool walls = md_action_get(request->action)->walls;
  const md_walls *p = &request->walls;
  const int n = md_request_slices(request);
  const double alpha = walls ? p->b5 * (4.0 - p->height) + 1.0 : 4.0 + mass;
  const double beta = walls ? p->c5 * (4.0 - p->height) - 1.0 : 0.0;
  const double r = -beta / alpha, closed = alpha * (1.0 + mass * pow(r, n));
  if (!(fabs(alpha) > 1e-6 && fabs(closed) > 1e-6 && fabs(closed) < 1e6))
    return md_fail(context, MD_INPUT,
                   "the part of M on a site must have an inverse, which mass %g ends%s", mass,
                   walls ? " with these --M5, --b5 and --c5; change one of them"
                         : "; take one above -4");
  fill(n, alpha, beta, mass, &w->a);
  fill(n, walls ? p->b5 : 1.0, walls ? p->c5 : 0.0, mass, &w->b);
  w->plain = !walls || (p->b5 == 1.0 && p->c5 == 0.0);
  w->inverse = w->k = (md_wall_matrix){.slices = n};
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      w->inverse.m[i * n + j] =
          walls ? pow(r, (j - i + n) % n) / closed * (j >= i ? 1.0 : -mass) : 1.0 / alpha;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      for (int k = 0; k < n; k++) w->k.m[i * n + j] += w->b.m[i * n + k] * w->inverse.m[k * n + j];
  return MD_OK;
}

/* Half a spinor, spins 2 and 3 where `lower`, of a slice of one field to a slice of another, of
 * which one may have right-hand sides that fill tiles. */
static void copy_half(const md_field *from, int from_slice, bool lower, md_field *to,
                      int to_slice) {
  const int half = lower ? SPINOR_REALS / 2 : 0;
  const int n_rhs = from->n_rhs < to->n_rhs ? from->n_rhs : to->n_rhs;
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < from->sites; i++)
    for (int c = half; c < half + SPINOR_REALS / 2; c++)
      for (int r = 0; r < n_rhs; r++)
        ((double *)to->data)[md_field_at(to, i, to_slice * SPINOR_REALS + c, r)] =
            ((const double *)from->data)[md_field_at(from, i, from_slice * SPINOR_REALS + c, r)];
}

void md_walls_source(const md_field *b, md_field *eta) {
  md_linear_zero(eta);
  copy_half(b, 0, false, eta, 0);
  copy_half(b, 0, true, eta, eta->components / SPINOR_REALS - 1);
}

void md_walls_quark(const md_field *psi, int lower, int upper, md_field *q) {
  copy_half(psi, lower, true, q, 0);
  copy_half(psi, upper, false, q, 0);
}
