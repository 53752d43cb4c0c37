#include "lattice/gauge/cuda/planes.cuh"

extern "C" {
#include "lattice/gauge/project_math.h"
#include "lattice/gauge/staple_kernels.h"
}

/* The passes of staple_kernels.h, a thread for each site of one parity: three matrices in
 * registers, planes read and written by neighbouring threads side by side. */

static plane_view view(const md_matrices *m, int parity) {
  return view(&m->at[parity]);
}
static plane_view view_or_none(const md_matrices *m, int parity) {
  return m ? view(m, parity) : plane_view{NULL, 0};
}

/* out(y) = u(y)^dag a(y) u(y+mu); `there` here and below names a field of the other parity. */
static __global__ void __launch_bounds__(BLOCK)
    lower_kernel(int64_t sites, plane_view out, plane_view u, plane_view a, plane_view u_there,
                 const int32_t *to_mu) {
  const int64_t y = site_of_thread();
  if (y >= sites) return;
  double first[MATRIX], second[MATRIX], product[MATRIX];
  load(first, u, y);
  load(second, a, y);
  md_su3_adjoint_multiply(product, first, second);
  load(first, u_there, to_mu[y]);
  md_su3_multiply(second, product, first);
  store(out, y, second);
}

static __global__ void __launch_bounds__(BLOCK)
    staple_kernel(int64_t sites, plane_view out, plane_view base, plane_view u, plane_view u_there,
                  plane_view a_there, plane_view lower_there, const int32_t *to_mu,
                  const int32_t *to_nu, const int32_t *from_nu) {
  const int64_t x = site_of_thread();
  if (x >= sites) return;
  double first[MATRIX], second[MATRIX], product[MATRIX];
  load(first, u, x);
  load(second, a_there, to_nu[x]);
  md_su3_multiply(product, first, second);
  load(first, u_there, to_mu[x]);
  md_su3_multiply_adjoint(second, product, first);
  if (lower_there.data) add(second, 1.0, lower_there, from_nu[x]);
  if (base.data) add(second, 1.0, base, x);
  store(out, x, second);
}

static __global__ void __launch_bounds__(BLOCK)
    shift_kernel(int64_t sites, plane_view out, plane_view there, const int32_t *to) {
  const int64_t x = site_of_thread();
  if (x >= sites) return;
  double u[MATRIX];
  load(u, there, to[x]);
  store(out, x, u);
}

static __global__ void __launch_bounds__(BLOCK)
    combine_kernel(int64_t sites, plane_view out, double a, plane_view x, double b, plane_view y,
                   plane_view z) {
  const int64_t i = site_of_thread();
  if (i >= sites) return;
  double sum[MATRIX];
  load(sum, x, i);
#pragma unroll
  for (int c = 0; c < MATRIX; c++) sum[c] *= a;
  if (y.data) add(sum, b, y, i);
  if (z.data) add(sum, b, z, i);
  store(out, i, sum);
}

static __global__ void __launch_bounds__(BLOCK)
    multiply_kernel(int64_t sites, plane_view out, plane_view u, plane_view v_there,
                    const int32_t *to_mu) {
  const int64_t x = site_of_thread();
  if (x >= sites) return;
  double first[MATRIX], second[MATRIX], product[MATRIX];
  load(first, u, x);
  load(second, v_there, to_mu[x]);
  md_su3_multiply(product, first, second);
  store(out, x, product);
}

/* counters: fall-backs, singular matrices. */
static __global__ void __launch_bounds__(BLOCK)
    project_kernel(int64_t sites, plane_view v, bool special, unsigned long long *counters) {
  const int64_t x = site_of_thread();
  if (x >= sites) return;
  double u[MATRIX];
  load(u, v, x);
  const md_projection_way way = md_project(u, u);
  if (way == MD_PROJECT_SINGULAR_VALUES) atomicAdd(&counters[0], 1ull);
  if (way == MD_PROJECT_SINGULAR) atomicAdd(&counters[1], 1ull);
  if (special) md_remove_determinant(u);
  store(v, x, u);
}

static __global__ void __launch_bounds__(BLOCK)
    stout_kernel(int64_t sites, plane_view out, plane_view sum, plane_view u) {
  const int64_t x = site_of_thread();
  if (x >= sites) return;
  double first[MATRIX], second[MATRIX], link[MATRIX];
  load(first, sum, x);
  load(second, u, x);
  md_stout_link(first, second, link);
  store(out, x, link);
}

