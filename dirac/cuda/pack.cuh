#ifndef MD_DIRAC_CUDA_PACK_CUH
#define MD_DIRAC_CUDA_PACK_CUH

#include "dirac/cuda/hop_one.cuh"

/* Makes the stored links of one parity and direction pair from bare links in double. */

struct pack_arguments {
  const double *forward, *backward; /* 18 planes: U_mu of this parity, of the other with halo */
  const int32_t *neighbour;         /* site x - mu */
  int64_t stride;
  const md_row *rows;
  const int32_t *order;
  int64_t sites;
  md_divisor per_row;
  int mu, tile;
};

/* One thread per site: side 0 and 1 of the pair are forward and backward, but near and far in x. */
template <class S, int R, int V> __global__ void pack_links(pack_arguments a, S *links) {
  constexpr int piece = link_piece<S, R, V> / (int)sizeof(S), chunks = 2 * R * V / piece;
  const int64_t index = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (index >= a.sites) return;
  const int slot = (int)(index / V), i = (int)(index % V);
  const int site = a.order ? a.order[slot] : (int)index;
  const md_row row = a.rows[divide(site / V, a.per_row)];
  for (int side = 0; side < 2; side++) {
    const bool backward = a.mu == 0 ? (side == 0) == (bool)(row.bits & 1u) : side == 1;
    const double sign = row.bits >> (1 + 2 * a.mu + side) & 1u ? -1.0 : 1.0;
    const int64_t from = backward ? a.neighbour[site] : site;
    double u[18];
    for (int r = 0; r < 3; r++) {
      for (int c = 0; c < 3; c++) {
        const int64_t plane = backward ? 2 * (3 * c + r) : 2 * (3 * r + c);
        const double *field = backward ? a.backward : a.forward;
        const double factor = R == 18 ? sign : 1.0;
        u[6 * r + 2 * c] = factor * field[plane * a.stride + from];
        u[6 * r + 2 * c + 1] = (backward ? -factor : factor) * field[(plane + 1) * a.stride + from];
      }
    }
    S stored[R];
    encode_link<S, R>(u, stored);
    for (int r = 0; r < R; r++) {
      const int e = (side * R + r) * V + i;
      const int64_t chunk =
          (((int64_t)(slot / a.tile) * 4 + a.mu) * chunks + e / piece) * a.tile + slot % a.tile;
      links[chunk * piece + e % piece] = stored[r];
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
static int pack_any(const md_stencil *s, int reals, int mu, const double *forward,
                    const double *backward, const int32_t *neighbour_backward, int64_t stride,
                    void *links) {
  const pack_arguments a = {forward, backward, neighbour_backward,           stride,
                            s->rows, s->order, s->slots * s->sites_per_slot, s->slots_per_row,
                            mu,      s->tile};
  if (reals == 18) pack_reals<S, 18>(a, s->sites_per_slot, links);
  if (reals == 12) pack_reals<S, 12>(a, s->sites_per_slot, links);
  if (reals == 8) pack_reals<S, 8>(a, s->sites_per_slot, links);
  return (int)cudaGetLastError();
}

#endif
