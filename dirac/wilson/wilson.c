/* M and S S^dag of quarks with four spins, and how M x = b is solved. */
#include "dirac/wilson/wilson.h"
#include "base/memory_need.h"
#include "dirac/backend.h"
#include "lattice/fields/linear.h"

#include <math.h>
#include <stdlib.h>

/* The state of all operators. */
typedef struct wilson {
  md_dirac *dirac;
  md_wall_matrices of;
  md_field work[MD_PARITIES], odd; /* what an apply works with */
  md_field found;                  /* of the normal operator: S^dag in */
} wilson;

static void destroy(md_operator *a) {
  wilson *w = a->state;
  if (!w) return;
  for (int p = 0; p < MD_PARITIES; p++) md_field_destroy(&w->work[p]);
  MD_FIELDS_DESTROY(&w->odd, &w->found);
  free(w);
}

static const md_wall_way as_it_is = {.factor = 1.0};
static const md_wall_way transposed = {.adjoint = true, .factor = 1.0};
static const md_wall_way by_gamma5 = {.gamma5 = true, .factor = 1.0};

static const md_wall_way *way_of(bool adjoint) {
  return adjoint ? &transposed : &as_it_is;
}

/* B in, in `work` where B is not 1. */
static md_field *weighed(const wilson *w, md_field *in, md_field *work) {
  if (w->of.plain) return in;
  md_wall_apply(&w->of.b, &as_it_is, in, work);
  return work;
}

/* Whether S, which is of x, begins with B. */
static bool weighs(const wilson *w) {
  return w->of.of_x && !w->of.plain;
}

/* H in, or H^dag in by a backend that turns, of which H^dag = gamma_5 H gamma_5 needs no gamma_5.
 */
static md_status hop(md_context *context, wilson *w, bool adjoint, md_field *out, md_field *in,
                     const md_hop_end *end) {
  const md_hop_step step = {.adjoint = adjoint && w->dirac->backend->turns};
  return md_dirac_hop_step(context, w->dirac, out, in, end, &step);
}

/* site = K^-1 in, or A in, or its adjoint. What is to be hopped from is returned: `in`, or in
 * `work` B in, or for H^dag by a backend that does not turn gamma_5 in. */
static md_field *begin(const wilson *w, bool adjoint, md_field *in, md_field *work,
                       md_field *site) {
  const bool apart = adjoint ? !w->dirac->backend->turns : weighs(w);
  md_wall_apply(&w->of.site, way_of(adjoint), in, site);
  if (!apart) return in;
  md_wall_apply(adjoint ? NULL : &w->of.b, adjoint ? &by_gamma5 : &as_it_is, in, work);
  return work;
}

/* out = A in - 1/2 H B in, or A^dag in - 1/2 B^dag gamma_5 H gamma_5 in, of one parity of out. */
static md_status apply_to(md_context *context, wilson *w, bool adjoint, md_field *out,
                          md_field in[MD_PARITIES]) {
  const int p = out->parity;
  const bool turns = w->dirac->backend->turns;
  const md_wall_way after = {.adjoint = true, .gamma5 = !turns, .add = true, .factor = -0.5};
  const md_hop_end less = {.x = out, .a = 1.0, .b = -0.5};
  md_field *from = &w->work[1 - p];
  md_wall_apply(&w->of.a, way_of(adjoint), &in[p], out);
  if (!adjoint) return md_dirac_hop(context, w->dirac, out, weighed(w, &in[1 - p], from), &less);
  if (turns)
    from = &in[1 - p];
  else
    md_wall_apply(NULL, &by_gamma5, &in[1 - p], from);
  MD_TRY(hop(context, w, true, &w->work[p], from, NULL));
  md_wall_apply(&w->of.b, &after, &w->work[p], out);
  return MD_OK;
}

