#include "lattice/gauge/heatbath_math.h" /* outside of extern "C" */

#include "lattice/gauge/cuda/planes.cuh"

extern "C" {
#include "lattice/gauge/cuda/heatbath_device.h"
}

/* The work of heatbath_device.h, a thread for each site of one parity. */

/* What the links of one direction and parity are renewed from. */
struct surroundings {
  plane_view here[MD_DIMS], there[MD_DIMS]; /* links of this parity, of the other */
  plane_view lower[MD_DIMS - 1];            /* of the other parity */
  const int32_t *to[MD_DIRECTIONS];
};

static __device__ void sum_staples(const surroundings &s, int mu, int64_t site,
                                   double sum[MATRIX]) {
  int plane = 0;
  for (int c = 0; c < MATRIX; c++) sum[c] = 0.0;
  for (int nu = 0; nu < MD_DIMS; nu++) {
    if (nu == mu) continue;
    double first[MATRIX], second[MATRIX], product[MATRIX];
    load(first, s.here[nu], site);
    load(second, s.there[mu], s.to[nu][site]);
    md_su3_multiply(product, first, second);
    load(first, s.there[nu], s.to[mu][site]);
    md_su3_multiply_adjoint(second, product, first);
    add(second, 1.0, s.lower[plane++], s.to[MD_DIMS + nu][site]);
    for (int c = 0; c < MATRIX; c++) sum[c] += second[c];
  }
}

/* One kernel for each kind of update, so that overrelaxation holds no registers for the drawing. */
template <bool overrelax>
static __global__ void __launch_bounds__(BLOCK)
    renew_kernel(md_geometry geometry, surroundings s, int parity, int mu, md_link_update how) {
  const int64_t site = site_of_thread();
  if (site >= geometry.sites) return;
  double u[MATRIX], staples[MATRIX];
  int x[MD_DIMS];
  how.overrelax = overrelax;
  sum_staples(s, mu, site, staples);
  md_global_coordinates(&geometry, parity, site, x);
  md_random random =
      md_random_begin(how.seed, how.purpose | mu, (uint64_t)md_global_index(&geometry, x));
  load(u, s.here[mu], site);
  md_link_renew(u, staples, &how, &random);
  store(s.here[mu], site, u);
}

static surroundings surroundings_of(const md_staple_tables *tables, const md_gauge *gauge,
                                    const md_field *lower, int parity) {
  surroundings s;
  for (int mu = 0; mu < MD_DIMS; mu++) {
    s.here[mu] = view(&gauge->links[parity][mu]);
    s.there[mu] = view(&gauge->links[1 - parity][mu]);
  }
  for (int k = 0; k < MD_DIMS - 1; k++) s.lower[k] = lower ? view(&lower[k]) : plane_view{NULL, 0};
  for (int d = 0; d < MD_DIRECTIONS; d++) s.to[d] = tables->to[parity][d];
  return s;
}

extern "C" void md_heatbath_renew_device(const md_staple_tables *tables, md_gauge *gauge,
                                         const md_field *lower, int parity, int mu,
                                         const md_link_update *how) {
  const md_geometry *g = gauge->geometry;
  const surroundings s = surroundings_of(tables, gauge, lower, parity);
  void (*kernel)(md_geometry, surroundings, int, int, md_link_update) =
      how->overrelax ? renew_kernel<true> : renew_kernel<false>;
  kernel<<<blocks(g->sites), BLOCK, 0, md_stream()>>>(*g, s, parity, mu, *how);
}

/* Counters of the sums: whole multiples of 2^32 units and what is left of each, in space and in
 * time; and how many sites had a sum that is not finite. */
enum { HIGH, LOW, WORDS, FAULTS = 2 * WORDS, UNIT_BITS = 50 };

/* Adds `value` of each thread of the warp, |value| < 2^12. */
static __device__ void add_units(double value, unsigned long long *words) {
  const long long units = __double2ll_rn(ldexp(value, UNIT_BITS));
  long long part[WORDS];
  part[HIGH] = units >> 32;
  part[LOW] = units & 0xffffffffll;
  for (int w = 0; w < WORDS; w++) {
    for (int step = 16; step > 0; step /= 2) part[w] += __shfl_down_sync(~0u, part[w], step);
    if (threadIdx.x % 32 == 0) atomicAdd(&words[w], (unsigned long long)part[w]);
  }
}

static __device__ double plaquette_at(const surroundings &s, int mu, int nu, int64_t site) {
  double a[MATRIX], b[MATRIX], front[MATRIX], back[MATRIX];
  load(a, s.here[mu], site);
  load(b, s.there[nu], s.to[mu][site]);
  md_su3_multiply(front, a, b);
  load(a, s.here[nu], site);
  load(b, s.there[mu], s.to[nu][site]);
  md_su3_multiply(back, a, b);
  return md_su3_trace_adjoint(front, back);
}

static __global__ void __launch_bounds__(BLOCK)
    plaquette_kernel(int64_t sites, surroundings s, unsigned long long *counters) {
  const int64_t site = site_of_thread();
  double sum[2] = {0.0, 0.0};
  for (int mu = 0; mu < MD_DIMS && site < sites; mu++)
    for (int nu = mu + 1; nu < MD_DIMS; nu++)
      sum[nu == MD_T ? 1 : 0] += plaquette_at(s, mu, nu, site);
  for (int k = 0; k < 2; k++) {
    const bool sound = fabs(sum[k]) < 4096.0;
    if (!sound) atomicAdd(&counters[FAULTS], 1ull);
    add_units(sound ? sum[k] : 0.0, counters + k * WORDS);
  }
}

extern "C" md_status md_plaquette_sums_device(md_context *context, const md_staple_tables *tables,
                                              const md_gauge *gauge, md_sum sums[2]) {
  unsigned long long found[MD_STAPLE_COUNTERS] = {0};
  const int64_t n = gauge->geometry->sites;
  MD_TRY(md_device_upload(context, tables->counters, found, sizeof found));
  for (int p = 0; p < MD_PARITIES; p++) {
    for_sites(plaquette_kernel, n, surroundings_of(tables, gauge, NULL, p), tables->counters);
    MD_TRY(md_cuda_launched(context, "plaquettes"));
  }
  MD_TRY(md_device_download(context, found, tables->counters, sizeof found));
  for (int k = 0; k < 2; k++) { /* every part below has no more than 53 bits */
    const unsigned long long low = found[k * WORDS + LOW];
    md_sum_add(&sums[k], ldexp((double)(long long)found[k * WORDS + HIGH], 32 - UNIT_BITS));
    md_sum_add(&sums[k], ldexp((double)(low >> 32), 32 - UNIT_BITS));
    md_sum_add(&sums[k], ldexp((double)(low & 0xffffffffull), -UNIT_BITS));
    if (found[FAULTS] != 0) md_sum_add(&sums[k], NAN);
  }
  return MD_OK;
}
