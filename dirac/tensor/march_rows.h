#ifndef MD_DIRAC_TENSOR_MARCH_ROWS_H
#define MD_DIRAC_TENSOR_MARCH_ROWS_H

#include "dirac/tensor/kernels.h"

/* Which rows around a column a step of the march with two link fields reads, and in which order
 * they lie in a slot of the rim. Shared by host and device, so that tests without a GPU see what
 * kernels do. `plane`: the plane along z that is the step, 0 where a slice has one step. */

/* Rows of a step: its own, and those around it along y and z. Of two planes each reads three others
 * along z that lie outside the column. */
MD_SHARE_MAP int md_own_rows(const md_march_plan *plan) {
  return plan->y * plan->z / plan->steps;
}
MD_SHARE_MAP int md_rim_rows(const md_march_plan *plan) {
  return 2 * MARCH_REACH * (plan->y + plan->z) / plan->steps;
}

/* Relative to the column's corner, one of them outside the column. */
typedef struct md_rim_place {
  int y, z;
} md_rim_place;

/* Row k of those before and beyond a column, and its inverse. */
MD_SHARE_MAP int md_rim_outside(int k, int extent) {
  return k < MARCH_REACH ? k - MARCH_REACH : extent + k - MARCH_REACH;
}
MD_SHARE_MAP int md_rim_inward(int place, int extent) {
  return place < 0 ? place + MARCH_REACH : place - extent + MARCH_REACH;
}
/* Of two planes each has three of its four neighbours outside: both at distance three, and that at
 * distance one which is not the other plane. */
MD_SHARE_MAP int md_rim_nearest(int plane) {
  return plane ? 2 : -1;
}

/* Those along y come first. */
MD_SHARE_MAP md_rim_place md_rim_place_of(const md_march_plan *plan, int row, int plane) {
  const int along_y = 2 * MARCH_REACH * (int)plan->by_depth.by;
  md_rim_place p;
  if (row < along_y) {
    const int k = md_quotient(row, plan->by_depth), rest = row - k * (int)plan->by_depth.by;
    p.y = md_rim_outside(k, plan->y);
    p.z = plane + rest;
  } else {
    const int n = row - along_y, k = md_quotient(n, plan->by_y);
    p.y = n - k * (int)plan->by_y.by;
    p.z = plan->steps == 1 ? md_rim_outside(k, plan->z)
          : k == 1         ? md_rim_nearest(plane)
                           : plane + MARCH_REACH * (k - 1);
  }
  return p;
}
/* The row at that place. */
MD_SHARE_MAP int md_rim_row_at(const md_march_plan *plan, int y, int z, int plane) {
  const int depth = (int)plan->by_depth.by;
  if (y < 0 || y >= plan->y) return md_rim_inward(y, plan->y) * depth + z - plane;
  const int k = plan->steps == 1             ? md_rim_inward(z, plan->z)
                : z == md_rim_nearest(plane) ? 1
                                             : (z - plane) / MARCH_REACH + 1;
  return 2 * MARCH_REACH * depth + k * plan->y + y;
}

#endif
