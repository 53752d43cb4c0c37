#include "lattice/gauge/project_math.h"
#include "lattice/gauge/staple_kernels.h"

md_projection_way md_project_u3(const double v[MD_LINK_REALS], double w[MD_LINK_REALS]) {
  return md_project(v, w);
}

md_projection_way md_project_u3_svd(const double v[MD_LINK_REALS], double w[MD_LINK_REALS]) {
  return md_project_singular_values(v, w) ? MD_PROJECT_SINGULAR_VALUES : MD_PROJECT_SINGULAR;
}

void md_project_su3_phase(double w[MD_LINK_REALS]) {
  md_remove_determinant(w);
}

static void get(const md_field *f, int64_t site, double u[MD_LINK_REALS]) {
  for (int c = 0; c < MD_LINK_REALS; c++) u[c] = ((const double *)f->data)[c * f->stride + site];
}
static void set(const md_field *f, int64_t site, const double u[MD_LINK_REALS]) {
  for (int c = 0; c < MD_LINK_REALS; c++) ((double *)f->data)[c * f->stride + site] = u[c];
}

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
      get(f, i, u);
      const md_projection_way way = md_project(u, u);
      fallbacks += way == MD_PROJECT_SINGULAR_VALUES;
      singular += way == MD_PROJECT_SINGULAR;
      if (special) md_remove_determinant(u);
      set(f, i, u);
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
      get(&sum->at[p], i, s);
      get(&u->at[p], i, link);
      md_stout_link(s, link, w);
      set(&out->at[p], i, w);
    }
  }
}

md_staple_kernels md_staple_kernels_host(void) {
  static const md_staple_rows *const every[MD_ISAS] = MD_EVERY_ISA(&md_staple_rows);
  const md_staple_rows *rows = every[md_isa_best()];
  return (md_staple_kernels){.lower = rows->lower,
                             .staple = rows->staple,
                             .shift = rows->shift,
                             .combine = rows->combine,
                             .multiply = rows->multiply,
                             .project = project,
                             .stout = stout};
}
