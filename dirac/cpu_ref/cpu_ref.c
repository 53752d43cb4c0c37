/* The oracle: the definition of D, and of H, written down, one site, link field and direction after
 * another, in double, links fetched bare and phases computed on the spot, on purpose without
 * dirac/links/, which it judges, nor dirac/wilson/. Nobody optimises this file. */
#include "base/memory.h"
#include "dirac/backend.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

typedef struct cpu_ref {
  const md_action_data *action;
  md_gauge field[MD_MOST_LINK_FIELDS]; /* own copies, bare */
  bool antiperiodic;
  md_twist twist;
} cpu_ref;

static void unload(void *state) {
  cpu_ref *s = state;
  for (int f = 0; s && f < s->action->fields; f++) md_gauge_destroy(&s->field[f]);
  free(state);
}

static md_status copy_field(md_context *context, const md_gauge *from, md_gauge *copy) {
  MD_TRY(md_gauge_create(context, from->geometry, copy));
  if (md_counts(context)) return MD_OK;
  for (int p = 0; p < MD_PARITIES; p++)
    for (int mu = 0; mu < MD_DIMS; mu++) {
      const md_field *links = &from->links[p][mu];
      memcpy(copy->links[p][mu].data, links->data,
             MD_LINK_REALS * (size_t)links->stride * sizeof(double));
    }
  return MD_OK;
}

static md_status load(md_context *context, const md_links *links, const md_backend_request *request,
                      void **state) {
  cpu_ref *s = calloc(1, sizeof *s);
  *state = NULL;
  if (!s) return md_fail_memory(context, sizeof *s, "cpu_ref");
  s->action = md_action_get(request->action);
  s->antiperiodic = request->antiperiodic;
  s->twist = request->twist;
  for (int f = 0; f < s->action->fields; f++) {
    const md_status status = copy_field(context, &links->field[f], &s->field[f]);
    if (status != MD_OK) {
      unload(s);
      return status;
    }
  }
  *state = s;
  return MD_OK;
}

/* *z times exp(i angle) */
static void turn(double z[2], double angle) {
  if (angle == 0.0) return;
  const double re = z[0] * cos(angle) - z[1] * sin(angle);
  z[1] = z[0] * sin(angle) + z[1] * cos(angle);
  z[0] = re;
}

/* The phase of the links mu at x, x+mu, ... over a hop: of each the boundary sign and the twist,
 * with eta of the first. x is any of the coordinates that are the same round the torus. */
static void phase_of(const cpu_ref *s, int mu, const int at[MD_DIMS], int hop, double z[2]) {
  const int *extent = s->field->geometry->global;
  const double flux = 2.0 * M_PI * s->twist.flux / extent[MD_X] / extent[MD_Y];
  int x[MD_DIMS];
  for (int d = 0; d < MD_DIMS; d++) x[d] = (at[d] + 3 * extent[d]) % extent[d];
  z[0] = s->action->spins == 4 ? 1.0 : 0.5 * md_eta(mu, x);
  z[1] = 0.0;
  for (int step = 0; step < hop; step++) {
    const bool last = x[mu] == extent[mu] - 1;
    for (int c = 0; c < 2 && mu == MD_T && last && s->antiperiodic; c++) z[c] = -z[c];
    if (mu == MD_T) turn(z, s->twist.imaginary_mu);
    if (mu == MD_Y) turn(z, flux * x[MD_X]);
    if (mu == MD_X && last) turn(z, -flux * extent[MD_X] * x[MD_Y]);
    x[mu] = (x[mu] + 1) % extent[mu];
  }
}

/* sum += z U v, or the same with `sign` (z U)^dag */
static void add_product(double sum[6], const double z[2], const double u[18], bool adjoint,
                        double sign, const double v[6]) {
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) {
      const double *e = u + 2 * (adjoint ? 3 * j + i : 3 * i + j);
      double re = z[0] * e[0] - z[1] * e[1], im = z[0] * e[1] + z[1] * e[0];
      if (adjoint) re *= sign, im *= -sign;
      sum[2 * i] += re * v[2 * j] - im * v[2 * j + 1];
      sum[2 * i + 1] += re * v[2 * j + 1] + im * v[2 * j];
    }
}

static void hop_site(const cpu_ref *s, int parity, int64_t site, const md_field *in, int rhs,
                     double *sum) {
  const md_geometry *g = in->geometry;
  int x[MD_DIMS];
  md_global_coordinates(g, parity, site, x);
  for (int c = 0; c < 6; c++) sum[c] = 0.0;
  for (int f = 0; f < s->action->fields; f++)
    for (int mu = 0; mu < MD_DIMS; mu++) {
      const int hop = s->action->field[f].hop;
      const int64_t forward = md_neighbours(g, hop, parity, mu)[site];
      const int64_t backward = md_neighbours(g, hop, parity, MD_DIMS + mu)[site];
      double u[MD_LINK_REALS], v[6], z[2];
      phase_of(s, mu, x, hop, z);
      md_gauge_get(&s->field[f], parity, mu, site, u);
      md_field_get(in, forward, rhs, v);
      add_product(sum, z, u, false, 1.0, v);
      x[mu] -= hop;
      phase_of(s, mu, x, hop, z);
      x[mu] += hop;
      md_gauge_get(&s->field[f], 1 - parity, mu, backward, u);
      md_field_get(in, backward, rhs, v);
      add_product(sum, z, u, true, -1.0, v);
    }
}

