#include "lattice/gauge/project_math.h"
#include "lattice/gauge/smear.h"
#include "lattice/gauge/staple_kernels.h"

static md_status project(md_context *context, const md_staple_tables *tables, md_matrices *v,
                         bool special, md_projection_counts *counts) {
  (void)context;
  (void)tables;
  long long fallbacks = 0, singular = 0;
  for (int p = 0; p < MD_PARITIES; p++) {
    md_field *f = &v->at[p];
#pragma omp parallel for schedule(static) reduction(+ : fallbacks, singular)
    for (int64_t i = 0; i < f->sites; i++) {
      double u[MD_LINK_REALS];
      md_matrix_get(f, i, u);
      const md_projection_way way = md_project(u, u);
      fallbacks += way == MD_PROJECT_SINGULAR_VALUES;
      singular += way == MD_PROJECT_SINGULAR;
      if (special) md_remove_determinant(u);
      md_matrix_set(f, i, u);
    }
    counts->links += f->sites;
  }
  counts->fallbacks += fallbacks;
  counts->singular += singular;
  return MD_OK;
}

static void stout(md_matrices *out, const md_matrices *sum, const md_matrices *u) {
  for (int p = 0; p < MD_PARITIES; p++) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < out->at[p].sites; i++) {
      double s[MD_LINK_REALS], link[MD_LINK_REALS], w[MD_LINK_REALS];
      md_matrix_get(&sum->at[p], i, s);
      md_matrix_get(&u->at[p], i, link);
      md_stout_link(s, link, w);
      md_matrix_set(&out->at[p], i, w);
    }
  }
}

md_staple_kernels md_staple_kernels_host(void) {
  static const md_staple_kernels *const every[MD_ISAS] = MD_EVERY_ISA(&md_staple_rows);
  md_staple_kernels kernels = *every[md_isa_best()];
  kernels.project = project;
  kernels.stout = stout;
  return kernels;
}

/* One link; the largest change of an element, or infinity where there is no projection. */
static double reunitarize(md_gauge *gauge, int parity, int mu, int64_t site) {
  double u[MD_LINK_REALS], w[MD_LINK_REALS], square = 0.0;
  md_gauge_get(gauge, parity, mu, site, u);
  if (md_project(u, w) == MD_PROJECT_SINGULAR) return HUGE_VAL;
  md_remove_determinant(w);
  for (int c = 0; c < MD_LINK_REALS; c += 2) {
    const double re = w[c] - u[c], im = w[c + 1] - u[c + 1];
    square = fmax(square, re * re + im * im);
  }
  md_gauge_set(gauge, parity, mu, site, w);
  return sqrt(square);
}

md_status md_gauge_reunitarize(md_context *context, const char *path, md_gauge *gauge,
                               double *change) {
  double most = 0.0;
  for (int p = 0; p < MD_PARITIES; p++)
    for (int mu = 0; mu < MD_DIMS; mu++)
#pragma omp parallel for schedule(static) reduction(max : most) num_threads(context->threads)
      for (int64_t i = 0; i < gauge->geometry->sites; i++)
        most = fmax(most, reunitarize(gauge, p, mu, i));
  md_maximum(context, &most, 1);
  *change = most;
  if (most <= MD_THIN_TOLERANCE) return md_gauge_exchange(context, gauge);
  return md_fail(context, MD_INPUT,
                 "%s: --reunitarize is for SU(3) links that were rounded, off by %g at most, these "
                 "are off by %.3g; are they damaged, or fat links?",
                 path, MD_THIN_TOLERANCE, most);
}
