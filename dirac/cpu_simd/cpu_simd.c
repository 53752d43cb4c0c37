#include "dirac/cpu_simd/cpu_simd.h"
#include "base/memory.h"
#include "lattice/fields/reals.h"

#include <omp.h>
#include <stdlib.h>

MD_DECLARE_EVERY_PRECISION(const md_simd_kernels, md_simd_kernels);
MD_DECLARE_EVERY_PRECISION(const md_simd_kernels, md_simd_two);

/* By the number of link fields, precision and instruction set. */
static const md_simd_kernels *const kernels[MD_MOST_LINK_FIELDS][MD_PRECISIONS][MD_ISAS] = {
    MD_EVERY_PRECISION(&md_simd_kernels), MD_EVERY_PRECISION(&md_simd_two)};

static void unload(void *state) {
  md_simd_state *s = state;
  if (!s) return;
  for (int p = 0; p < MD_PARITIES; p++) {
    md_simd_plan_destroy(&s->plan[p]);
    free(s->links[p]);
  }
  free(s);
}

static double link_bytes(const md_backend_request *request) {
  const int reals = request->reconstruct == MD_RECONSTRUCT_12 ? MD_LINK_12_REALS : MD_LINK_REALS;
  return (double)md_action_terms(request->action) * reals *
         (double)md_precision_bytes(request->precision);
}

/* How far ahead links are fetched and where results go, from what hops in turn read. The ranks of a
 * host share its last cache. */
static void choose_access(md_simd_state *s, md_isa isa, int64_t sites, int local_ranks) {
  const double links = link_bytes(&s->request) * (double)sites;
  const double all_links = MD_PARITIES * links * local_ranks;
  const double field = md_request_reals(&s->request) *
                       (double)md_precision_bytes(s->request.precision) * (double)sites;
  const bool cached = all_links <= MD_SIMD_CACHED * (double)md_cache_bytes(3);
  s->ahead = cached ? MD_SIMD_FAR : MD_SIMD_NEAR;
  s->fetch = MD_SIMD_FETCH_L1;
  if (md_cpu_family("GenuineIntel") > 0) {
    s->ahead = MD_SIMD_FAR;
    s->fetch = MD_SIMD_FETCH_L2;
  } else if (isa == MD_ISA_AVX512) {
    const bool plain =
        s->request.reconstruct == MD_RECONSTRUCT_18 && md_precision_bytes(s->request.precision) > 2;
    s->ahead = md_cpu_family("AuthenticAMD") >= MD_SIMD_ZEN5 ? MD_SIMD_FAR
               : plain                                       ? MD_SIMD_BEHIND
                                                             : MD_SIMD_THREE_LINES;
    if (!cached) s->fetch = MD_SIMD_FETCH_ONCE;
  }
  const double last = (double)md_cache_bytes(3);
  if (s->request.n_rhs == 1)
    s->stream = field > MD_SIMD_KEPT * last;
  else if (md_action_has_spin(s->request.action))
    s->stream = field * s->request.n_rhs > MD_SIMD_KEPT_MANY * last;
  else
    s->stream = links > MD_SIMD_STREAM_BYTES;
}

/* Planes of z that a thread takes along t at a time, of many right-hand sides: as many as leave the
 * links and sources of three time slices of them in L2, or at least in the thread's share of the
 * last cache, as the source is read from three slices; all where not even two do. */
static int planes_at_once(const md_backend_request *request, const md_geometry *g, int threads) {
  const int all = g->local[MD_Z];
  const double vector =
      md_request_reals(request) * request->n_rhs * (double)md_precision_bytes(request->precision);
  const double plane = (link_bytes(request) + vector) * (double)(g->sites / all / g->local[MD_T]);
  double planes = (double)md_cache_bytes(2) / (3.0 * plane);
  if (planes < 2.0) planes = (double)md_cache_bytes(3) / threads / (3.0 * plane);
  return planes < 2.0 || planes > all ? all : (int)planes;
}

