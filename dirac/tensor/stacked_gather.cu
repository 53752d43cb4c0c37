#include "dirac/tensor/stacked_finish.cuh"

/* Packing `stacked` with neighbours gathered from global memory: a warp takes a group of eight
 * output sites, of which lane 4g+t looks up the neighbours t and t+4 of site g, batch by batch. */
namespace stacked {

/* The neighbours t and t+4 of a lane's site through each link field. */
template <int FIELDS> struct neighbours { int ahead[FIELDS], behind[FIELDS]; };

/* One batch of a warp. */
template <typename T, int TILE, bool FULL, ending END, int FIELDS> struct gatherer {
  using number = typename storage<T>::number;
  using real = typename storage<T>::accumulator;
  static constexpr int number_bytes = sizeof(number);
  const md_tensor_call &call;
  const lane &at;
  int my_site, site[batch<T>]; /* my_site: that of g % batch */
  const char *forward[FIELDS][batch<T>], *backward[FIELDS][batch<T>];
  typename storage<T>::links links[FIELDS][batch<T>];
  uint32_t my_ratios[FIELDS];
  int unit, present; /* present: sites of the batch that there are */

  __device__ int site_bytes() const { return call.n_rhs * 3 * number_bytes; }

  /* site, to: what the lane looked up; first: of the batch in the group. */
  __device__ gatherer(const md_tensor_call &c, const lane &l, int looked_up,
                      const neighbours<FIELDS> &to, int first, int left)
      : call(c), at(l), my_ratios{}, unit(127), present(min(left, batch<T>)) {
    const char *source = static_cast<const char *>(call.source) + row_offset<T, TILE>(at.g);
    my_site = __shfl_sync(0xffffffffu, looked_up, 4 * (first + at.g % batch<T>)+at.t);
#pragma unroll
    for (int n = 0; n < batch<T>; n++) {
      const int from = 4 * (first + n) + at.t;
      site[n] = __shfl_sync(0xffffffffu, looked_up, from);
      const char *of_site = static_cast<const char *>(call.links) +
                            static_cast<int64_t>(site[n]) * (72 * FIELDS * number_bytes);
#pragma unroll
      for (int f = 0; f < FIELDS; f++) {
        const int ahead = __shfl_sync(0xffffffffu, to.ahead[f], from);
        const int behind = __shfl_sync(0xffffffffu, to.behind[f], from);
        forward[f][n] = source + static_cast<int64_t>(ahead) * site_bytes();
        backward[f][n] = source + static_cast<int64_t>(behind) * site_bytes();
        links[f][n] = storage<T>::load_links(of_site + f * (72 * number_bytes), at.slot);
      }
    }
    if constexpr (storage<T>::scaled) find_ratios(to, first);
  }
  __device__ void find_ratios(const neighbours<FIELDS> &to, int first) {
    const int mine = 4 * (first + at.g % batch<T>)+at.t;
    float ahead[FIELDS], behind[FIELDS];
    unit = 0;
#pragma unroll
    for (int f = 0; f < FIELDS; f++) {
      ahead[f] = call.source_scale[__shfl_sync(0xffffffffu, to.ahead[f], mine)];
      behind[f] = call.source_scale[__shfl_sync(0xffffffffu, to.behind[f], mine)];
      unit = max(unit, largest_exponent(ahead[f], behind[f]));
    }
#pragma unroll
    for (int f = 0; f < FIELDS; f++) my_ratios[f] = ratios_to(unit, ahead[f], behind[f]);
  }
  /* The right-hand sides from `skip` on. */
  __device__ void multiply(int skip, sums<T> &c) const {
    const int colour_bytes = call.n_rhs * number_bytes, count = call.n_rhs - skip;
#pragma unroll
    for (int n = 0; n < batch<T>; n++) {
#pragma unroll
      for (int i = 0; i < 4; i++) c[n][i] = 0;
#pragma unroll
      for (int f = 0; f < FIELDS; f++) {
        factors of_links = {};
        if constexpr (storage<T>::scaled)
          of_links = factors_of(__shfl_sync(0xffffffffu, my_ratios[f], 4 * n + at.t), at.g);
        product<T, TILE, FULL>(c[n], links[f][n], forward[f][n] + skip * number_bytes,
                               backward[f][n] + skip * number_bytes, colour_bytes, count, of_links,
                               at);
      }
    }
  }
  /* The same behind the epilogue, in units of 2^(*common - 127). */
  __device__ void tile(int skip, sums<T> &c, int *common) const {
    multiply(skip, c);
    *common = combine<T, TILE, FULL, END == ending::combined>(c, call, my_site, unit, place(skip),
                                                              call.n_rhs - skip, at);
  }
  struct placement {
    const gatherer &g;
    int offset;
    __device__ int64_t operator()(int n) const {
      return static_cast<int64_t>(g.site[n]) * g.site_bytes() + offset;
    }
  };
  __device__ placement place(int skip) const {
    return {*this, min(at.t, 2) * call.n_rhs * number_bytes + skip * number_bytes};
  }
  __device__ unsigned assigned() const {
    return (1u << present) - 1;
  }
  /* All right-hand sides in one tile. */
  __device__ void step_all(norm_adder<T> norms[2], const real step[2]) const {
    sums<T> c;
    multiply(0, c);
    take_any_step<T, TILE, END>(norms, c, call, my_site, unit, step, place(0), assigned(), at);
  }
  /* The half scale is shared by all right-hand sides: with more than one tile the products are
   * formed twice, first for the largest result, then to be stored. */
  __device__ void run(norm_adder<T> norms[2]) const {
    sums<T> c;
    int common = 127;
    float scale = 1.0f;
    uint32_t largest = 0;
    const bool measure = storage<T>::scaled && call.n_rhs > TILE;
    if constexpr (storage<T>::scaled)
      for (int skip = 0; measure && skip < call.n_rhs; skip += TILE) {
        tile(skip, c, &common);
        largest = max(largest, largest_of<T>(c, at));
      }
    for (int skip = 0; skip < call.n_rhs; skip += TILE) {
      tile(skip, c, &common);
      if constexpr (END == ending::summed) add_norms<T>(norms, c, common, assigned(), at);
      float factor = 1.0f;
      if constexpr (storage<T>::scaled) {
        scale = scale_of(measure ? largest : largest_of<T>(c, at), common, &factor);
      }
      store<T, TILE, FULL>(c, call, factor, place(skip), assigned(), call.n_rhs - skip, at);
    }
    /* Until then x, which may be out, is read by the old scale. */
    __syncwarp();
    if (storage<T>::scaled && at.t == 0 && at.g < present) call.out_scale[my_site] = scale;
  }
};

/* With two link fields a lane holds twice as much: three blocks then keep it in registers. */
template <typename T, int TILE, bool FULL, ending END, int FIELDS>
__global__ void __launch_bounds__(32 * GATHER_WARPS, FIELDS == 1 ? 4 : 3)
    gather(const __grid_constant__ md_tensor_call call) {
  const lane at;
  md_release_successor();
  const int64_t group =
      (static_cast<int64_t>(blockIdx.x) * GATHER_WARPS + threadIdx.x / 32) * GROUP;
  if (group >= call.count) return;
  const int64_t entry = min(group + at.g, call.count - 1);
  const int site = call.list ? call.list[entry] : static_cast<int>(entry);
  neighbours<FIELDS> to;
#pragma unroll
  for (int f = 0; f < FIELDS; f++) {
    to.ahead[f] = __ldcs(call.neighbour + (8 * f + at.t) * call.sites + site);
    to.behind[f] = __ldcs(call.neighbour + (8 * f + at.t + 4) * call.sites + site);
  }
  md_wait_for_predecessor(); /* it wrote the source, and may read out */
  const int left = static_cast<int>(min(call.count - group, static_cast<int64_t>(GROUP)));
  norm_adder<T> norms[2];
  typename storage<T>::accumulator step[2] = {};
  begin_ending<T, TILE, END>(norms, step, call, at);
#pragma unroll 2
  for (int first = 0; first < left; first += batch<T>) {
    const gatherer<T, TILE, FULL, END, FIELDS> g(call, at, site, to, first, left - first);
    if constexpr (takes_step<END>)
      g.step_all(norms, step);
    else
      g.run(norms);
  }
  if constexpr (leaves_norms<END>)
    leave_norms<T, TILE>(norms, call, static_cast<int>(group / GROUP), at);
}

template <typename T, int TILE, bool FULL, ending END>
cudaError_t launch_gather(const md_tensor_call *call) {
  return launch_groups(call, call->terms == MD_DIRECTIONS
                                 ? gather<T, TILE, FULL, END, 1>
                                 : gather<T, TILE, FULL, END, MD_MOST_LINK_FIELDS>);
}

template <typename T, int TILE, bool FULL> cudaError_t gather_plain(const md_tensor_call *call) {
  return call->x ? launch_gather<T, TILE, FULL, ending::combined>(call)
                 : launch_gather<T, TILE, FULL, ending::plain>(call);
}

/* The endings of solvers are for one whole tile of right-hand sides. */
template <typename T, int TILE> cudaError_t gather_tile(const md_tensor_call *call) {
  return by_ending<T>(call, [&](auto end) { return launch_gather<T, TILE, true, end()>(call); });
}

template <typename T> cudaError_t gather_rhs(const md_tensor_call *call) {
  if (call->n_rhs == 16) return gather_tile<T, 16>(call);
  if (call->n_rhs == 8) return gather_tile<T, 8>(call);
  if (call->n_rhs % 16 == 0) return gather_plain<T, 16, true>(call);
  return gather_plain<T, 16, false>(call);
}

} // namespace stacked

md_status md_tensor_gather(md_context *context, const md_tensor_call *call) {
  const auto launch = [&](auto number) { return stacked::gather_rhs<decltype(number)>(call); };
  return md_cuda_status(context, stacked::by_storage(call->precision, launch), "stacked kernel");
}