md_status md_wilson_apply(md_context *context, md_operator *full, bool adjoint,
                          md_field out[MD_PARITIES], md_field in[MD_PARITIES]) {
  for (int p = 0; p < MD_PARITIES; p++)
    MD_TRY(apply_to(context, full->state, adjoint, &out[p], in));
  return MD_OK;
}

static md_status apply_full(md_context *context, md_operator *a, md_field *out, md_field *in,
                            const md_operator_end *end) {
  (void)end;
  return md_wilson_apply(context, a, false, out, in);
}

/* The same of one slice, where A and K are numbers and B is 1: hops alone, and gamma_5. */
static md_status schur_of_slice(md_context *context, wilson *w, bool adjoint, md_field *out,
                                md_field *in) {
  const bool apart = adjoint && !w->dirac->backend->turns;
  md_field *even = &w->work[MD_EVEN], *odd = &w->work[MD_ODD], *from = apart ? even : in;
  md_field *to = apart ? even : out;
  const md_hop_end end = {.x = from, .a = w->of.a.m[0], .b = -0.25 * w->of.k.m[0]};
  if (apart) md_wall_apply(NULL, &by_gamma5, in, even);
  MD_TRY(hop(context, w, adjoint, odd, from, NULL));
  MD_TRY(hop(context, w, adjoint, to, odd, &end));
  if (apart) md_wall_apply(NULL, &by_gamma5, even, out);
  return MD_OK;
}

/* Whether it is done by hops that multiply by the matrices. */
static bool multiplies(const wilson *w) {
  const md_backend *backend = w->dirac->backend;
  return w->of.a.slices > 1 && !w->of.k.dense && !w->of.site.dense && backend->multiplies &&
         backend->multiplies(w->dirac->state);
}

/* By a backend that multiplies: S = K^-1 - 1/4 H (K H), S^dag = K^-dag - 1/4 H^dag (K^dag H^dag);
 * of x: S = A - 1/4 H (K H) B, S^dag = A^dag - 1/4 B^dag H^dag (K^dag H^dag). Unless NULL, and not
 * of x: `by` and `norm2` of the last hop's step. */
static md_status schur_by_hops(md_context *context, wilson *w, bool adjoint, md_field *out,
                               md_field *in, const double *by, const md_partial_sums *norm2) {
  const md_hop_end end = {.x = in, .a = 1.0, .b = -0.25};
  const md_hop_step first = {.adjoint = adjoint, .matrix = &w->of.k};
  const md_hop_step second = {.by = by, .norm2 = norm2, .adjoint = adjoint, .matrix = &w->of.site};
  const md_wall_way less = {.adjoint = true, .add = true, .factor = -0.25};
  md_field *even = &w->work[MD_EVEN], *odd = &w->work[MD_ODD], *from = in;
  if (!adjoint && weighs(w)) from = weighed(w, in, even);
  MD_TRY(md_dirac_hop_step(context, w->dirac, odd, from, NULL, &first));
  if (!adjoint || !weighs(w)) return md_dirac_hop_step(context, w->dirac, out, odd, &end, &second);
  MD_TRY(hop(context, w, true, even, odd, NULL));
  md_wall_apply(&w->of.site, &transposed, in, out);
  md_wall_apply(&w->of.b, &less, even, out);
  return MD_OK;
}

/* S = K^-1 - 1/4 H K H;  S^dag = K^-dag - 1/4 gamma_5 H K^dag H gamma_5; or those of x. */
md_status md_wilson_schur(md_context *context, md_operator *a, bool adjoint, md_field *out,
                          md_field *in) {
  wilson *w = a->state;
  const md_backend *backend = w->dirac->backend;
  const bool turns = backend->turns, last = adjoint && weighs(w);
  const md_wall_way after = {.adjoint = true, .gamma5 = !turns, .add = true, .factor = -0.25};
  const md_hop_end less = {.x = out, .a = 1.0, .b = -0.25};
  md_field *even = &w->work[MD_EVEN], *odd = &w->work[MD_ODD];
  if (w->of.a.slices == 1) return schur_of_slice(context, w, adjoint, out, in);
  if (multiplies(w)) return schur_by_hops(context, w, adjoint, out, in, NULL, NULL);
  MD_TRY(hop(context, w, adjoint, odd, begin(w, adjoint, in, even, out), NULL));
  md_wall_apply(&w->of.k, way_of(adjoint), odd, &w->odd);
  if (!last && (!adjoint || turns)) return hop(context, w, adjoint, out, &w->odd, &less);
  MD_TRY(hop(context, w, true, even, &w->odd, NULL));
  md_wall_apply(last ? &w->of.b : NULL, &after, even, out);
  return MD_OK;
}

