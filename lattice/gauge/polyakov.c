#include "lattice/fields/sum.h"
#include "lattice/gauge/gauge.h"
#include "lattice/gauge/su3.h"

#include <stdlib.h>
#include <string.h>

/* Products of the links from t = 0 on, of the sites of one plane z of the whole lattice. They go
 * from one rank of a column to the next: each has multiplied all links below its own, in their
 * order, so that the bits are those of one rank. */
typedef double su3[MD_LINK_REALS];

static int64_t plane_sites(const md_geometry *g) {
  return (int64_t)g->global[MD_X] * g->global[MD_Y];
}

/* products[x, y of this rank] times its links of the plane z. */
static void multiply_column(const md_gauge *gauge, md_precision precision, int z, su3 *products) {
  const md_geometry *g = gauge->geometry;
#pragma omp parallel for schedule(static)
  for (int y = 0; y < g->local[MD_Y]; y++)
    for (int x = 0; x < g->local[MD_X]; x++) {
      double *p = products[(int64_t)(y + g->origin[MD_Y]) * g->global[MD_X] + x + g->origin[MD_X]];
      for (int t = 0; t < g->local[MD_T]; t++) {
        const int at[MD_DIMS] = {x, y, z - g->origin[MD_Z], t};
        double u[MD_LINK_REALS], next[MD_LINK_REALS];
        md_gauge_get_in(gauge, precision, md_parity(at), MD_T, md_site(g, at), u);
        md_su3_multiply(next, p, u);
        memcpy(p, next, sizeof next);
      }
    }
}

/* In pieces: a plane may have more numbers than MPI counts in an int. */
static void sum_bits(const md_context *context, long long *bits, int64_t count) {
  enum { MOST = 1 << 24 };
  _Static_assert(sizeof(long long) == sizeof(double), "bits of doubles are added as integers");
  for (int64_t at = 0; at < count; at += MOST)
    md_sum_integers(context, bits + at, count - at < MOST ? (int)(count - at) : MOST);
}

/* The products of the ranks at `turn` along t to all ranks: one rank has each, others add zeros. */
static void pass_on(const md_context *context, const md_geometry *g, bool mine, su3 *products) {
  for (int64_t i = 0; i < plane_sites(g); i++) {
    const int64_t x = i % g->global[MD_X] - g->origin[MD_X];
    const int64_t y = i / g->global[MD_X] - g->origin[MD_Y];
    if (!mine || x < 0 || x >= g->local[MD_X] || y < 0 || y >= g->local[MD_Y])
      memset(products[i], 0, sizeof products[i]);
  }
  sum_bits(context, (long long *)products, plane_sites(g) * MD_LINK_REALS);
}

static void add_plane(const md_context *context, const md_gauge *gauge, md_precision precision,
                      int z, su3 *products, md_sum sum[2]) {
  const md_geometry *g = gauge->geometry;
  const bool here = z >= g->origin[MD_Z] && z < g->origin[MD_Z] + g->local[MD_Z];
  for (int64_t i = 0; i < plane_sites(g); i++) md_su3_one(products[i]);
  for (int turn = 0; turn < g->grid[MD_T]; turn++) {
    const bool mine = here && g->place[MD_T] == turn;
    if (mine) multiply_column(gauge, precision, z, products);
    if (context->ranks > 1) pass_on(context, g, mine, products);
  }
  for (int64_t i = 0; i < plane_sites(g) && context->rank == 0; i++)
    for (int part = 0; part < 2; part++)
      md_sum_add(&sum[part], products[i][part] + products[i][8 + part] + products[i][16 + part]);
}

md_status md_polyakov_loop(md_context *context, const md_gauge *gauge, md_precision precision,
                           double loop[2]) {
  const md_geometry *g = gauge->geometry;
  const size_t bytes = (size_t)plane_sites(g) * sizeof(su3);
  su3 *products = malloc(bytes);
  md_sum sum[2] = {0};
  md_status status = products ? MD_OK : md_fail_memory(context, bytes, "the Polyakov loop");
  status = md_agree(context, status);
  for (int z = 0; z < g->global[MD_Z] && status == MD_OK; z++)
    add_plane(context, gauge, precision, z, products, sum);
  if (status == MD_OK) status = md_sum_finish(context, sum, 2, loop);
  for (int part = 0; part < 2 && status == MD_OK; part++)
    loop[part] /= 3.0 * (double)plane_sites(g) * g->global[MD_Z];
  free(products);
  return status;
}
