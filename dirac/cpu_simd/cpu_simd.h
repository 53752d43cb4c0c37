#pragma once

#include "base/instruction_set.h"
#include "dirac/backend.h"

/* cpu_simd inside: what its files share, and what tests need to force an instruction set.
 *
 * One right-hand side: sites of a parity are taken in blocks of W consecutive ones, W the lanes of
 * a vector register. Many right-hand sides: a block is one site, vectors run along the right-hand
 * sides. The links are copied once, in the order in which the blocks are visited:
 *   one   [block][terms][18 or 12 reals][W lanes]
 *   many  [site][18 or 12 reals][terms]
 * as dirac/links/ folds them, so that a hop is a sum over terms of u * v(neighbour) and reads the
 * links as one stream. The terms are 8 or 16, those of the action. Of reconstruct-12 the sign of
 * the third row is in md_simd_plan.sign. */

enum {
  MD_SIMD_CONTIGUOUS = 0,  /* pattern number of W neighbours in a row */
  MD_SIMD_GATHER = 0xffff, /* neighbours that two vectors do not hold */
  MD_SIMD_MOST_LANES = 16,
  MD_SIMD_AHEAD = 16 /* blocks that the neighbour plan is fetched before its use */
};

/* Where fetches put links (one right-hand side). */
typedef enum md_simd_fetch {
  MD_SIMD_FETCH_L1,  /* into every cache */
  MD_SIMD_FETCH_L2,  /* into L2 and beyond, where more requests can be under way than in L1 */
  MD_SIMD_FETCH_ONCE /* where they take no place of fields; neighbours are fetched too */
} md_simd_fetch;

/* Where the blocks of one output parity find their neighbours. Entry e = block * terms + term. */
typedef struct md_simd_plan {
  int lanes, terms;
  int64_t blocks;
  int32_t *site;     /* [block] first site; ascending where lanes > 1 */
  int32_t *first;    /* [e] where the first vector of neighbours starts; gather: row of `gather`;
                        zeros for one block more, whose neighbours are fetched but not used */
  int32_t *second;   /* [e] where the second one starts (lanes > 1) */
  uint16_t *pattern; /* [e] how the two make the neighbours: row of `pick` (lanes > 1) */
  uint16_t *sign;    /* [e] bit per lane: the link is folded with a minus sign */
  int32_t *pick;     /* [pattern][lane] 0..W-1 of the first vector, W..2W-1 of the second */
  int32_t *gather;   /* [row][lane] indices */
  int patterns;
  int64_t gathers, patterns_room, gathers_room;
  int32_t *range[3];   /* by md_range: the blocks in order; ALL: NULL, that is 0, 1, 2, ... */
  int64_t in_range[3]; /* how many */
} md_simd_plan;

/* One stencil call as kernels see it. */
typedef struct md_simd_call {
  const md_simd_plan *plan;
  const void *links;
  int64_t sites; /* of the output parity */
  int n_rhs, slices;
  void *out;
  const void *in, *x; /* x NULL: plain D in */
  int64_t out_stride, in_stride, x_stride;
  float *out_scale; /* half and fixed, else NULL */
  const float *in_scale, *x_scale;
  float link_unit[MD_MOST_LINK_FIELDS]; /* what stored links of general matrices are multiples of */
  double a, b; /* out = a x + b (sum over directions): the factor 1/2 of D is in b */
  /* Of four spins: H^dag in place of H, and, of one right-hand side, a matrix of x, where there is
   * no x of the sum; its transpose with `adjoint`. */
  bool adjoint;
  const struct md_wall_matrix *matrix;
  int ahead; /* bytes that links are fetched before their use (one right-hand side) */
  md_simd_fetch fetch;
  bool stream;          /* results go past the caches, where the instruction set can do that */
  const int32_t *order; /* blocks to do; NULL: 0, 1, 2, ... */
} md_simd_call;

/* Assigns the blocks order[begin .. end-1]. */
typedef void md_simd_kernel(const md_simd_call *call, int64_t begin, int64_t end);

/* What one instruction set and precision offers for one or two link fields; [0] reconstruct-18, [1]
 * reconstruct-12. `spins`, for one right-hand side and for many: H. */
typedef struct md_simd_kernels {
  int lanes;
  md_simd_kernel *one[2], *many[2], *spins[2][2];
} md_simd_kernels;

/* What follows from sizes, as measured with 32 MB of last cache (bench/tried.md). None of it
 * changes a bit of a result.
 *
 * One right-hand side: results go past the caches where a field of one parity is larger than this
 * part of the last one; of smaller ones much is still there when the next hop reads it (on 16 cores
 * of a Xeon with 300 MB that is 1.5 times as fast in turn). Many with four spins: likewise. Others:
 * where the link copy of one parity is larger than MD_SIMD_STREAM_BYTES. */
#define MD_SIMD_KEPT (1.0 / 16.0)
#define MD_SIMD_KEPT_MANY (1.0 / 4.0)
#define MD_SIMD_STREAM_BYTES 16e6
/* The copies of both parities, which hops in turn read, come from a cache where on all ranks of a
 * host together they are at most this many times as large as the last one. With AVX-512 (Zen 4) the
 * others are fetched for one use, and fetches only put the requests of lines in order: they stay a
 * line behind where links are used as they are stored; where a third row or a conversion stands
 * between, they are three lines ahead. On Zen 5 they are far ahead, and from a cache too. With
 * other instruction sets (Zen 3) links are fetched far ahead from a cache, else nearer. On Intel
 * they are fetched far ahead into L2: what is fetched for one use there bypasses L2, which alone
 * has room for as many requests as a core can have under way. */
#define MD_SIMD_CACHED 1.2
enum { MD_SIMD_ZEN5 = 26 /* md_cpu_family */ };
enum { MD_SIMD_FAR = 6144, MD_SIMD_NEAR = 1024, MD_SIMD_THREE_LINES = 192, MD_SIMD_BEHIND = -64 };

typedef struct md_simd_state {
  const md_simd_kernels *kernels;
  md_backend_request request;
  int ahead;                      /* of md_simd_call */
  md_simd_fetch fetch;            /* likewise */
  bool stream;                    /* likewise */
  md_simd_plan plan[MD_PARITIES]; /* by output parity */
  void *links[MD_PARITIES];
  double link_unit[MD_MOST_LINK_FIELDS];
} md_simd_state;

/* Builds the plan of output parity `parity` for blocks of `lanes` sites. Blocks of one site are
 * ordered so that each thread goes through `planes` planes of z along t before it takes the next
 * ones. Local. */
md_status md_simd_plan_create(md_context *context, const md_links *links, int parity, int lanes,
                              int planes, md_simd_plan *plan);
void md_simd_plan_destroy(md_simd_plan *plan);

/* The backend's load with the instruction set given, which must run, and the planes of the plan; 0:
 * as sizes have it. */
md_status md_simd_load(md_context *context, const md_links *links,
                       const md_backend_request *request, md_isa isa, int planes, void **state);

extern const md_backend md_backend_cpu_simd;
