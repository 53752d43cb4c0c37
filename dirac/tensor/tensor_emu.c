/* The Tensor Core packings on the host: the index maps of packing.h, inputs rounded to the storage
 * type, products summed in the order of the tile in float (double for MD_DOUBLE). For tests and
 * validation of the packings on machines without a GPU; not made for speed. Behind it what builds
 * without CUDA have of the GPU's packings too. */
#include "dirac/tensor/tensor.h"

#include "base/memory.h"
#include "lattice/fields/reals.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>

enum { TILE_SIZE = MD_TILE * MD_TILE, MOST_ITEMS = 8, MOST_K = MD_STACKED_K * MD_MOST_LINK_FIELDS };

typedef struct tensor_emu {
  md_backend_request request;
  double *links[MD_PARITIES]; /* [site][term][18], rounded to the storage type */
  int terms;
} tensor_emu;

/* What one output site reads: source vectors in units of the largest of their scales. */
typedef struct site_input {
  const double *links;
  int64_t source[MD_MOST_TERMS];
  double ratio[MD_MOST_TERMS]; /* scale of the source over the largest of all, 1 unscaled */
  double scale;                /* the largest */
} site_input;

static void unload(void *state) {
  tensor_emu *s = state;
  for (int p = 0; s && p < MD_PARITIES; p++) free(s->links[p]);
  free(s);
}

static md_status load(md_context *context, const md_links *links, const md_backend_request *request,
                      void **state) {
  const md_geometry *g = links->field->geometry;
  const size_t reals = (size_t)md_action_terms(request->action) * MD_LINK_REALS;
  tensor_emu *s = calloc(1, sizeof *s);
  *state = NULL;
  if (!s) return md_fail_memory(context, sizeof *s, "tensor_emu");
  s->request = *request;
  s->terms = md_action_terms(request->action);
  for (int p = 0; p < MD_PARITIES; p++) {
    const md_status status = md_allocate(context, (size_t)g->sites * reals * sizeof(double),
                                         "links of tensor_emu", (void **)&s->links[p]);
    if (status != MD_OK) {
      unload(s);
      return status;
    }
    if (md_counts(context)) continue;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < g->sites; i++) {
      double *to = s->links[p] + (size_t)i * reals;
      for (int term = 0; term < s->terms; term++)
        md_links_fold(links, p, term, i, 1, false, to + term * MD_LINK_REALS);
      for (size_t c = 0; c < reals; c++) to[c] = md_stored(request->precision, to[c]);
    }
  }
  *state = s;
  return MD_OK;
}

static site_input input_of(const tensor_emu *s, int parity, int64_t site, const md_field *in) {
  site_input input = {.links = s->links[parity] + site * (s->terms * MD_LINK_REALS)};
  for (int term = 0; term < s->terms; term++) {
    const md_link_term t = md_links_term(s->request.action, term);
    input.source[term] = md_neighbours(in->geometry, t.hop, parity, t.direction)[site];
    input.ratio[term] = in->scale ? in->scale[input.source[term]] : 1.0;
    input.scale = fmax(input.scale, input.ratio[term]);
  }
  for (int term = 0; term < s->terms; term++) input.ratio[term] /= input.scale;
  return input;
}

/* The link number as it enters tile A: the ratio of scales goes into the link. */
static double link_entry(const tensor_emu *s, const site_input *input, int term, int row,
                         int column, int part) {
  const double u = input->links[term * MD_LINK_REALS + 2 * (3 * row + column) + part];
  return md_stored(s->request.precision, u * input->ratio[term]);
}

/* Stored numbers of the source vector, pairs [re, im]: what lies in memory, scale taken off. */
static void source_vector(const md_field *in, int64_t site, int rhs, double *v) {
  md_field_get(in, site, rhs, v);
  if (in->scale)
    for (int c = 0; c < in->components; c++) v[c] /= in->scale[site];
}

static double accumulate(md_precision precision, double sum, double a, double b) {
  return precision == MD_DOUBLE ? sum + a * b : (double)((float)sum + (float)(a * b));
}