static md_status apply_normal(md_context *context, md_operator *a, md_field *out, md_field *in,
                              const md_operator_end *end) {
  wilson *w = a->state;
  (void)end;
  MD_TRY(md_wilson_schur(context, a, true, &w->found, in));
  return md_wilson_schur(context, a, false, out, &w->found);
}

/* A half of S S^dag, queued with what a step asks of it. */
typedef struct half {
  md_context *context;
  wilson *of;
  bool adjoint;
  md_field *out, *in;
} half;
static md_status queue_half(void *user, const double *by, const md_partial_sums *sums) {
  const half *h = user;
  return schur_by_hops(h->context, h->of, h->adjoint, h->out, h->in, by, sums);
}
static md_status first_half(md_context *context, md_operator *a, md_field *p, const double *guess,
                            double *norms) {
  wilson *w = a->state;
  half h = {context, w, true, &w->found, p};
  return md_linear_norm2_of(context, &w->found, NULL, queue_half, &h, guess, norms);
}
static md_status second_half(md_context *context, md_operator *a, const double *by, md_field *r,
                             const double *guess, double *norms) {
  wilson *w = a->state;
  half h = {context, w, false, r, &w->found};
  return md_linear_norm2_of(context, r, by, queue_half, &h, guess, norms);
}

/* About the smallest singular value of S, and as much of M as paces anything: for free quarks twice
 * the mass, and of walls the mass of the pole; never so small that it promises nothing, as masses
 * of Wilson quarks count from a critical one that is not known. */
static double least_of(const md_backend_request *q, double mass) {
  const md_walls *p = &q->walls;
  if (!md_action_get(q->action)->walls) return fmax(2.0 * mass, 0.05);
  return fmax(fabs(p->height * (2.0 - (p->b5 - p->c5) * p->height) * mass), 0.01);
}

/* A bound on S. */
static double most_of(const wilson *w) {
  const double norm = w->dirac->norm;
  return md_wall_norm(&w->of.site) +
         0.25 * norm * norm * md_wall_norm(&w->of.k) * (weighs(w) ? md_wall_norm(&w->of.b) : 1.0);
}

/* All operators but for their bounds, `hops` stencils in an apply. */
static md_status create(md_context *context, md_dirac *dirac, double mass,
                        const md_operator_kind *kind, int parity, int hops, md_operator *a) {
  *a = md_operator_of_dirac(dirac, kind, parity, hops);
  wilson *w = a->state = calloc(1, sizeof *w);
  if (!w) return md_fail_memory(context, sizeof *w, "operator");
  w->dirac = dirac;
  MD_TRY(md_wall_matrices_make(context, &dirac->request, mass, &w->of));
  for (int p = 0; p < MD_PARITIES; p++) MD_TRY(md_dirac_field(context, dirac, p, &w->work[p]));
  return md_dirac_field(context, dirac, MD_ODD, &w->odd);
}

md_status md_wilson_normal_create(md_context *context, md_dirac *dirac, double mass,
                                  md_operator *a) {
  static const md_operator_kind kind = {"normal with spin", apply_normal, false, destroy};
  static const md_operator_factors halves = {first_half, second_half};
  MD_TRY(create(context, dirac, mass, &kind, MD_EVEN, 4, a));
  wilson *w = a->state;
  const double least = least_of(&dirac->request, mass), most = most_of(w);
  a->hermitian = a->positive = true;
  a->factor = &w->found;
  if (multiplies(w) && !weighs(w) && md_dirac_fuses(dirac, dirac->request.precision))
    a->factors = &halves;
  a->least = least * least;
  a->most = most * most;
  return md_dirac_field(context, dirac, MD_EVEN, &w->found);
}