/* What the stored reals of each link field are multiples of: 1, in MD_FIXED 1 / MD_FIXED_STEPS
 * times the field's largest number. */
static void find_link_units(const md_links *links, md_precision precision,
                            double unit[MD_MOST_LINK_FIELDS]) {
  for (int f = 0; f < MD_MOST_LINK_FIELDS; f++) {
    const double largest = links->largest[f] > 0.0 ? links->largest[f] : 1.0;
    unit[f] = precision == MD_FIXED ? largest / MD_FIXED_STEPS : 1.0;
  }
}

/* Allocates and fills the link copy of output parity `parity`. */
static md_status create_links(md_context *context, const md_links *links,
                              const md_backend_request *request, const md_simd_plan *plan,
                              const double unit[MD_MOST_LINK_FIELDS], int parity, void **stored) {
  const int reals = request->reconstruct == MD_RECONSTRUCT_12 ? MD_LINK_12_REALS : MD_LINK_REALS;
  const int lanes = plan->lanes, terms = plan->terms;
  const int64_t per_block = (int64_t)terms * reals * lanes, sites = links->field->geometry->sites;
  MD_TRY(md_allocate(context,
                     (size_t)(plan->blocks * per_block) * md_precision_bytes(request->precision),
                     "links of cpu_simd", stored));
  if (md_counts(context)) return MD_OK;
#pragma omp parallel for schedule(static) num_threads(context->threads)
  for (int64_t block = 0; block < plan->blocks; block++)
    for (int term = 0; term < terms; term++) {
      const int64_t first = plan->site[block];
      const int count = sites - first < lanes ? (int)(sites - first) : lanes;
      const double inverse = 1.0 / unit[term / MD_DIRECTIONS];
      double planes[MD_LINK_REALS * MD_SIMD_MOST_LANES];
      md_links_fold(links, parity, term, first, count, false, planes);
      for (int c = 0; c < reals; c++)
        for (int l = 0; l < lanes; l++) { /* lanes past the end repeat the last site */
          const int64_t at = lanes > 1 ? (term * reals + c) * lanes + l : c * terms + term;
          const double real = inverse * planes[c * count + (l < count ? l : count - 1)];
          md_store_reals(request->precision, *stored, block * per_block + at, 1, &real);
        }
    }
  return MD_OK;
}

static int lanes_of(md_precision precision, md_isa isa) {
  return kernels[0][precision][isa]->lanes;
}

/* Vectors no wider than a row of right-hand sides, where such an instruction set is at hand. */
static md_isa isa_of_rows(const md_backend_request *request, md_isa isa) {
  const bool fits = 2 * request->n_rhs <= lanes_of(request->precision, MD_ISA_AVX2);
  return isa == MD_ISA_AVX512 && request->n_rhs > 1 && fits ? MD_ISA_AVX2 : isa;
}

md_status md_simd_load(md_context *context, const md_links *links,
                       const md_backend_request *request, md_isa isa, int planes, void **state) {
  md_simd_state *s = calloc(1, sizeof *s);
  *state = NULL;
  if (!s) return md_fail_memory(context, sizeof *s, "cpu_simd");
  s->kernels = kernels[md_action_get(request->action)->fields - 1][request->precision]
                      [isa_of_rows(request, isa)];
  s->request = *request;
  const md_geometry *g = links->field->geometry;
  const int local_ranks = context->local_ranks > 1 ? context->local_ranks : 1;
  choose_access(s, isa, g->sites, local_ranks);
  if (!planes) planes = planes_at_once(request, g, context->threads * local_ranks);
  const int lanes = request->n_rhs == 1 ? s->kernels->lanes : 1;
  find_link_units(links, request->precision, s->link_unit);
  md_status status = MD_OK;
  for (int p = 0; status == MD_OK && p < MD_PARITIES; p++) {
    status = md_simd_plan_create(context, links, p, lanes, planes, &s->plan[p]);
    if (status == MD_OK)
      status = create_links(context, links, request, &s->plan[p], s->link_unit, p, &s->links[p]);
  }
  if (status == MD_OK)
    *state = s;
  else
    unload(s);
  return status;
}

