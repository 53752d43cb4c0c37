#ifndef MD_DIRAC_TENSOR_STACKED_STEP_CUH
#define MD_DIRAC_TENSOR_STACKED_STEP_CUH

#include "dirac/tensor/stacked_finish.cuh"
#include "lattice/fields/cuda/unit_sum.cuh"

/* What a solver asks of the end of a hop: norms of the results, and the step
 * out += step (a x + b D in) into a field of the arithmetic type, or in half of its own
 * (md_hop_step). A lane adds up the norms of its two tile rows; the warps' sums go to memory at the
 * end of their work. */
namespace stacked {

enum class ending { plain, combined, summed, step, narrow_step, mixed };
template <ending E>
constexpr bool takes_step = E == ending::step || E == ending::narrow_step || E == ending::mixed;
template <ending E> constexpr bool leaves_norms = E == ending::summed || takes_step<E>;

/* The norms of a lane's two rows; beside numbers of 16 bits one word is exact enough. */
template <typename T> using norm_adder = unit_adder<storage<T>::adjacent>;

/* The right-hand side of the lane's low and high row. */
template <typename T, int TILE> __device__ inline int rhs_of_row(int row, const lane &at) {
  return TILE == 8 || !storage<T>::adjacent ? at.g + 8 * row : 2 * at.g + row;
}

/* A lane's rows of one colour in a field of the arithmetic type: v += the field, and field = v
 * where `assigned`. */
template <typename T, int TILE>
__device__ inline void add_to_rows(char *row, typename storage<T>::accumulator v[4], bool assigned,
                                   const lane &at) {
  if constexpr (TILE == 16 && storage<T>::adjacent) {
    float4 *p = reinterpret_cast<float4 *>(row) + at.g;
    const float4 old = __ldcs(p);
    v[0] += old.x, v[1] += old.y, v[2] += old.z, v[3] += old.w;
    if (at.t < 3 && assigned) __stcs(p, make_float4(v[0], v[1], v[2], v[3]));
  } else {
    using vector = typename std::conditional<storage<T>::adjacent, float2, double2>::type;
#pragma unroll
    for (int half = 0; half < TILE / 8; half++) {
      vector *p = reinterpret_cast<vector *>(row) + at.g + 8 * half;
      const vector old = __ldcs(p);
      v[2 * half] += old.x, v[2 * half + 1] += old.y;
      if (at.t < 3 && assigned) __stcs(p, vector{v[2 * half], v[2 * half + 1]});
    }
  }
}

/* norms[row] of the sites of a batch that are `assigned`; numbers of the lane's site are in units
 * of 2^(unit - 127). */
template <typename T>
__device__ inline void add_norms(norm_adder<T> norms[2], const sums<T> &c, int unit,
                                 unsigned assigned, const lane &at) {
#pragma unroll
  for (int n = 0; n < batch<T>; n++) {
    double weight = at.t < 3 && assigned >> n & 1u ? 1.0 : 0.0;
    if constexpr (storage<T>::scaled)
      weight *= __hiloint2double((2 * (of_site(unit, n) - 127) + 1023) << 20, 0);
    norms[0].add(weight * static_cast<double>(c[n][0] * c[n][0] + c[n][1] * c[n][1]));
    norms[1].add(weight * static_cast<double>(c[n][2] * c[n][2] + c[n][3] * c[n][3]));
  }
}

/* c = step (a x + b D in) of site n of a batch, D in in units of my_c, x in those of my_x. */
template <typename T, int TILE>
__device__ inline void
make_step(typename storage<T>::accumulator c[4], const md_tensor_call &call, float my_c, float my_x,
          int n, const typename storage<T>::accumulator step[2], int64_t place, const lane &at) {
  using real = typename storage<T>::accumulator;
  real factor_c = static_cast<real>(MD_HOP_FACTOR * call.b), factor_x = static_cast<real>(call.a);
  if constexpr (storage<T>::scaled) factor_c *= of_site(my_c, n), factor_x *= of_site(my_x, n);
  add_epilogue<T, TILE, true>(c, factor_c, factor_x, static_cast<const char *>(call.x) + place,
                              TILE, at);
#pragma unroll
  for (int i = 0; i < 4; i++) c[i] *= step[i / 2];
}

/* The step of the sites of a batch that are `assigned`, whose places are as in `combine`, with the
 * norms of what it leaves. */
template <typename T, int TILE, typename PLACE>
__device__ inline void take_step(norm_adder<T> norms[2], sums<T> &c, const md_tensor_call &call,
                                 int64_t my_site, int unit,
                                 const typename storage<T>::accumulator step[2], PLACE place,
                                 unsigned assigned, const lane &at) {
  using real = typename storage<T>::accumulator;
  constexpr int wider = 2 * sizeof(real) / sizeof(typename storage<T>::number);
  float my_c = 1.0f, my_x = 1.0f;
  if constexpr (storage<T>::scaled) my_c = power_of_two(unit), my_x = call.x_scale[my_site];
#pragma unroll
  for (int n = 0; n < batch<T>; n++) {
    make_step<T, TILE>(c[n], call, my_c, my_x, n, step, place(n), at);
    add_to_rows<T, TILE>(static_cast<char *>(call.out) + wider * place(n), c[n], assigned >> n & 1u,
                         at);
  }
  add_norms<T>(norms, c, 127, assigned, at);
}

/* What md_hop_step says of `before`, in double. The rows of steps lie in L1, and registers are
 * short. */
template <int TILE, typename PLACE>
__device__ inline void take_mixed_step(norm_adder<double> norms[2], sums<double> &c,
                                       const md_tensor_call &call, PLACE place, unsigned assigned,
                                       const lane &at) {
  constexpr int halves = TILE / 8;
#pragma unroll
  for (int n = 0; n < batch<double>; n++) {
    const int64_t start = place(n);
    const auto row = [&](const void *field, int half) {
      return reinterpret_cast<const double2 *>(static_cast<const char *>(field) + start) + at.g +
             8 * half;
    };
#pragma unroll
    for (int half = 0; half < halves; half++) {
      const double *step = call.step + rhs_of_row<double, TILE>(half, at);
      const double2 x = __ldcs(row(call.x, half)), before = __ldcs(row(call.before, half));
      const double of_in = MD_HOP_FACTOR * call.b * __ldg(step);
      const double of_x = __ldg(step + MD_MAX_RHS), of_before = __ldg(step + 2 * MD_MAX_RHS);
      double *v = c[n] + 2 * half;
      v[0] = of_in * v[0] + of_x * x.x + of_before * before.x;
      v[1] = of_in * v[1] + of_x * x.y + of_before * before.y;
      if (at.t < 3 && assigned >> n & 1u)
        __stcs(const_cast<double2 *>(row(call.out, half)), double2{v[0], v[1]});
    }
  }
  add_norms<double>(norms, c, 127, assigned, at);
}

/* A step into a field of half, which gets new scales. The norms are of numbers not yet rounded. */
template <int TILE, typename PLACE>
__device__ inline void take_narrow_step(norm_adder<__half> norms[2], sums<__half> &c,
                                        const md_tensor_call &call, int64_t my_site, int unit,
                                        const float step[2], PLACE place, unsigned assigned,
                                        const lane &at) {
  const float my_c = power_of_two(unit), my_x = call.x_scale[my_site];
  const float my_old = call.out_scale[my_site];
#pragma unroll
  for (int n = 0; n < batch<__half>; n++) {
    make_step<__half, TILE>(c[n], call, my_c, my_x, n, step, place(n), at);
    add_epilogue<__half, TILE, true>(c[n], 1.0f, of_site(my_old, n),
                                     static_cast<const char *>(call.out) + place(n), TILE, at);
  }
  add_norms<__half>(norms, c, 127, assigned, at);
  float factor;
  const float scale = scale_of(largest_of<__half>(c, at), 127, &factor);
  if (at.t == 0 && at.g < batch<__half> && assigned >> at.g & 1u) call.out_scale[my_site] = scale;
  store<__half, TILE, true>(c, call, factor, place, assigned, TILE, at);
}

/* One of them, as END says. */
template <typename T, int TILE, ending END, typename PLACE>
__device__ inline void take_any_step(norm_adder<T> norms[2], sums<T> &c, const md_tensor_call &call,
                                     int64_t my_site, int unit,
                                     const typename storage<T>::accumulator step[2], PLACE place,
                                     unsigned assigned, const lane &at) {
  if constexpr (END == ending::narrow_step)
    take_narrow_step<TILE>(norms, c, call, my_site, unit, step, place, assigned, at);
  else if constexpr (END == ending::mixed)
    take_mixed_step<TILE>(norms, c, call, place, assigned, at);
  else
    take_step<T, TILE>(norms, c, call, my_site, unit, step, place, assigned, at);
}

/* Before the first site. A step need not be summed: without call.norm2 nothing comes of its norms.
 */
template <typename T, int TILE>
__device__ inline void begin_norms(norm_adder<T> norms[2], const md_tensor_call &call,
                                   const lane &at) {
  for (int row = 0; row < TILE / 8; row++)
    norms[row].begin(call.norm2 ? call.units[rhs_of_row<T, TILE>(row, at)] : sum_units{});
}

/* Leaves a warp's norms. */
template <typename T, int TILE>
__device__ inline void leave_norms(const norm_adder<T> norms[2], const md_tensor_call &call,
                                   int place, const lane &at) {
  if (!call.norm2) return;
  for (int row = 0; row < TILE / 8; row++) {
    const int rhs = rhs_of_row<T, TILE>(row, at);
    unit_sum sum = norms[row].sum(call.units[rhs]);
    for (int distance = 1; distance <= 2; distance *= 2) {
      sum.high += __shfl_xor_sync(0xffffffffu, sum.high, distance);
      if (!storage<T>::adjacent) sum.low += __shfl_xor_sync(0xffffffffu, sum.low, distance);
    }
    if (at.t == 0) add_to_slot<storage<T>::adjacent>(call.norm2, rhs, place, sum);
  }
}

} // namespace stacked

#endif