static md_status apply_schur(md_context *context, md_operator *a, md_field *out, md_field *in,
                             const md_operator_end *end) {
  (void)end;
  return md_wilson_schur(context, a, false, out, in);
}

md_status md_wilson_schur_create(md_context *context, md_dirac *dirac, double mass,
                                 md_operator *a) {
  static const md_operator_kind kind = {"S", apply_schur, false, destroy};
  MD_TRY(create(context, dirac, mass, &kind, MD_EVEN, 2, a));
  a->least = least_of(&dirac->request, mass);
  a->most = most_of(a->state);
  return MD_OK;
}

/* How M x = b is solved. With y = u that is s->apart; with y = x_e s->apart is room. In between the
 * system's `work` is free. */

static wilson *state_of(const md_system *s) {
  return s->a->state;
}

/* work[0] = c */
static md_status source(md_context *context, md_system *s) {
  wilson *w = state_of(s);
  const md_hop_end end = {.x = &s->b[MD_EVEN], .a = 1.0, .b = 0.5};
  md_wall_apply(&w->of.k, &as_it_is, &s->b[MD_ODD], &w->odd);
  return md_dirac_hop(context, w->dirac, &s->work[MD_EVEN], &w->odd, &end);
}

/* x_e = B^-1 S^dag u, or S^dag u, and what it begins from */
static md_status take_even(md_context *context, md_system *s) {
  const md_wall_matrices *of = &state_of(s)->of;
  md_field *x = &s->x[MD_EVEN], *z = of->plain || of->of_x ? x : &s->work[MD_EVEN];
  if (!s->is_apart) return MD_OK;
  MD_TRY(md_wilson_schur(context, s->a, true, z, &s->apart));
  if (z != x) md_wall_apply(&of->b_inverse, &as_it_is, z, x);
  if (s->base.data) md_linear_add(1.0, &s->base, x);
  return MD_OK;
}

/* work[0] = c - S B x_e, or c - S x_e; x_e is overwritten where it is not y. */
static md_status residual(md_context *context, md_system *s) {
  const md_wall_matrices *of = &state_of(s)->of;
  md_field *x = &s->x[MD_EVEN], *z = &s->work[MD_EVEN], *product = s->is_apart ? x : &s->apart;
  MD_TRY(take_even(context, s));
  md_wall_apply(of->plain || of->of_x ? NULL : &of->b, &as_it_is, x, z);
  MD_TRY(md_wilson_schur(context, s->a, false, product, z));
  MD_TRY(source(context, s));
  md_linear_add(-1.0, product, &s->work[MD_EVEN]);
  return MD_OK;
}

static md_status reconstruct(md_context *context, md_system *s) {
  wilson *w = state_of(s);
  const md_hop_end end = {.x = &s->b[MD_ODD], .a = 1.0, .b = 0.5};
  MD_TRY(take_even(context, s));
  MD_TRY(md_dirac_hop(context, w->dirac, &w->odd, weighed(w, &s->x[MD_EVEN], &w->work[MD_EVEN]),
                      &end));
  md_wall_apply(&w->of.a_inverse, &as_it_is, &w->odd, &s->x[MD_ODD]);
  return MD_OK;
}

/* Beside f, a field of all slices, one of quarks that lies where it does; not made on the host. */
static md_status quark_beside(md_context *context, const md_field *f, md_field *quark) {
  const md_field_shape shape = {MD_DOUBLE, f->space, MD_SPINOR_REALS, f->n_rhs, true, true};
  *quark = (md_field){0};
  if (f->space == MD_HOST) return MD_OK;
  return md_field_create(context, f->geometry, &shape, f->parity, quark);
}