static md_status load(md_context *context, const md_links *links, const md_backend_request *request,
                      void **state) {
  return md_simd_load(context, links, request, md_isa_best(), 0, state);
}

static md_status hop(md_context *context, void *state, const md_hop_call *asked) {
  const md_simd_state *s = state;
  const md_hop_end end = md_hop_end_of(asked);
  const md_hop_step step = md_hop_step_of(asked);
  const md_field *out = asked->out, *in = asked->in, *x = end.x;
  const md_simd_plan *plan = &s->plan[out->parity];
  const bool spins = md_action_has_spin(s->request.action), many = out->n_rhs > 1;
  const md_simd_call call = {.plan = plan,
                             .links = s->links[out->parity],
                             .sites = out->sites,
                             .n_rhs = out->n_rhs,
                             .slices = md_request_slices(&s->request),
                             .out = out->data,
                             .in = in->data,
                             .x = x ? x->data : NULL,
                             .out_stride = out->stride,
                             .in_stride = in->stride,
                             .x_stride = x ? x->stride : 0,
                             .out_scale = out->scale,
                             .in_scale = in->scale,
                             .x_scale = x ? x->scale : NULL,
                             .link_unit = {(float)s->link_unit[0], (float)s->link_unit[1]},
                             .a = end.a,
                             .b = spins ? end.b : MD_HOP_FACTOR * end.b,
                             .adjoint = step.adjoint,
                             .matrix = step.matrix,
                             .ahead = s->ahead,
                             .fetch = s->fetch,
                             .stream = s->stream,
                             .order = plan->range[asked->range]};
  const int which = s->request.reconstruct == MD_RECONSTRUCT_12;
  md_simd_kernel *kernel = spins  ? s->kernels->spins[many][which]
                           : many ? s->kernels->many[which]
                                  : s->kernels->one[which];
  const int64_t count = plan->in_range[asked->range];
#pragma omp parallel num_threads(context->threads)
  {
    const int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
    kernel(&call, count * thread / threads, count * (thread + 1) / threads);
  }
  return MD_OK;
}

static bool multiplies(const void *state) {
  const md_simd_state *s = state;
  return s->request.n_rhs == 1;
}

/* With a fifth dimension, whose slices use a link as often as right-hand sides do; with four spins
 * where those fill less than three quarters of their vectors, else five eighths of one; and in 16
 * bits, whose links are unpacked for each site, where few share that (bench/tried.md). */
static bool alone(const md_backend_request *request) {
  enum { FEW = 4 };
  const md_isa best = md_isa_best();
  const int row = 2 * request->n_rhs, widest = lanes_of(request->precision, best);
  const int padded = (row + widest - 1) / widest * widest;
  if (md_action_has_spin(request->action))
    return md_action_get(request->action)->walls || 4 * row < 3 * padded;
  return md_precision_bytes(request->precision) == 2
             ? request->n_rhs < FEW
             : 8 * row < 5 * lanes_of(request->precision, isa_of_rows(request, best));
}

const md_backend md_backend_cpu_simd = {
    .name = "cpu_simd",
    .space = MD_HOST,
    .precisions =
        1u << MD_DOUBLE | 1u << MD_SINGLE | 1u << MD_HALF | 1u << MD_BF16 | 1u << MD_FIXED,
    .reconstructs = 1u << MD_RECONSTRUCT_18 | 1u << MD_RECONSTRUCT_12,
    .packings = 1u << MD_PACKING_NONE,
    .actions = MD_STAGGERED_ACTIONS | MD_SPIN_ACTIONS,
    .speed = 10,
    .load = load,
    .unload = unload,
    .hop = hop,
    .turns = true,
    .multiplies = multiplies,
    .alone = alone,
    .link_bytes = link_bytes};
