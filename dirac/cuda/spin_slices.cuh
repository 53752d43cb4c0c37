#pragma once

#include "lattice/fields/cuda/storage.cuh"

extern "C" {
#include "dirac/wilson/wilson.h"
}
#include <math.h>

/* A matrix of the fifth dimension, (unit + hop X) (1 - ratio X)^-1, |ratio| <= 1, slice by slice:
 * y = (1 - ratio X)^-1 x has y_s = x_s + ratio y_(s+1) on spins 2 and 3, against the slices on
 * spins 0 and 1, and comes over the wall with -mass, which one lap ahead finds. */
template <class T> struct wall_steps {
  int slices; /* 0: no matrix */
  int ahead;  /* slices in front of the wall whose share rounding does not hide */
  T unit, hop, ratio;
  T across; /* of the lap's end: what comes over the wall */
};
template <class T>
static wall_steps<T> wall_steps_of(const md_wall_matrix *m, md_precision precision) {
  wall_steps<T> s = {};
  if (!m) return s;
  const double ratio = -m->over_hop / m->over_unit, wall = pow(ratio, m->slices);
  s.slices = m->slices;
  while (s.ahead < m->slices && pow(fabs(ratio), s.ahead) > md_precision_roundoff(precision) / 16)
    s.ahead++;
  s.unit = (T)(m->unit / m->over_unit), s.hop = (T)(m->hop / m->over_unit);
  s.ratio = (T)ratio, s.across = (T)(-m->mass / (1.0 + m->mass * wall));
  return s;
}

/* 16 bytes of a spinor, all of one chirality. */
template <class T> using spinor_piece = vector_of<T, 16 / (int)sizeof(T)>;
template <class T> constexpr int spinor_pieces = 24 * (int)sizeof(T) / 16;

/* A piece of all slices becomes the matrix times it; x: that of the first one of the walk, the next
 * one `step` reals further. */
template <class T>
static __device__ inline void walk_slices(const wall_steps<T> &m, T *x, int step) {
  /* Loads under way; those beside it in a thread leave less registers in single. */
  constexpr int reals = 16 / (int)sizeof(T), batch = sizeof(T) == 8 ? 4 : 1,
                lap = sizeof(T) == 8 ? 4 : 2;
  const auto piece = [&](int s) -> spinor_piece<T> & {
    return *reinterpret_cast<spinor_piece<T> *>(x + s * step);
  };
  spinor_piece<T> y = {};
#pragma unroll lap
  for (int s = m.slices - m.ahead; s < m.slices; s++) {
    const spinor_piece<T> v = piece(s);
#pragma unroll
    for (int e = 0; e < reals; e++) y.v[e] = v.v[e] + m.ratio * y.v[e];
  }
#pragma unroll
  for (int e = 0; e < reals; e++) y.v[e] *= m.across;
  for (int first = 0; first < m.slices; first += batch) {
    spinor_piece<T> v[batch];
#pragma unroll
    for (int s = 0; s < batch; s++)
      if (first + s < m.slices) v[s] = piece(first + s);
#pragma unroll
    for (int s = 0; s < batch; s++) {
      if (first + s >= m.slices) break;
      spinor_piece<T> out;
#pragma unroll
      for (int e = 0; e < reals; e++) {
        const T before = y.v[e];
        y.v[e] = v[s].v[e] + m.ratio * before;
        out.v[e] = m.unit * y.v[e] + m.hop * before;
      }
      piece(first + s) = out;
    }
  }
}

/* The part of a slice's thread in that: all its pieces together are the spinors of a site, that of
 * slice 0 at `spinors`, `apart` reals from each other. The threads meet before and after. */
template <class T>
static __device__ inline void multiply_slices(const wall_steps<T> &m, bool adjoint, int slice,
                                              T *spinors, int apart) {
  constexpr int pieces = spinor_pieces<T>, reals = 16 / (int)sizeof(T);
  for (int p = slice; p < pieces; p += m.slices) {
    const bool down = (p >= pieces / 2) != adjoint;
    walk_slices(m, spinors + p * reals + (down ? (m.slices - 1) * apart : 0),
                down ? -apart : apart);
  }
}