/* f = eta of b */
static md_status put_on_walls(md_context *context, const md_field *b, md_field *f) {
  md_field quark;
  md_status status = quark_beside(context, f, &quark);
  if (status == MD_OK && quark.data) status = md_field_resize(context, &quark, b);
  if (status == MD_OK && !md_counts(context)) md_walls_source(quark.data ? &quark : b, f);
  md_field_destroy(&quark);
  return md_agree(context, status);
}

/* x = q of two slices of psi */
static md_status take_quark(md_context *context, const md_field *psi, md_field *quark, int lower,
                            int upper, md_field *x) {
  if (md_counts(context)) return MD_OK;
  md_walls_quark(psi, lower, upper, quark->data ? quark : x);
  return quark->data ? md_field_resize(context, x, quark) : MD_OK;
}

/* eta = D_- of the walls, D_- = 1 - c5 D_W = 1 - c5 (4 - M5) + c5/2 H. */
static md_status source_on_walls(md_context *context, md_system *s, const md_field b[MD_PARITIES]) {
  const md_dirac *dirac = state_of(s)->dirac;
  const md_walls *p = &dirac->request.walls;
  for (int k = 0; k < MD_PARITIES; k++) MD_TRY(put_on_walls(context, &b[k], &s->b[k]));
  if (p->c5 == 0.0 || md_counts(context)) return MD_OK;
  for (int k = 0; k < MD_PARITIES; k++) {
    const md_hop_end end = {.x = &s->b[k], .a = 1.0 - p->c5 * (4.0 - p->height), .b = 0.5 * p->c5};
    MD_TRY(md_dirac_hop(context, state_of(s)->dirac, &s->work[k], &s->b[1 - k], &end));
  }
  for (int k = 0; k < MD_PARITIES; k++) md_field_swap(&s->b[k], &s->work[k]);
  return MD_OK;
}

static md_status solution_on_walls(md_context *context, const md_system *s, md_field x[MD_PARITIES],
                                   md_field *midpoint) {
  const int slices = md_request_slices(&state_of(s)->dirac->request);
  for (int k = 0; k < MD_PARITIES; k++) {
    const md_field *psi = &s->x[k];
    md_field quark;
    md_status status = quark_beside(context, psi, &quark);
    if (status == MD_OK) status = take_quark(context, psi, &quark, 0, slices - 1, &x[k]);
    if (status == MD_OK && midpoint)
      status = take_quark(context, psi, &quark, slices / 2, slices / 2 - 1, &midpoint[k]);
    md_field_destroy(&quark);
    MD_TRY(status);
  }
  return MD_OK;
}

static md_status system_of(md_context *context, md_operator *full, bool direct,
                           const md_field b[MD_PARITIES], md_system *s) {
  static const md_system_kind kind = {source, residual, reconstruct, NULL};
  const bool walls = md_action_get(((const wilson *)full->state)->dirac->request.action)->walls;
  MD_TRY(md_system_create(context, &kind, full, MD_PARITIES, b, !walls, s));
  s->is_apart = !direct;
  MD_TRY(md_field_create(context, full->geometry, &full->shape, MD_EVEN, &s->apart));
  if (!walls) return MD_OK;
  s->put = source_on_walls;
  s->solution = solution_on_walls;
  return MD_OK;
}

md_status md_wilson_full_create(md_context *context, md_dirac *dirac, double mass, md_operator *a) {
  static const md_operator_kind kind = {"full with spin", apply_full, false, destroy};
  MD_TRY(create(context, dirac, mass, &kind, MD_PARITIES, 2, a));
  const wilson *w = a->state;
  a->even_odd = system_of;
  a->least = least_of(&dirac->request, mass);
  a->most = md_wall_norm(&w->of.a) + 0.5 * dirac->norm * md_wall_norm(&w->of.b);
  return MD_OK;
}