/* c += A B for the tiles of one product and term. */
static void tile_product(const tensor_emu *s, const site_input *input, int items,
                         const md_field *in, int term, int product, double c[TILE_SIZE]) {
  const md_packing packing = s->request.packing;
  double a[TILE_SIZE], b[TILE_SIZE], v[MOST_ITEMS][MD_FERMION_REALS];
  for (int m = 0; m < items; m++) source_vector(in, input[m].source[term], 0, v[m]);
  for (int at = 0; at < TILE_SIZE; at++) {
    const md_tile_entry ea = md_tile_a(packing, product, at / MD_TILE, at % MD_TILE);
    const md_tile_entry eb = md_tile_b(packing, product, at / MD_TILE, at % MD_TILE);
    a[at] = b[at] = 0.0;
    if (ea.sign && ea.item < items)
      a[at] = ea.sign * link_entry(s, &input[ea.item], term, ea.row, ea.column, ea.part);
    if (eb.sign && eb.item < items) b[at] = eb.sign * v[eb.item][2 * eb.row + eb.part];
  }
  for (int i = 0; i < MD_TILE; i++)
    for (int j = 0; j < MD_TILE; j++)
      for (int k = 0; k < MD_TILE; k++)
        c[i * MD_TILE + j] = accumulate(s->request.precision, c[i * MD_TILE + j],
                                        a[i * MD_TILE + k], b[k * MD_TILE + j]);
}

/* single, diagonal, block8: `items` sites at once, result[m] in units of input[m].scale. */
static void hop_tile(const tensor_emu *s, const site_input *input, int items, const md_field *in,
                     double result[MOST_ITEMS][MD_FERMION_REALS]) {
  const md_packing packing = s->request.packing;
  double c[2][TILE_SIZE] = {{0.0}};
  for (int term = 0; term < s->terms; term++)
    for (int product = 0; product < md_tile_products(packing); product++)
      tile_product(s, input, items, in, term, product,
                   c[packing == MD_PACKING_BLOCK8 ? 0 : md_tile_accumulator(product)]);
  for (int accumulator = 0; accumulator < md_tile_accumulators(packing); accumulator++)
    for (int at = 0; at < TILE_SIZE; at++) {
      const md_tile_entry e = md_tile_c(packing, accumulator, at / MD_TILE, at % MD_TILE);
      if (e.sign && e.item < items) result[e.item][2 * e.row + e.part] = c[accumulator][at];
    }
}

/* The first term of the link field whose step k is. */
static int first_term(int k) {
  return k / MD_STACKED_K * MD_DIRECTIONS;
}

/* stacked: one site, right-hand sides first .. first+count-1 (16 at most) as rows of the tile. */
static void hop_stacked(const tensor_emu *s, const site_input *input, const md_field *in, int first,
                        int count, double (*result)[MD_FERMION_REALS]) {
  const md_precision precision = s->request.precision;
  const int depth = MD_STACKED_K * s->terms / MD_DIRECTIONS;
  double a[MD_TILE][MOST_K] = {{0.0}}, v[MD_FERMION_REALS];
  for (int row = 0; row < MD_TILE; row++) {
    const int rhs = md_stacked_rhs(precision, MD_TILE, row);
    for (int k = 0; k < depth && rhs < count; k++) {
      const md_stacked_k at = md_stacked_row(precision, k % MD_STACKED_K);
      source_vector(in, input->source[first_term(k) + at.direction], first + rhs, v);
      a[row][k] = v[2 * at.colour + at.part];
    }
  }
  for (int column = 0; column < MD_STACKED_RESULTS; column++) {
    double b[MOST_K];
    for (int k = 0; k < depth; k++) {
      const md_tile_entry e = md_stacked_b(precision, k % MD_STACKED_K, column);
      b[k] = e.sign * link_entry(s, input, first_term(k) + e.item, e.row, e.column, e.part);
    }
    for (int row = 0; row < MD_TILE; row++) {
      const int rhs = md_stacked_rhs(precision, MD_TILE, row);
      double sum = 0.0;
      for (int k = 0; k < depth; k++) sum = accumulate(precision, sum, a[row][k], b[k]);
      if (rhs < count) result[first + rhs][column] = sum;
    }
  }
}

/* Part of i^turn z. */
static double turned(const double z[2], int turn, int part) {
  const bool minus = part ? turn >= 2 : turn == 1 || turn == 2;
  const double value = z[part ^ (turn & 1)];
  return minus ? -value : value;
}

/* With spin: a row of one accumulator, column `column` of the site's with the sources psi; the six
 * reals of its spin go to `result`. The sum of two numbers fits half (MD_HALF_MOST). */