/* gamma_mu of DeGrand and Rossi, (re, im): gamma_x, gamma_y, gamma_z, gamma_t. */
static const double gamma_of[MD_DIMS][4][4][2] = {
    {{{0}, {0}, {0}, {0, 1}}, {{0}, {0}, {0, 1}}, {{0}, {0, -1}}, {{0, -1}}},
    {{{0}, {0}, {0}, {-1}}, {{0}, {0}, {1}}, {{0}, {1}}, {{-1}}},
    {{{0}, {0}, {0, 1}}, {{0}, {0}, {0}, {0, -1}}, {{0, -1}}, {{0}, {0, 1}}},
    {{{0}, {0}, {1}}, {{0}, {0}, {0}, {1}}, {{1}}, {{0}, {1}}}};

/* v = (1 + sign gamma_mu) psi of a slice: psi and v are [spin][colour]. */
static void project(int mu, double sign, const double *psi, double v[4][6]) {
  for (int i = 0; i < 4; i++)
    for (int c = 0; c < 6; c += 2) {
      v[i][c] = psi[6 * i + c];
      v[i][c + 1] = psi[6 * i + c + 1];
      for (int j = 0; j < 4; j++) {
        const double *e = gamma_of[mu][i][j], *w = psi + 6 * j + c;
        v[i][c] += sign * (e[0] * w[0] - e[1] * w[1]);
        v[i][c + 1] += sign * (e[0] * w[1] + e[1] * w[0]);
      }
    }
}

/* sum = H in at a site, slice by slice. */
static void hop_spins(const cpu_ref *s, int parity, int64_t site, const md_field *in, int rhs,
                      double *sum) {
  const md_geometry *g = in->geometry;
  int x[MD_DIMS];
  md_global_coordinates(g, parity, site, x);
  for (int c = 0; c < in->components; c++) sum[c] = 0.0;
  for (int d = 0; d < MD_DIRECTIONS; d++) {
    const int mu = d % MD_DIMS;
    const bool back = d >= MD_DIMS;
    const int64_t neighbour = md_neighbours(g, 1, parity, d)[site];
    double u[MD_LINK_REALS], psi[MD_MAX_COMPONENTS], v[4][6], z[2];
    x[mu] -= back;
    phase_of(s, mu, x, 1, z);
    x[mu] += back;
    md_gauge_get(&s->field[0], back ? 1 - parity : parity, mu, back ? neighbour : site, u);
    md_field_get(in, neighbour, rhs, psi);
    for (int c = 0; c < in->components; c += 24) {
      project(mu, back ? 1.0 : -1.0, psi + c, v);
      for (int i = 0; i < 4; i++) add_product(sum + c + 6 * i, z, u, back, 1.0, v[i]);
    }
  }
}

static bool reads_halo(const cpu_ref *s, int parity, int64_t site) {
  const md_geometry *g = s->field->geometry;
  for (int f = 0; f < s->action->fields; f++)
    for (int d = 0; d < MD_DIRECTIONS; d++)
      if (md_neighbours(g, s->action->field[f].hop, parity, d)[site] >= g->sites) return true;
  return false;
}

static md_status hop(md_context *context, void *state, const md_hop_call *call) {
  const cpu_ref *s = state;
  const int n = call->out->components, room = n * call->out->n_rhs;
  double *results; /* of a site, for each thread */
  MD_TRY(md_allocate(context, (size_t)room * (size_t)context->threads * sizeof *results, "cpu_ref",
                     (void **)&results));
  const md_hop_end *end = call->end;
  md_field *out = call->out;
#pragma omp parallel for schedule(static) num_threads(context->threads)
  for (int64_t i = 0; i < out->sites; i++) {
    double *result = results + (ptrdiff_t)room * omp_get_thread_num();
    if (call->range != MD_RANGE_ALL &&
        reads_halo(s, out->parity, i) != (call->range == MD_RANGE_BOUNDARY))
      continue;
    for (int r = 0; r < out->n_rhs; r++) {
      double *sum = result + n * r, x[MD_MAX_COMPONENTS];
      (s->action->spins == 4 ? hop_spins : hop_site)(s, out->parity, i, call->in, r, sum);
      if (!end) continue;
      md_field_get(end->x, i, r, x);
      for (int c = 0; c < n; c++) sum[c] = end->a * x[c] + end->b * sum[c];
    }
    md_field_set(out, i, result);
  }
  free(results);
  return MD_OK;
}

static double link_bytes(const md_backend_request *request) {
  return (double)md_action_terms(request->action) * MD_LINK_REALS * sizeof(double);
}

const md_backend md_backend_cpu_ref = {.name = "cpu_ref",
                                       .space = MD_HOST,
                                       .precisions = 1u << MD_DOUBLE,
                                       .reconstructs = 1u << MD_RECONSTRUCT_18,
                                       .packings = 1u << MD_PACKING_NONE,
                                       .actions = MD_STAGGERED_ACTIONS | MD_SPIN_ACTIONS,
                                       .load = load,
                                       .unload = unload,
                                       .hop = hop,
                                       .link_bytes = link_bytes};
