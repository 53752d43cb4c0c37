/* The device side of block.h: launches, and sums on their way to the host. */
#include <algorithm>
#include <new>

#include "lattice/fields/cuda/block_rows.cuh"

extern "C" {
#include "lattice/fields/spaces.h"
#include "lattice/fields/sum.h"
}
#include <math.h>

namespace {

using namespace md_block_rows;

void destroy(void *state) {
  device_block *d = (device_block *)state;
  cudaStreamSynchronize(md_stream());
  md_device_free(d->partial);
  md_device_free(d->matrices);
  md_device_free_pinned(d->values);
  md_device_free_pinned(d->serials);
  delete[] d->staging;
  delete[] d->one;
  delete d;
}

/* An update in one pass takes three matrices in double, which not every GPU has room for. */
md_status fit_matrices(md_context *context, device_block *d, int n) {
  const int groups = md_block_groups(n), room = context->gpu.block_shared_bytes;
  const int matrix = 64 * groups * groups * (int)sizeof(double2);
  if (room < 2 * matrix)
    return md_fail(context, MD_ENVIRONMENT,
                   "a block of %d right-hand sides in double needs %d bytes of shared memory, a "
                   "block of threads of the GPU of rank %d has %d; use at most 32 right-hand sides",
                   n, 2 * matrix, context->rank, room);
  if (room >= 3 * matrix) return MD_OK;
  d->one = new (std::nothrow) double[2 * (size_t)n * n]();
  if (!d->one) return md_fail_memory(context, 2 * (size_t)n * n * sizeof *d->one, "a block");
  for (int i = 0; i < n; i++) d->one[2 * ((size_t)i * n + i)] = 1.0;
  return MD_OK;
}

md_status create(md_context *context, const md_field_shape *shape, void **state) {
  const int n = shape->n_rhs;
  if (shape->precision != MD_DOUBLE && shape->components != 2 * COLOURS)
    return md_fail(
        context, MD_INPUT,
        "a block of narrow fields on a GPU has %d reals per site, got %d; take fields in double",
        2 * COLOURS, shape->components);
  device_block *d = new (std::nothrow) device_block();
  *state = d;
  if (!d) return md_fail_memory(context, sizeof *d, "block operations");
  MD_TRY(md_device_open(context));
  const int side = (n + SIDE - 1) / SIDE, groups = md_block_groups(n);
  if (shape->precision == MD_DOUBLE) MD_TRY(fit_matrices(context, d, n));
  d->n = n;
  d->blocks = BLOCKS_EACH * context->gpu.multiprocessors;
  d->tiles = side * (side + 1) / 2;
  const size_t entries = MD_BLOCK_ADDED * (64 * (size_t)groups * groups + 4 * groups);
  d->staging = new (std::nothrow) double2[entries];
  if (!d->staging) return md_fail_memory(context, entries * sizeof(double2), "block matrices");
  MD_TRY(md_device_allocate(context, sizeof(double) * TILE * d->tiles * d->blocks * MD_BLOCK_SLOTS,
                            "block sums", (void **)&d->partial));
  MD_TRY(md_device_allocate(context, entries * sizeof(double2), "block matrices",
                            (void **)&d->matrices));
  MD_TRY(md_device_allocate_pinned(context, sizeof(double) * TILE * d->tiles * MD_BLOCK_SLOTS,
                                   "block sums", (void **)&d->values));
  const size_t serials = (size_t)ADDERS * d->tiles * MD_BLOCK_SLOTS;
  MD_TRY(md_device_allocate_pinned(context, serials * sizeof(long long), "block sums",
                                   (void **)&d->serials));
  for (size_t k = 0; k < serials; k++) d->serials[k] = 0;
  return MD_OK;
}

double *partial_of(const device_block *d, int slot) {
  return slot < 0 ? NULL : d->partial + (size_t)slot * d->tiles * d->blocks * TILE;
}

/* Queues the sums over the blocks of all slots that wait for them, in one launch. */
md_status add_up(md_context *context, device_block *d) {
  all_sums all = {};
  bool any = false;
  for (int slot = 0; slot < MD_BLOCK_SLOTS; slot++) {
    if (!d->pending[slot]) continue;
    any = true;
    d->pending[slot] = false;
    d->of_slot[slot] = ++d->serial;
    all.of_slot[slot] = {partial_of(d, slot), d->values + (size_t)slot * d->tiles * TILE,
                         d->serials + (size_t)slot * d->tiles * ADDERS, d->serial};
  }
  if (!any) return MD_OK;
  md_launch_early(add_blocks, dim3(ADDERS, d->tiles, MD_BLOCK_SLOTS), dim3(1024), 0, all,
                  d->blocks);
  return md_cuda_launched(context, "sums of a block");
}

constexpr size_t GRAM_BYTES = MD_BLOCK_GRAM_BYTES;

void queue_gram(device_block *d, const md_field *x, int slot) {
  if (x->precision != MD_DOUBLE)
    md_block_narrow_gram(d, x, partial_of(d, slot));
  else
    multiply_self<<<dim3(d->blocks, d->tiles), THREADS, GRAM_BYTES, md_stream()>>>(
        view_of(x), partial_of(d, slot));
  d->pending[slot] = true;
}

/* Adds up at once: work that the sums need not wait for may be queued before they are taken. */
md_status gram(md_context *context, void *state, const md_field *x, int slot) {
  queue_gram((device_block *)state, x, slot);
  return add_up(context, (device_block *)state);
}

/* A matrix in the order of lanes: entry (4 s + t, 8 q + g) at ((q 2Q + s) 32 + 4 g + t). */
void stage(int n, int groups, const double *matrix, double2 *to) {
  for (int q = 0; q < groups; q++)
    for (int s = 0; s < 2 * groups; s++)
      for (int lane = 0; lane < 32; lane++) {
        const int i = 4 * s + lane % 4, j = 8 * q + lane / 4;
        const bool inside = i < n && j < n;
        const double *m = matrix + 2 * ((size_t)i * n + j);
        *to++ = inside ? make_double2(m[0], m[1]) : make_double2(0.0, 0.0);
      }
}

template <int Q, bool X, bool Z, bool GRAM>
md_status launch(md_context *context, device_block *d, md_field *y, const md_block_step *s) {
  constexpr size_t matrices = (1 + X + Z) * 64 * Q * Q * sizeof(double2);
  constexpr size_t bytes = GRAM && matrices < GRAM_BYTES ? GRAM_BYTES : matrices;
  auto *kernel = update_rows<Q, X, Z, GRAM>;
  MD_TRY(md_block_prepare(context, d, kernel, bytes, matrices));
  const view none = {};
  kernel<<<d->blocks, THREADS, bytes, md_stream()>>>(view_of(y), X ? view_of(s->x) : none,
                                                     Z ? view_of(s->z) : none, d->matrices,
                                                     s->backwards, partial_of(d, s->slot));
  return md_cuda_launched(context, "update of a block");
}

/* f(flag) as a type. */
template <class F> md_status with_flag(bool flag, F f) {
  return flag ? f(std::true_type()) : f(std::false_type());
}

/* Q groups of eight right-hand sides; beyond 16 the sums are too many for the registers. */
template <int Q>
md_status run(md_context *context, device_block *d, md_field *y, const md_block_step *s) {
  double2 *to = d->staging;
  stage(d->n, Q, s->b, to);
  if (s->x) stage(d->n, Q, s->a, to += 64 * Q * Q);
  if (s->z) stage(d->n, Q, s->c, to += 64 * Q * Q);
  return with_flag(s->x != NULL, [&](auto x) {
    return with_flag(s->z != NULL, [&](auto z) {
      return with_flag(s->slot >= 0, [&](auto sum) {
        return launch < Q, x(), z(), sum() && Q <= 2 > (context, d, y, s);
      });
    });
  });
}

md_status update(md_context *context, void *state, md_field *y, const md_block_step *s) {
  device_block *d = (device_block *)state;
  const int groups = md_block_groups(d->n);
  if (s->z && d->one) {
    md_block_step to_z = {}, rest = *s;
    to_z.b = d->one, to_z.x = y, to_z.a = s->c;
    to_z.slot = -1, to_z.backwards = s->backwards;
    rest.z = NULL;
    MD_TRY(update(context, state, s->z, &to_z));
    return update(context, state, y, &rest);
  }
  MD_TRY(y->precision != MD_DOUBLE
             ? md_block_narrow_update(context, d, y, s, NULL, partial_of(d, s->slot))
         : groups == 8 ? run<8>(context, d, y, s)
         : groups == 4 ? run<4>(context, d, y, s)
         : groups == 2 ? run<2>(context, d, y, s)
                       : run<1>(context, d, y, s));
  if (s->slot < 0) return MD_OK;
  if (groups > 2) queue_gram(d, s->to ? s->to : y, s->slot);
  d->pending[s->slot] = true;
  return md_cuda_launched(context, "sums of a block");
}

/* Until the serial numbers of so many tiles are `serial`. */
md_status wait_for(md_context *context, const long long *serials, int tiles, long long serial) {
  for (int k = 0; k < tiles * ADDERS; k++)
    MD_TRY(md_device_await(context, &serials[k], serial, "a sum of the block solver"));
  return MD_OK;
}

/* Entries of a tile, whose first is (row, column), of an n x n matrix; NULL: NaN. */
void take_tile(const double *tile, int n, int row, int column, double *to) {
  for (int i = 0; i < SIDE && row + i < n; i++)
    for (int e = 0; e < 2 * SIDE && 2 * column + e < 2 * n; e++)
      to[2 * ((row + i) * n + column) + e] = tile ? tile[2 * i * SIDE + e] : NAN;
}

/* Adds over the ranks, one of which may have failed, in an order that does not matter. */
md_status over_ranks(md_context *context, md_status own, int n, double *gram) {
  const int reals = 2 * n * n;
  if (context->ranks == 1) return own;
  MD_TRY(md_agree_soon(context, own, "a sum of the block solver"));
  md_sum *sums = new (std::nothrow) md_sum[reals]();
  MD_TRY(md_agree(context,
                  sums ? MD_OK : md_fail_memory(context, reals * sizeof *sums, "block sums")));
  for (int e = 0; e < reals; e++) md_sum_add(&sums[e], gram[e]);
  const md_status status = md_sum_finish(context, sums, reals, gram);
  delete[] sums;
  return status;
}

md_status wait(md_context *context, void *state, int slot, double *gram) {
  device_block *d = (device_block *)state;
  const int n = d->n;
  md_status status = d->pending[slot] ? add_up(context, d) : MD_OK;
  if (status == MD_OK)
    status = wait_for(context, d->serials + (size_t)slot * d->tiles * ADDERS, d->tiles,
                      d->of_slot[slot]);
  if (context->ranks == 1) MD_TRY(status);
  const double *tile = d->values + (size_t)slot * d->tiles * TILE;
  for (int column = 0; column < n; column += SIDE)
    for (int row = 0; row <= column; row += SIDE, tile += TILE)
      take_tile(status == MD_OK ? tile : NULL, n, row, column, gram);
  return over_ranks(context, status, n, gram);
}

md_status add(md_context *context, void *state, md_field *z, int count, const md_field *x,
              const double *c, const md_block_part *part) {
  device_block *d = (device_block *)state;
  const int most = md_block_added(md_block_groups(d->n));
  MD_TRY(add_up(context, d));
  for (int first = 0; first < count; first += most)
    MD_TRY(md_block_narrow_add(context, d, z, std::min(count - first, most), &x[first],
                               c + 2 * (size_t)first * d->n * d->n, part));
  return MD_OK;
}

/* The slots' memory serves as one: all tiles of a product, side^2, are no more than both
 * triangles'.
 */
md_status take_products(md_context *context, device_block *d, double *product) {
  const int n = d->n, side = (n + SIDE - 1) / SIDE, tiles = side * side;
  all_sums all = {};
  all.of_slot[0] = {d->partial, d->values, d->serials, ++d->serial};
  for (int slot = 0; slot < MD_BLOCK_SLOTS; slot++) d->pending[slot] = false;
  add_blocks<<<dim3(ADDERS, tiles, 1), dim3(1024), 0, md_stream()>>>(all, d->blocks);
  md_status status = md_cuda_launched(context, "products of a block");
  if (status == MD_OK) status = wait_for(context, d->serials, tiles, d->serial);
  const double *tile = d->values;
  for (int row = 0; row < n; row += SIDE)
    for (int column = 0; column < n; column += SIDE, tile += TILE)
      take_tile(status == MD_OK ? tile : NULL, n, row, column, product);
  return over_ranks(context, status, n, product);
}

md_status cross(md_context *context, void *state, const md_field *x, const md_field *y,
                double *product) {
  md_block_pairs((device_block *)state, x, y, ((device_block *)state)->partial);
  return take_products(context, (device_block *)state, product);
}

md_status update_cross(md_context *context, void *state, md_field *y, const md_block_step *s,
                       const md_field *with, double *product) {
  device_block *d = (device_block *)state;
  if (s->x && md_precision_bytes(y->precision) == 2 && d->n <= SIDE) {
    MD_TRY(md_defer(context, md_block_narrow_update(context, d, y, s, with, d->partial)));
    return take_products(context, d, product);
  }
  MD_TRY(md_defer(context, update(context, state, y, s)));
  return cross(context, state, with, s->to ? s->to : y, product);
}

} // namespace

extern "C" const md_block_space md_block_device = {create, destroy, gram,  update,
                                                   wait,   add,     cross, update_cross};