static void spin_row(const tensor_emu *s, const site_input *input, const double *const psi[],
                     int spin, double result[MD_STACKED_RESULTS]) {
  const md_precision precision = s->request.precision;
  double a[MD_STACKED_K], b;
  for (int k = 0; k < MD_STACKED_K; k++) {
    const md_stacked_k at = md_stacked_row(precision, k);
    const md_spin_partner p = md_spin_partner_of(at.direction, spin);
    const double *v = psi[at.direction] + 2 * at.colour;
    a[k] = md_stored(precision,
                     v[6 * spin + at.part] + turned(v + (ptrdiff_t)6 * p.spin, p.turn, at.part));
  }
  for (int column = 0; column < MD_STACKED_RESULTS; column++) {
    result[column] = 0.0;
    for (int k = 0; k < MD_STACKED_K; k++) {
      const md_tile_entry e = md_stacked_b(precision, k, column);
      b = e.sign * link_entry(s, input, e.item, e.row, e.column, e.part);
      result[column] = accumulate(precision, result[column], a[k], b);
    }
  }
}

/* With spin: all right-hand sides of a site, result[rhs][components], in units of input->scale.
 * `psi` has room for the site's eight sources of one right-hand side. */
static void hop_spins(const tensor_emu *s, const site_input *input, const md_field *in, double *psi,
                      double *result) {
  const int n = in->components, columns = md_request_slices(&s->request) * in->n_rhs;
  const double *of[MD_DIRECTIONS];
  int held = -1;
  for (int tile = 0; tile < columns; tile += MD_SPIN_TILE) {
    const int wide = columns - tile > MD_SPIN_FOUR ? MD_SPIN_TILE : MD_SPIN_FOUR;
    for (int at = 0; at < wide / MD_SPIN_FOUR * MD_TILE; at++) {
      const md_spin_place row = md_spin_place_of(wide, at / MD_TILE, at % MD_TILE);
      const int column = tile + row.column, spin = row.spin;
      const int slice = column / in->n_rhs, rhs = column % in->n_rhs;
      if (column >= columns) continue;
      for (int d = 0; d < MD_DIRECTIONS; d++) {
        if (rhs != held) source_vector(in, input->source[d], rhs, psi + n * d);
        of[d] = psi + n * d + 24 * slice;
      }
      held = rhs;
      spin_row(s, input, of, spin, result + n * rhs + 24 * slice + 6 * spin);
    }
  }
}

/* Applies the scale, which has the factor of the action, and the end, and stores all right-hand
 * sides of a site, result[rhs][components]. */
static void finish(md_field *out, int64_t site, double scale, const md_hop_end *end,
                   double *result) {
  const int n = out->components;
  for (int r = 0; r < out->n_rhs; r++) {
    double x[MD_MAX_COMPONENTS], *of = result + n * r;
    for (int c = 0; c < n; c++) of[c] *= scale;
    if (!end) continue;
    md_field_get(end->x, site, r, x);
    for (int c = 0; c < n; c++) of[c] = end->a * x[c] + end->b * of[c];
  }
  md_field_set(out, site, result);
}

static bool in_range(const site_input *input, int terms, int64_t sites, md_range range) {
  bool boundary = false;
  for (int term = 0; term < terms; term++) boundary = boundary || input->source[term] >= sites;
  return range == MD_RANGE_ALL || boundary == (range == MD_RANGE_BOUNDARY);
}

/* One tile's worth of consecutive sites; those out of range are left out of the tile. */
static void hop_group(const tensor_emu *s, const md_hop_call *call, int64_t first) {
  const int most = s->request.packing == MD_PACKING_STACKED ? 1 : md_tile_items(s->request.packing);
  double result[MD_MAX_RHS][MD_FERMION_REALS];
  site_input input[MOST_ITEMS];
  int64_t site[MOST_ITEMS];
  int items = 0;
  md_field *out = call->out;
  const md_field *in = call->in;
  for (int64_t i = first; i < first + most && i < out->sites; i++) {
    input[items] = input_of(s, out->parity, i, in);
    if (in_range(&input[items], s->terms, in->sites, call->range)) site[items++] = i;
  }
  if (items == 0) return;
  if (s->request.packing != MD_PACKING_STACKED) {
    hop_tile(s, input, items, in, result);
    for (int m = 0; m < items; m++)
      finish(out, site[m], MD_HOP_FACTOR * input[m].scale, call->end, result[m]);
    return;
  }
  for (int r = 0; r < out->n_rhs; r += MD_TILE)
    hop_stacked(s, input, in, r, out->n_rhs - r < MD_TILE ? out->n_rhs - r : MD_TILE, result);
  finish(out, site[0], MD_HOP_FACTOR * input[0].scale, call->end, result[0]);
}

static void hop_spins_site(const tensor_emu *s, const md_hop_call *call, int64_t site, double *psi,
                           double *result) {
  md_field *out = call->out;
  const site_input input = input_of(s, out->parity, site, call->in);
  if (!in_range(&input, s->terms, call->in->sites, call->range)) return;
  hop_spins(s, &input, call->in, psi, result);
  finish(out, site, input.scale, call->end, result);
}

