/* The fifth dimension of domain-wall quarks: its matrices and its walls. */
#include "dirac/wilson/walls_host.h"
#include "lattice/fields/linear.h"

#include <math.h>

void md_wall_apply_to(const md_field *in, int count, const md_wall_output *to) {
  static const md_wall_kernels *const kernels[MD_PRECISIONS][MD_ISAS] =
      MD_EVERY_PRECISION(&md_wall_host);
  if (MINIDIRAC_HAVE_CUDA && in->space == MD_DEVICE) {
    for (int k = 0; k < count; k++) md_wall_apply_device(to[k].m, &to[k].way, in, to[k].out);
    return;
  }
  kernels[in->precision][md_isa_best()]->apply(in, count, to);
}

void md_wall_apply(const md_wall_matrix *m, const md_wall_way *way, const md_field *in,
                   md_field *out) {
  const md_wall_output to = {m, *way, out};
  md_wall_apply_to(in, 1, &to);
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
  *m = (md_wall_matrix){.slices = slices, .unit = unit, .hop = hop, .over_unit = 1.0, .mass = mass};
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
  /* Slices follow from each other as long as that makes roundings smaller, not larger. */
  w->inverse = w->k = (md_wall_matrix){.slices = n,
                                       .unit = 1.0,
                                       .over_unit = alpha,
                                       .over_hop = beta,
                                       .mass = mass,
                                       .dense = fabs(r) > 1.0};
  w->k.unit = w->b.unit;
  w->k.hop = w->b.hop;
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
