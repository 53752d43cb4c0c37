/* Vectors of one storage type: what files that are compiled for each of them (SUFFIX; STORED;
 * ARITH, double or float) and for each instruction set share. */
#include "base/instruction_set.h"
#include "lattice/fields/lanes.h"

#define VECTOR MD_JOIN(md_lanes_, ARITH)
#define LOAD MD_JOIN(md_load_, SUFFIX)
#define STORE MD_JOIN(md_store_, SUFFIX)
#define STREAM MD_JOIN(md_stream_, SUFFIX)
#define PERMUTE MD_JOIN(md_permute_, ARITH)
#define SWAP MD_JOIN(md_swap_, ARITH)
#define PICK MD_JOIN(md_pick_, ARITH)
#define NEGATE MD_JOIN(md_negate_, ARITH)
#define SCALE_OF MD_JOIN(md_scale_of_, SUFFIX)
enum { LANES = MD_JOIN(MD_LANES_OF_, ARITH) };

/* The first `count` lanes at p; the others are zero. */
static inline VECTOR load_part(const STORED *p, int count) {
  STORED lane[LANES] = {0};
  if (count == LANES) return LOAD(p);
  for (int l = 0; l < count; l++) lane[l] = p[l];
  return LOAD(lane);
}
static inline void store_part(STORED *p, VECTOR v, int count, bool stream) {
  if (count == LANES) {
    if (stream)
      STREAM(p, v);
    else
      STORE(p, v);
    return;
  }
  STORED lane[LANES];
  STORE(lane, v);
  for (int l = 0; l < count; l++) p[l] = lane[l];
}