static md_status hop_all_spins(md_context *context, const tensor_emu *s, const md_hop_call *call) {
  const md_field *out = call->out;
  const ptrdiff_t room = (ptrdiff_t)out->components * (MD_DIRECTIONS + out->n_rhs);
  double *work; /* of each thread */
  MD_TRY(md_allocate(context, (size_t)(room * context->threads) * sizeof *work, "tensor_emu",
                     (void **)&work));
#pragma omp parallel num_threads(context->threads)
  {
    double *psi = work + room * omp_get_thread_num();
#pragma omp for schedule(static)
    for (int64_t site = 0; site < out->sites; site++)
      hop_spins_site(s, call, site, psi, psi + (ptrdiff_t)out->components * MD_DIRECTIONS);
  }
  free(work);
  return MD_OK;
}

static md_status hop(md_context *context, void *state, const md_hop_call *call) {
  const tensor_emu *s = state;
  if (md_action_has_spin(s->request.action)) return hop_all_spins(context, s, call);
  const int most = s->request.packing == MD_PACKING_STACKED ? 1 : md_tile_items(s->request.packing);
#pragma omp parallel for schedule(static)
  for (int64_t first = 0; first < call->out->sites; first += most) hop_group(s, call, first);
  return MD_OK;
}

const md_backend md_backend_tensor_emu = {.name = "tensor_emu",
                                          .space = MD_HOST,
                                          MD_TENSOR_BACKEND,
                                          .speed_of = md_tensor_speed_of,
                                          .load = load,
                                          .unload = unload,
                                          .hop = hop};

int md_tensor_speed_of(const md_context *context, const md_backend_request *request, int n_rhs,
                       const int *local, const char **reason) {
  (void)context, (void)n_rhs, (void)local, (void)reason;
  return (int)request->packing - MD_PACKINGS; /* the table has them in this order */
}

const char *md_tensor_packing_reason(md_packing packing) {
  return packing == MD_PACKING_STACKED
             ? "stacked has right-hand sides, or spins and slices, as rows of a tile"
             : "block8 fills a tile best of those for one right-hand side";
}

md_status md_tensor_check(md_context *context, const md_backend_request *request) {
  const char *name = md_packing_name(request->packing);
  const bool spin = md_action_has_spin(request->action);
  if (request->packing == MD_PACKING_STACKED) {
    if (request->n_rhs < 2 && !spin)
      return md_fail(context, MD_INPUT,
                     "packing stacked has right-hand sides as tile rows and needs at least 2, got "
                     "%d; take 8 or 16%s",
                     request->n_rhs, request->precision == MD_HALF ? ", or packing block8" : "");
    return MD_OK;
  }
  if (spin)
    return md_fail(context, MD_INPUT,
                   "packing %s serves quarks without spin, got action %s; use --packing stacked",
                   name, md_action_name(request->action));
  if (request->n_rhs != 1)
    return md_fail(context, MD_INPUT,
                   "packing %s serves one right-hand side, got %d; use --packing stacked", name,
                   request->n_rhs);
  if (request->precision != MD_HALF)
    return md_fail(context, MD_INPUT,
                   "packing %s multiplies 16x16x16 tiles of fp16, got precision %s; use "
                   "--precision half%s",
                   name, md_precision_name(request->precision),
                   request->pads ? " or --packing stacked" : "");
  return MD_OK;
}

double md_tensor_link_bytes(const md_backend_request *request) {
  return (double)(md_action_terms(request->action) * MD_LINK_REALS) *
         (double)md_precision_bytes(request->precision);
}

void md_matvec_host(const md_matvec *work) {
#pragma omp parallel for schedule(static)
  for (int64_t n = 0; n < work->count; n++) {
    const uint16_t *u = work->matrices + n * MD_MATVEC_MATRIX;
    const uint16_t *v = work->vectors + n * MD_MATVEC_VECTOR;
    for (int row = 0; row < 3; row++) {
      float re = 0.0f, im = 0.0f;
      for (int column = 0; column < 3; column++) {
        const float a = md_float_of_half(u[2 * (3 * row + column)]);
        const float b = md_float_of_half(u[2 * (3 * row + column) + 1]);
        const float x = md_float_of_half(v[2 * column]), y = md_float_of_half(v[2 * column + 1]);
        re += a * x - b * y;
        im += a * y + b * x;
      }
      work->results[n * MD_MATVEC_VECTOR + 2 * row] = re;
      work->results[n * MD_MATVEC_VECTOR + 2 * row + 1] = im;
    }
  }
}
