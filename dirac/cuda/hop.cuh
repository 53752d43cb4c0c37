#pragma once

#include <type_traits>

extern "C" {
#include "dirac/cuda/stencil.h"
}
#include "dirac/cuda/hop_many.cuh"
#include "dirac/links/fold.h"

/* Makes the stored links of one parity, field and direction pair from bare links in double, folded
 * by dirac/links/fold.h. */

struct pack_arguments {
  md_pack_source source;
  const md_row *rows;
  const int32_t *order;
  int64_t sites;
  md_divisor per_row;
  int pair, tile, per_slot, piece; /* sites of a slot; reals of a chunk, 0: as the kernels read */
  int64_t before, tile_reals;      /* of the field in its tile; of a tile */
  double inverse;                  /* of what the stored reals are parts of */
};

/* One thread per site: side 0 and 1 of the pair are forward and backward, but near and far in x. */
template <class S, int R> __global__ void pack_links(pack_arguments a, S *links) {
  const int V = a.per_slot, piece = a.piece;
  const int64_t index = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (index >= a.sites) return;
  const int slot = (int)(index / V), i = (int)(index % V);
  const int site = a.order ? a.order[slot] : (int)index;
  const md_row row = a.rows[md_quotient(site / V, a.per_row)];
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
      const int64_t first =
          slot / a.tile * a.tile_reals + a.before + a.pair % 4 * (2 * R * V) * a.tile;
      links[first + (e / piece * a.tile + slot % a.tile) * piece + e % piece] = stored[r];
    }
  }
}

template <class S, int R> static void launch_pack(pack_arguments a, void *links) {
  if (a.piece == 0) a.piece = link_piece_of(2 * R * a.per_slot * (int)sizeof(S)) / (int)sizeof(S);
  pack_links<S, R>
      <<<(unsigned)((a.sites + 127) / 128), 128, 0, cudaStreamPerThread>>>(a, (S *)links);
}

template <class S>
static int pack_any(const md_stencil *s, int pair, const md_pack_source *source, void *links) {
  const int field = pair / MD_DIMS, reals = s->reals[field];
  const int64_t block = (int64_t)MD_DIRECTIONS * s->sites_per_slot * s->tile;
  pack_arguments a = {};
  a.source = *source;
  a.rows = s->rows;
  a.order = s->order;
  a.sites = s->slots * s->sites_per_slot;
  a.per_row = s->slots_per_row;
  a.pair = pair;
  a.tile = s->tile;
  a.per_slot = s->sites_per_slot;
  a.before = field == 0 ? 0 : block * s->reals[0];
  a.tile_reals = block * (s->reals[0] + s->reals[1]);
  a.inverse = 1.0 / (real_of<S>)s->largest[field];
  if (s->march.x > 0) a.piece = link_piece_of(reals * (int)sizeof(S)) / (int)sizeof(S);
  if (reals == 18) launch_pack<S, 18>(a, links);
  if (reals == 12) launch_pack<S, 12>(a, links);
  if (reals == 8) launch_pack<S, 8>(a, links);
  if (reals == 13) launch_pack<S, 13>(a, links);
  if (reals == 9) launch_pack<S, 9>(a, links);
  return (int)cudaGetLastError();
}

/* Of hop_spins.cuh, in files of their own. */
template <class S> int hop_spins_any(const md_stencil *s, const md_hop_call *call);

/* The entry points of storage type S. */
template <class S> constexpr md_stencil_kernels kernels_of() {
  if constexpr (is_fixed<S>)
    return {pack_any<S>, hop_one_any<S>, hop_many_any<S>, NULL};
  else
    return {pack_any<S>, hop_one_any<S>, hop_many_any<S>, hop_spins_any<S>};
}
