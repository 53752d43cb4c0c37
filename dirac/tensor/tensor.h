#pragma once

#include "dirac/tensor/march.h"
#include "lattice/halo/arrivals.h"

/* What `tensor` (GPU) and `tensor_emu` (host) share, and behind it the kernels of `tensor`. */
MD_C_BEGIN

/* Whether the packing of a request serves its precision and number of right-hand sides; MD_INPUT
 * with the reason where it does not. Both backends have it as their check callback. Local. */
md_status md_tensor_check(md_context *context, const md_backend_request *request);

/* Right-hand sides that fill the rows of a tile of stacked. */
enum { MD_STACKED_LEAST = 8, MD_STACKED_MOST = 16 };
/* As a callback: how packings rank among each other, below all backends that are made for speed.
 * Local. */
int md_tensor_speed_of(const md_context *context, const md_backend_request *request, int n_rhs,
                       const int *local, const char **reason);

/* As a callback: in words, why it ranks first of those that serve a request. */
const char *md_tensor_packing_reason(md_packing packing);

/* Bytes of link data that one hop reads per output site: a whole matrix for each term of the
 * action, that is, for each of the neighbours that D couples a site to. */
double md_tensor_link_bytes(const md_backend_request *request);

/* What their entries in the table have in common. */
#define MD_TENSOR_BACKEND                                                                          \
  .precisions = 1u << MD_DOUBLE | 1u << MD_HALF | 1u << MD_BF16,                                   \
  .reconstructs = 1u << MD_RECONSTRUCT_18,                                                         \
  .packings = 1u << MD_PACKING_SINGLE | 1u << MD_PACKING_DIAGONAL | 1u << MD_PACKING_BLOCK8 |      \
              1u << MD_PACKING_STACKED,                                                            \
  .actions = MD_STAGGERED_ACTIONS | MD_SPIN_ACTIONS, .check = md_tensor_check,                     \
  .packing_reason = md_tensor_packing_reason, .link_bytes = md_tensor_link_bytes

/* Independent products of 3x3 complex matrices and vectors, for `bench dirac --kernel matvec`. The
 * packings were first measured by them: there is nothing but the product, no neighbours and no sum
 * over directions. */
enum { MD_MATVEC_MATRIX = 18, MD_MATVEC_VECTOR = 6 }; /* reals, [row][column][re, im] */

typedef struct md_matvec {
  int64_t count;
  const uint16_t *matrices, *vectors; /* fp16, [count][18] and [count][6] */
  float *results;                     /* [count][6], assigned */
} md_matvec;

/* results[n] = matrices[n] vectors[n] on the host in float arithmetic; threads share the products.
 * Local. */
void md_matvec_host(const md_matvec *work);

/* The same on the device, where all three arrays lie. With packing none, one CUDA thread forms one
 * product in float; single, diagonal and block8 fill WMMA tiles. One kernel forms all products
 * `passes` times, so that the difference of two times leaves the launch out. The work is queued,
 * not waited for. Only in builds with CUDA. Local. */
md_status md_matvec_device(md_context *context, md_packing packing, int passes,
                           const md_matvec *work);

/* A matrix of the fifth dimension, the sum of c[k] X^k; slices 0: none. */
enum { MD_TENSOR_SLICES = 2 * MD_SPIN_TILE };
typedef struct md_tensor_walls {
  int slices;
  float mass, c[MD_TENSOR_SLICES];
} md_tensor_walls;
/* Entry (to, from) of what acts on spins 2 and 3 (`lower`), its transpose on spins 0 and 1; 0
 * beyond the slices. */
MD_TILE_MAP float md_tensor_wall(const md_tensor_walls *w, bool lower, int to, int from) {
  const int k = lower ? from - to : to - from;
  if (to >= w->slices || from >= w->slices) return 0.0f;
  return k < 0 ? -w->mass * w->c[k + w->slices] : w->c[k];
}

/* One hop as the kernels take it. Everything points to device memory. */
typedef struct md_tensor_call {
  md_packing packing;
  md_precision precision;
  int terms;                 /* of the action: 8 for each link field */
  const void *links;         /* of the output parity: stacked [site][field] in the order of
                                md_stacked_link_at, else [site][term][18] */
  const int32_t *neighbour;  /* [term][site] of the output parity */
  const void *source;        /* as in a field: [site][colour][rhs] or six planes */
  const float *source_scale; /* half only, else NULL; likewise the other scales */
  void *out;
  float *out_scale;
  const void *x; /* md_hop_end; NULL: out = D in */
  const float *x_scale;
  double a, b;
  /* md_hop_step; out is MD_SINGLE or MD_DOUBLE then, or MD_HALF if `narrow`. A step and norm2 are
   * served where md_march_plans finds a plan, but not in bf16, and norm2 alone only for plain
   * D in; of four spins both with walls and x, in half, wherever the lattice. */
  const double *step;
  const void *before; /* MD_DOUBLE alone; NULL: none */
  md_unit_sum *norm2; /* [rhs][MD_SUM_SLOTS], in units[rhs], as md_partial_sums */
  const struct sum_units *units;
  const int32_t *list; /* output sites; NULL: 0 .. count-1 */
  int64_t count, sites;
  int64_t in_stride, out_stride; /* of planes, n_rhs == 1; x is like out */
  int n_rhs, parity;
  int slices;            /* of quarks with four spins, 1 for Wilson's; 0: quarks without spin */
  bool adjoint;          /* of four spins: H^dag, and the transpose of */
  md_tensor_walls walls; /* what multiplies x, where there is none the hop; one right-hand side in
                            16 bits */
  int local[MD_DIMS];
  /* For the march: only sites with coordinates low <= x < high are assigned, and unless `ends` is 0
   * of the time slices low .. high-1 only as many at the beginning and at the end. stride: sites
   * from a neighbour beyond this rank along x, y or z to that of the next time slice; one link
   * field. */
  int low[MD_DIMS], high[MD_DIMS], stride[MD_DIMS];
  int ends;
  bool narrow; /* of a step */
  /* Of a march of all sites with one link field: where the slices beyond both ends along t arrive,
   * and before how many columns of a block are done the one beyond the lower end and the one beyond
   * the upper end are there. Of half of the boundary with two link fields: where they lie. */
  md_halo_arrivals arrivals;
  int late[2];
  md_march_share share; /* set where the march is launched */
  void *queue;          /* stream, NULL: that of all work */
} md_tensor_call;

/* Each of these functions queues one kernel, and returns MD_ENVIRONMENT when it cannot start. */

/* The packings single, diagonal and block8 by WMMA, for any lattice, action and list of sites. */
md_status md_tensor_tiles(md_context *context, const md_tensor_call *call);
/* The packing stacked for any lattice, action, list of sites and number of right-hand sides. It
 * gathers neighbours from global memory. Steps and norms are served for 8 and 16 right-hand sides.
 */
md_status md_tensor_gather(md_context *context, const md_tensor_call *call);
/* The same for quarks with four spins, one right-hand side or more, H^dag and walls. */
md_status md_tensor_gather_spins(md_context *context, const md_tensor_call *call);

/* Queues the march that was planned; MD_ENVIRONMENT when it cannot start. The second is what the
 * first calls for two link fields. */
md_status md_tensor_march(md_context *context, const md_tensor_call *call,
                          const md_march_plan *plan);
md_status md_tensor_march_long(md_context *context, const md_tensor_call *call,
                               const md_march_plan *plan);
/* The same for quarks with four spins; it waits for no arrivals. */
md_status md_tensor_march_spins(md_context *context, const md_tensor_call *call,
                                const md_march_plan *plan);

MD_C_END
