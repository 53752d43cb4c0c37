#pragma once

#include "base/progress.h"
#include "lattice/gauge/staple_kernels.h"

/* Inside of smearing: sums over the paths from x to x+mu that fat links are made of. */

/* Weights of the paths. Staples of 3, 5, 7 links: all orders of distinct transverse directions,
 * all signs (6, 24, 48 paths). Lepage: (nu, nu, mu, -nu, -nu) (6 paths). */
typedef struct md_path_weights {
  double one, three, five, seven, lepage;
} md_path_weights;

/* Halo, kernels and intermediate fields of one geometry and space: so many fields of matrices. */
typedef struct md_staples md_staples;
enum { MD_STAPLE_MATRICES = 9 };

/* Collective: the ranks agree; MD_ENVIRONMENT for MD_DEVICE without a GPU or a build for it.
 * `label` heads the progress line; `passes` is how many calls of md_staples_fat will be made, the
 * whole of the work. */
md_status md_staples_create(md_context *context, const md_geometry *geometry, md_space space,
                            const char *label, int passes, md_staples **staples);
void md_staples_destroy(md_staples *staples);

/* Those of one direction of a gauge field: borrowed descriptors, not to be destroyed. */
static inline md_matrices md_gauge_direction(const md_gauge *gauge, int mu) {
  return (md_matrices){{gauge->links[MD_EVEN][mu], gauge->links[MD_ODD][mu]}};
}

const md_staple_kernels *md_staples_kernels(const md_staples *staples);
const md_staple_tables *md_staples_tables(const md_staples *staples);

/* Fills the halos. Collective; a failure of one rank among several is deferred (md_defer). */
md_status md_staples_exchange_gauge(md_staples *staples, md_gauge *gauge);

/* out = the weighted sum of the paths of links u (halos exchanged) in direction mu. out's halo is
 * left without meaning; out is none of u. Terms of weight 0 cost nothing. Collective,
 * errors as md_staples_exchange_gauge. */
md_status md_staples_fat(md_staples *staples, const md_matrices u[MD_DIMS], int mu,
                         const md_path_weights *weights, md_matrices *out);
/* out(x) = u(x) u(x+mu) u(x+2mu); the same about out. Collective. */
md_status md_staples_triple(md_staples *staples, const md_matrices *u, int mu, md_matrices *out);