static void lower(const md_staple_tables *t, md_field *out, const md_matrices *u,
                  const md_matrices *a, int mu) {
  const int p = out->parity;
  for_sites(lower_kernel, out->sites, view(out), view(u, p), view(a, p), view(u, 1 - p),
            t->to[p][mu]);
}

static void staple(const md_staple_tables *t, md_matrices *out, const md_matrices *base,
                   const md_matrices *u, const md_matrices *a, const md_matrices *lower_part,
                   int mu, int nu) {
  for (int p = 0; p < MD_PARITIES; p++)
    for_sites(staple_kernel, out->at[p].sites, view(out, p), view_or_none(base, p), view(u, p),
              view(u, 1 - p), view(a, 1 - p), view_or_none(lower_part, 1 - p), t->to[p][mu],
              t->to[p][nu], t->to[p][MD_DIMS + nu]);
}

static void shift(const md_staple_tables *t, md_matrices *out, const md_matrices *in,
                  int direction) {
  for (int p = 0; p < MD_PARITIES; p++)
    for_sites(shift_kernel, out->at[p].sites, view(out, p), view(in, 1 - p), t->to[p][direction]);
}

static void combine(md_matrices *out, double a, const md_matrices *x, double b,
                    const md_matrices *y, const md_matrices *z) {
  for (int p = 0; p < MD_PARITIES; p++)
    for_sites(combine_kernel, out->at[p].sites, view(out, p), a, view(x, p), b, view_or_none(y, p),
              view_or_none(z, p));
}

static void multiply(const md_staple_tables *t, md_matrices *out, const md_matrices *u,
                     const md_matrices *v, int mu) {
  for (int p = 0; p < MD_PARITIES; p++)
    for_sites(multiply_kernel, out->at[p].sites, view(out, p), view(u, p), view(v, 1 - p),
              t->to[p][mu]);
}

static md_status project(md_context *context, const md_staple_tables *t, md_matrices *v,
                         bool special, md_projection_counts *counts) {
  unsigned long long found[2] = {0, 0};
  MD_TRY(md_device_upload(context, t->counters, found, sizeof found));
  for (int p = 0; p < MD_PARITIES; p++) {
    for_sites(project_kernel, v->at[p].sites, view(v, p), special, t->counters);
    MD_TRY(md_cuda_launched(context, "projection of links"));
    counts->links += v->at[p].sites;
  }
  MD_TRY(md_device_download(context, found, t->counters, sizeof found));
  counts->fallbacks += (long long)found[0];
  counts->singular += (long long)found[1];
  return MD_OK;
}

static void stout(md_matrices *out, const md_matrices *sum, const md_matrices *u) {
  for (int p = 0; p < MD_PARITIES; p++)
    for_sites(stout_kernel, out->at[p].sites, view(out, p), view(sum, p), view(u, p));
}

extern "C" md_staple_kernels md_staple_kernels_device(void) {
  return {lower, staple, shift, combine, multiply, project, stout};
}

extern "C" md_status md_staple_tables_create_device(md_context *context,
                                                    const md_geometry *geometry,
                                                    md_staple_tables *tables) {
  const size_t bytes = (size_t)geometry->sites * sizeof(int32_t);
  *tables = md_staple_tables();
  MD_TRY(md_device_open(context));
  for (int p = 0; p < MD_PARITIES; p++)
    for (int d = 0; d < MD_DIRECTIONS; d++) {
      void *table = NULL;
      MD_TRY(md_device_allocate(context, bytes, "neighbour table", &table));
      tables->to[p][d] = (const int32_t *)table;
      MD_TRY(md_device_upload(context, table, geometry->neighbour[p][d], bytes));
    }
  return md_device_allocate(context, MD_STAPLE_COUNTERS * sizeof(unsigned long long), "counters",
                            (void **)&tables->counters);
}

extern "C" void md_staple_tables_destroy_device(md_staple_tables *tables) {
  for (int p = 0; p < MD_PARITIES; p++)
    for (int d = 0; d < MD_DIRECTIONS; d++) md_device_free((void *)tables->to[p][d]);
  md_device_free(tables->counters);
  *tables = md_staple_tables();
}
