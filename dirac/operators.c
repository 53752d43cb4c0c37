#include "dirac/operators.h"
#include "dirac/backend.h"
#include "dirac/wilson/wilson.h"
#include "lattice/fields/linear.h"

#include <math.h>
#include <stdlib.h>

/* out = a x + b out of one field */
static void end_after(const md_operator_end *end, const md_field *x, md_field *out) {
  double a[MD_MAX_RHS], b[MD_MAX_RHS];
  for (int r = 0; r < out->n_rhs; r++) {
    a[r] = end->x ? end->a : 0.0;
    b[r] = end->b;
  }
  if (end->x && end->a == 1.0)
    md_linear_xpby(x, b, out);
  else
    md_linear_axpby(end->x ? a : b, end->x ? x : out, end->x ? b : a, out);
}

md_status md_operator_apply(md_context *context, md_operator *a, md_field *out, md_field *in,
                            const md_operator_end *end) {
  const bool served = end && a->kind->ends && (!end->x || end->x == in);
  MD_TRY(a->kind->apply(context, a, out, in, served ? end : NULL));
  for (int k = 0; end && !served && k < (a->parity == MD_PARITIES ? MD_PARITIES : 1); k++)
    end_after(end, end->x ? end->x + k : NULL, &out[k]);
  return MD_OK;
}

md_status md_operator_field(md_context *context, const md_operator *a, md_field *field) {
  return md_field_create(context, a->geometry, &a->shape, a->parity, field);
}

md_operator md_operator_like(const md_operator *a, const md_operator_kind *kind) {
  md_operator like = *a;
  like.kind = kind;
  like.normal = NULL;
  like.factor = NULL;
  like.factors = NULL;
  like.even_odd = NULL;
  like.state = NULL;
  return like;
}

void md_operator_destroy(md_operator *a) {
  if (a->kind) a->kind->destroy(a);
  *a = (md_operator){0};
}

md_operator md_operator_of_dirac(const md_dirac *dirac, const md_operator_kind *kind, int parity,
                                 int hops) {
  const md_backend_request *q = &dirac->request;
  const double vector = (double)md_precision_bytes(q->precision) * dirac->shape.components;
  const double links = dirac->backend->link_bytes(q);
  const double sites = 0.5 * (double)dirac->geometry->volume * hops;
  return (md_operator){.kind = kind,
                       .geometry = dirac->geometry,
                       .shape = dirac->shape,
                       .parity = parity,
                       .precision = q->precision,
                       .flops = sites * q->n_rhs * md_request_flops(q),
                       .bytes =
                           sites * md_action_site_bytes(q->action, links, vector * q->n_rhs, true)};
}

/* The normal operator. */
static md_status apply_normal(md_context *context, md_operator *a, md_field *out, md_field *in,
                              const md_operator_end *end) {
  md_normal *n = a->normal;
  const double mass2 = n->mass * n->mass, b = end ? end->b : 1.0;
  const md_hop_end second = {.x = in, .a = b * mass2 + (end && end->x ? end->a : 0.0), .b = -b};
  MD_TRY(md_dirac_hop(context, n->dirac, &n->odd, in, NULL));
  return md_dirac_hop(context, n->dirac, out, &n->odd, &second);
}

static void destroy_normal(md_operator *a) {
  if (!a->normal) return;
  md_field_destroy(&a->normal->odd);
  free(a->normal);
}

md_status md_normal_create(md_context *context, md_dirac *dirac, double mass, md_operator *a) {
  static const md_operator_kind kind = {"normal", apply_normal, true, destroy_normal};
  if (md_action_has_spin(dirac->request.action))
    return md_wilson_normal_create(context, dirac, mass, a);
  *a = md_operator_of_dirac(dirac, &kind, MD_EVEN, 2);
  a->hermitian = a->positive = true;
  a->state = a->normal = calloc(1, sizeof *a->normal);
  if (!a->normal) return md_fail_memory(context, sizeof *a->normal, "operator");
  a->normal->dirac = dirac;
  md_normal_set_mass(a, mass);
  return md_dirac_field(context, dirac, MD_ODD, &a->normal->odd);
}

void md_normal_set_mass(md_operator *a, double mass) {
  const double norm = a->normal->dirac->norm;
  a->normal->mass = mass;
  a->least = a->modes_from = mass * mass;
  a->most = mass * mass + norm * norm;
}

bool md_normal_fuses(const md_operator *a, md_precision r) {
  return a->normal && md_dirac_fuses(a->normal->dirac, r);
}

md_status md_schur_create(md_context *context, md_dirac *dirac, double mass, md_operator *a) {
  *a = (md_operator){0};
  const md_action action = dirac->request.action;
  if (action == MD_ACTION_WILSON) return md_wilson_schur_create(context, dirac, mass, a);
  return md_fail(context, MD_INPUT, "bicgstab is for action wilson, got %s, %s; take cg",
                 md_action_name(action),
                 md_action_has_spin(dirac->request.action)
                     ? "whose eigenvalues lie all around zero"
                     : "whose operator on even sites is Hermitian");
}

/* The shifted one. */
typedef struct shifted {
  md_operator *of;
  double sigma;
} shifted;

static md_status apply_shifted(md_context *context, md_operator *a, md_field *out, md_field *in,
                               const md_operator_end *end) {
  const shifted *s = a->state;
  const double b = end ? end->b : 1.0;
  const md_operator_end own = {in, b * s->sigma + (end && end->x ? end->a : 0.0), b};
  return md_operator_apply(context, s->of, out, in, &own);
}

static void destroy_state(md_operator *a) {
  free(a->state);
}

md_status md_shifted_create(md_context *context, md_operator *of, double sigma, md_operator *a) {
  static const md_operator_kind kind = {"shifted", apply_shifted, true, destroy_state};
  *a = md_operator_like(of, &kind);
  shifted *s = a->state = malloc(sizeof *s);
  if (!s) return md_fail_memory(context, sizeof *s, "operator");
  s->of = of;
  md_shifted_set(a, sigma);
  return MD_OK;
}

void md_shifted_set(md_operator *a, double sigma) {
  shifted *s = a->state;
  s->sigma = sigma;
  a->positive = s->of->hermitian && s->of->least + sigma > 0.0;
  a->least = s->of->least + sigma;
  a->most = s->of->most + sigma;
  a->modes_from = s->of->modes_from + sigma;
}

/* M on both parities. */
typedef struct full {
  md_dirac *dirac;
  double mass;
} full;

static md_status apply_full(md_context *context, md_operator *a, md_field *out, md_field *in,
                            const md_operator_end *end) {
  const full *f = a->state;
  (void)end;
  return md_dirac_m(context, f->dirac, f->mass, 1.0, out, in);
}

md_status md_full_create(md_context *context, md_dirac *dirac, double mass, md_operator *a) {
  static const md_operator_kind kind = {"full", apply_full, false, destroy_state};
  if (md_action_has_spin(dirac->request.action))
    return md_wilson_full_create(context, dirac, mass, a);
  *a = md_operator_of_dirac(dirac, &kind, MD_PARITIES, 2);
  full *f = a->state = malloc(sizeof *f);
  if (!f) return md_fail_memory(context, sizeof *f, "operator");
  f->dirac = dirac;
  md_full_set_mass(a, mass);
  return MD_OK;
}

void md_full_set_mass(md_operator *a, double mass) {
  full *f = a->state;
  f->mass = a->least = mass; /* D is anti-Hermitian */
  a->most = hypot(mass, f->dirac->norm);
}

md_dirac *md_full_dirac(const md_operator *a) {
  return ((const full *)a->state)->dirac;
}
