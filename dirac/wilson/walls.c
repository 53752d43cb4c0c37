/* The fifth dimension of domain-wall quarks: its matrices and its walls. */
#include "dirac/wilson/walls_host.h"
#include "lattice/fields/linear.h"

#include <math.h>

void md_wall_apply(const md_wall_matrix *m, const md_wall_way *way, const md_field *in,
                   md_field *out) {
  static const md_wall_kernels *const kernels[MD_PRECISIONS][MD_ISAS] =
      MD_EVERY_PRECISION(&md_wall_host);
  if (MINIDIRAC_HAVE_CUDA && in->space == MD_DEVICE) return md_wall_apply_device(m, way, in, out);
  kernels[in->precision][md_isa_best()]->apply(m, way, in, out);
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

/* (unit + hop X) (over_unit + over_hop X)^-1, X^n = -mass: the inverse is the sum of r^k X^k over
 * over_unit (1 + mass r^n), r = -over_hop / over_unit. False where there is no inverse. */
static bool quotient(int n, double mass, double unit, double hop, double over_unit, double over_hop,
                     md_wall_matrix *m) {
  const double r = -over_hop / over_unit, closed = over_unit * (1.0 + mass * pow(r, n));
  if (!(fabs(over_unit) > 1e-6 && fabs(closed) > 1e-6 && fabs(closed) < 1e7)) return false;
  /* Slices follow from each other as long as that makes roundings smaller, not larger. */
  *m = (md_wall_matrix){n, unit, hop, over_unit, over_hop, mass, .dense = fabs(r) > 1.0};
  for (int k = 0; k < n; k++) {
    const double before = k ? pow(r, k - 1) : -mass * pow(r, n - 1);
    const double c = (unit * pow(r, k) + hop * before) / closed;
    for (int i = 0; i < n; i++) m->m[i * n + (i + k) % n] = i + k < n ? c : -mass * c;
  }
  return true;
}

md_status md_wall_matrices_make(md_context *context, const md_backend_request *request, double mass,
                                md_wall_matrices *w) {
  const bool walls = md_action_get(request->action)->walls;
  const md_walls *p = &request->walls;
  const int n = md_request_slices(request);
  const double alpha = walls ? p->b5 * (4.0 - p->height) + 1.0 : 4.0 + mass;
  const double beta = walls ? p->c5 * (4.0 - p->height) - 1.0 : 0.0;
  const double b = walls ? p->b5 : 1.0, c = walls ? p->c5 : 0.0, WORST = 4.0;
  w->plain = b == 1.0 && c == 0.0;
  quotient(n, mass, alpha, beta, 1.0, 0.0, &w->a);
  quotient(n, mass, b, c, 1.0, 0.0, &w->b);
  if (!quotient(n, mass, 1.0, 0.0, alpha, beta, &w->a_inverse))
    return md_fail(context, MD_INPUT,
                   "the part of M on a site must have an inverse, which mass %g ends%s", mass,
                   walls ? " with these --M5, --b5 and --c5; change one of them"
                         : "; take one above -4");
  quotient(n, mass, b, c, alpha, beta, &w->k);
  /* X is nearly unitary: B changes norms by at least | |b5| - |c5| |, at most |b5| + |c5|. */
  w->of_x = WORST * fabs(fabs(b) - fabs(c)) < fabs(b) + fabs(c) ||
            !quotient(n, mass, 1.0, 0.0, b, c, &w->b_inverse);
  if (w->of_x)
    w->site = w->a;
  else
    quotient(n, mass, alpha, beta, b, c, &w->site);
  return MD_OK;
}

/* Half a spinor, spins 2 and 3 where `lower`, of a slice of one field to a slice of another, of
 * which one may have right-hand sides that fill tiles. */
static void copy_half(const md_field *from, int from_slice, bool lower, md_field *to,
                      int to_slice) {
  if (MINIDIRAC_HAVE_CUDA && from->space == MD_DEVICE)
    return md_wall_copy_half_device(from, from_slice, lower, to, to_slice);
  const int half = lower ? MD_SPINOR_REALS / 2 : 0;
  const int n_rhs = from->n_rhs < to->n_rhs ? from->n_rhs : to->n_rhs;
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < from->sites; i++)
    for (int c = half; c < half + MD_SPINOR_REALS / 2; c++)
      for (int r = 0; r < n_rhs; r++)
        ((double *)to->data)[md_field_at(to, i, to_slice * MD_SPINOR_REALS + c, r)] =
            ((const double *)from->data)[md_field_at(from, i, from_slice * MD_SPINOR_REALS + c, r)];
}

void md_walls_source(const md_field *b, md_field *eta) {
  md_linear_zero(eta);
  copy_half(b, 0, false, eta, 0);
  copy_half(b, 0, true, eta, eta->components / MD_SPINOR_REALS - 1);
}

void md_walls_quark(const md_field *psi, int lower, int upper, md_field *q) {
  copy_half(psi, lower, true, q, 0);
  copy_half(psi, upper, false, q, 0);
}
