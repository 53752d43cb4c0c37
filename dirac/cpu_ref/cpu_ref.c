/* The oracle: the definition of D written down, one site and direction after another, in double,
 * links fetched bare and phases computed on the spot. Nobody optimises this file. */
#include "dirac/backend.h"

#include <stdlib.h>

typedef struct cpu_ref {
  md_gauge gauge; /* own copy, bare */
  bool antiperiodic;
} cpu_ref;

static void unload(void *state) {
  if (state) md_gauge_destroy(&((cpu_ref *)state)->gauge);
  free(state);
}

static md_status load(md_context *context, const md_gauge *gauge, const md_backend_request *request,
                      void **state) {
  cpu_ref *s = calloc(1, sizeof *s);
  *state = NULL;
  if (!s) return md_fail_memory(context, sizeof *s, "cpu_ref");
  s->antiperiodic = request->antiperiodic;
  const md_status status = md_gauge_create(context, gauge->geometry, &s->gauge);
  if (status != MD_OK) {
    unload(s);
    return status;
  }
  for (int p = 0; p < MD_PARITIES; p++)
    for (int mu = 0; mu < MD_DIMS; mu++)
      for (int64_t i = 0; i < gauge->geometry->sites + gauge->geometry->halo_sites; i++) {
        double u[MD_LINK_REALS];
        md_gauge_get(gauge, p, mu, i, u);
        md_gauge_set(&s->gauge, p, mu, i, u);
      }
  *state = s;
  return MD_OK;
}

/* The sign of the t-link at the site with global time coordinate t: -1 when it crosses the
 * antiperiodic boundary. */
static double boundary(const cpu_ref *s, int mu, int t) {
  const int last = s->gauge.geometry->global[MD_T] - 1;
  return s->antiperiodic && mu == MD_T && t == last ? -1.0 : 1.0;
}

/* sum += factor * U v or factor * U^dag v */
static void add_product(double sum[6], double factor, const double u[18], bool adjoint,
                        const double v[6]) {
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) {
      const int at = adjoint ? 2 * (3 * j + i) : 2 * (3 * i + j);
      const double re = u[at], im = adjoint ? -u[at + 1] : u[at + 1];
      sum[2 * i] += factor * (re * v[2 * j] - im * v[2 * j + 1]);
      sum[2 * i + 1] += factor * (re * v[2 * j + 1] + im * v[2 * j]);
    }
}

static void hop_site(const cpu_ref *s, int parity, int64_t site, const md_field *in, int rhs,
                     double sum[6]) {
  const md_geometry *g = s->gauge.geometry;
  int x[MD_DIMS];
  md_global_coordinates(g, parity, site, x);
  for (int c = 0; c < 6; c++) sum[c] = 0.0;
  for (int mu = 0; mu < MD_DIMS; mu++) {
    const int64_t forward = g->neighbour[parity][mu][site];
    const int64_t backward = g->neighbour[parity][MD_DIMS + mu][site];
    const int before = (x[MD_T] - 1 + g->global[MD_T]) % g->global[MD_T];
    double u[MD_LINK_REALS], v[6];
    md_gauge_get(&s->gauge, parity, mu, site, u);
    md_field_get(in, forward, rhs, v);
    add_product(sum, 0.5 * md_eta(mu, x) * boundary(s, mu, x[MD_T]), u, false, v);
    md_gauge_get(&s->gauge, 1 - parity, mu, backward, u);
    md_field_get(in, backward, rhs, v);
    add_product(sum, -0.5 * md_eta(mu, x) * boundary(s, mu, before), u, true, v);
  }
}

static bool reads_halo(const md_geometry *g, int parity, int64_t site) {
  for (int d = 0; d < MD_DIRECTIONS; d++)
    if (g->neighbour[parity][d][site] >= g->sites) return true;
  return false;
}

static md_status hop(md_context *context, void *state, md_field *out, const md_field *in,
                     md_range range, const md_epilogue *epilogue) {
  (void)context;
  const cpu_ref *s = state;
  for (int64_t i = 0; i < out->sites; i++) {
    if (range != MD_RANGE_ALL &&
        reads_halo(out->geometry, out->parity, i) != (range == MD_RANGE_BOUNDARY))
      continue;
    double result[6 * MD_MAX_RHS];
    for (int r = 0; r < out->n_rhs; r++) {
      double *sum = result + 6 * r, x[6];
      hop_site(s, out->parity, i, in, r, sum);
      if (!epilogue || !epilogue->x) continue;
      md_field_get(epilogue->x, i, r, x);
      for (int c = 0; c < 6; c++) sum[c] = epilogue->a * x[c] + epilogue->b * sum[c];
    }
    md_field_set(out, i, result);
  }
  return MD_OK;
}

/* The bare links of a site, of which two sites share each. */
static double kept_bytes(const md_backend_request *request) {
  (void)request;
  return (double)(MD_DIMS * MD_LINK_REALS * sizeof(double));
}

static double link_bytes(const md_backend_request *request) {
  (void)request;
  return MD_DIRECTIONS * MD_LINK_REALS * sizeof(double);
}

const md_backend md_backend_cpu_ref = {.name = "cpu_ref",
                                       .needs = "any CPU",
                                       .space = MD_HOST,
                                       .precisions = 1u << MD_DOUBLE,
                                       .reconstructs = 1u << MD_RECONSTRUCT_18,
                                       .packings = 1u << MD_PACKING_NONE,
                                       .speed = 0,
                                       .load = load,
                                       .unload = unload,
                                       .hop = hop,
                                       .link_bytes = link_bytes,
                                       .kept_bytes = kept_bytes};
