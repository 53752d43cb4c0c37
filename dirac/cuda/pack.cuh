#ifndef MD_DIRAC_CUDA_PACK_CUH
#define MD_DIRAC_CUDA_PACK_CUH

#include "dirac/cuda/hop_one.cuh"
#include "dirac/links/fold.h"

/* Makes the stored links of one parity, field and direction pair from bare links in double, folded
 * by dirac/links/fold.h. */

struct pack_arguments {
  md_pack_source source;
  const md_row *rows;
  const int32_t *order;
  int64_t sites;
  md_divisor per_row;
  int pair, tile;
  int64_t before, tile_reals; /* of the field in its tile; of a tile */
  double inverse;             /* of what the stored reals are parts of */
};

/* One thread per site: side 0 and 1 of the pair are forward and backward, but near and far in x. */
template <class S, int R, int V> __global__ void pack_links(pack_arguments a, S *links) {
  constexpr int piece = link_piece<S, R, V> / (int)sizeof(S);
  const int64_t index = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (index >= a.sites) return;
  const int slot = (int)(index / V), i = (int)(index % V);
  const int site = a.order ? a.order[slot] : (int)index;
  const md_row row = a.rows[divide(site / V, a.per_row)];
  for (int side = 0; side < 2; side++) {
    const int mu = a.pair % 4, sign = 1 + 2 * a.pair + side;
    const bool backward = mu == 0 ? (side == 0) == (bool)(row.bits & 1u) : side == 1;
    const md_pack_source &source = a.source;
    double re = 1.0, im = 0.0, u[18]; /* fewer reals keep the sign apart */
    if (R == 18 && source.phases) {
      re = source.phases[2 * side * a.sites + site];
      im = source.phases[(2 * side + 1) * a.sites + site];
    } else if (R == 18 && row.bits >> sign & 1u) {
      re = -1.0;
    }
    md_fold_matrix(backward ? source.backward : source.forward, source.stride,
                   backward ? source.neighbour[site] : site, backward, re, im, u);
    if (is_fixed<S> || has_phase<R>)
      for (int k = 0; k < 18; k++) u[k] *= a.inverse;
    S stored[R];
    encode_link<S, R>(u, stored);
    for (int r = 0; r < R; r++) {
      const int e = (side * R + r) * V + i;
      const int64_t first = slot / a.tile * a.tile_reals + a.before + a.pair % 4 * (2 * R * V) * a.tile;
      links[first + (e / piece * a.tile + slot % a.tile) * piece + e % piece] = stored[r];
    }
  }
}

template <class S, int R, int V> static void launch_pack(const pack_arguments &a, void *links) {
  pack_links<S, R, V>
      <<<(unsigned)((a.sites + 127) / 128), 128, 0, cudaStreamPerThread>>>(a, (S *)links);
}

template <class S, int R> static void pack_reals(const pack_arguments &a, int V, void *links) {
  if (V == 1) launch_pack<S, R, 1>(a, links);
  if constexpr (sizeof(S) <= 4)
    if (V == 2) launch_pack<S, R, 2>(a, links);
}

template <class S>
static int pack_any(const md_stencil *s, int pair, const md_pack_source *source, void *links) {
  const int field = pair / MD_DIMS, reals = s->reals[field];
  const int64_t block = (int64_t)MD_DIRECTIONS * s->sites_per_slot * s->tile;
  const pack_arguments a = {.source = *source,
                            .rows = s->rows,
                            .order = s->order,
                            .sites = s->slots * s->sites_per_slot,
                            .per_row = s->slots_per_row,
                            .pair = pair,
                            .tile = s->tile,
                            .before = field == 0 ? 0 : block * s->reals[0],
                            .tile_reals = block * (s->reals[0] + s->reals[1]),
                            .inverse = 1.0 / (real_of<S>)s->largest[field]};
  if (reals == 18) pack_reals<S, 18>(a, s->sites_per_slot, links);
  if (reals == 12) pack_reals<S, 12>(a, s->sites_per_slot, links);
  if (reals == 8) pack_reals<S, 8>(a, s->sites_per_slot, links);
  if (reals == 13) pack_reals<S, 13>(a, s->sites_per_slot, links);
  if (reals == 9) pack_reals<S, 9>(a, s->sites_per_slot, links);
  return (int)cudaGetLastError();
}

#endif
