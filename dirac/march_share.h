#pragma once

#include "base/divisor.h"
#include <stdbool.h>

MD_C_BEGIN

/* How the blocks of a march share its columns: which time slices of which columns a block walks
 * through. */

/* Blocks that walk in step bring each other's rims into L2. So in each of the `full` rounds every
 * block walks through one whole column, all from the first slice on. The columns that are left,
 * fewer than the blocks, are cut into pieces of `length` slices. Block k < owners walks through the
 * first `own` slices of piece k; what that leaves over of all pieces, the other blocks share, each
 * taking slices that follow each other. */
typedef struct md_march_share {
  int blocks, full, slices; /* of a column */
  int owners, length, own;
  int left;                                  /* slices that the owners leave over, of all pieces */
  md_divisor by_pieces, by_left, by_helpers; /* pieces of a column; length - own; other blocks */
} md_march_share;
/* Of `columns` of `slices` time slices each. A segment, which is one or more slices of a column
 * that a block walks through, takes the time of its slices and of `start` more. */
md_march_share md_march_share_out(int columns, int slices, int blocks, double start);
/* As many blocks that each has the same number of whole columns, if that is faster than `blocks`
 * that divide the last round into equal numbers of slices, out of step; else `blocks`. */
int md_march_even_blocks(int columns, int slices, int blocks);

/* The band along y, in tiles, that keeps the columns of one round of blocks, which take those of a
 * band in all of z before another band's, closest to a cube: its surface is fetched from memory
 * again by another round. tiles: of a time slice along x, y, z; y, z: sites of one. */
int md_march_band(const int tiles[3], int y, int z, int blocks);

/* Where a block is in its share. */
typedef struct md_march_walk {
  int round, low, high; /* slices of those that were left over, which the block has yet to walk */
} md_march_walk;
MD_HOST_DEVICE md_march_walk md_march_begin(const md_march_share *s, int block) {
  const int helper = block - s->owners;
  md_march_walk w = {0, 0, 0};
  if (helper < 0) return w;
  w.low = md_quotient(s->left * helper, s->by_helpers);
  w.high = md_quotient(s->left * (helper + 1), s->by_helpers);
  return w;
}
/* The next segment, slices t to last of a column; false at the end. */
MD_HOST_DEVICE bool md_march_next(const md_march_share *s, int block, md_march_walk *w, int *column,
                                  int *t, int *last) {
  if (w->round < s->full) {
    *column = w->round++ * s->blocks + block, *t = 0, *last = s->slices - 1;
    return true;
  }
  int piece = block, from = 0, count = s->own;
  if (block < s->owners) {
    if (w->round++ > s->full) return false;
  } else {
    if (w->low >= w->high) return false;
    piece = md_quotient(w->low, s->by_left);
    from = w->low - piece * (int)s->by_left.by;
    count = (int)s->by_left.by - from;
    if (count > w->high - w->low) count = w->high - w->low;
    w->low += count, from += s->own;
  }
  const int of_column = md_quotient(piece, s->by_pieces);
  *column = s->full * s->blocks + of_column;
  *t = (piece - of_column * (int)s->by_pieces.by) * s->length + from;
  *last = *t + count - 1;
  return true;
}

MD_C_END
