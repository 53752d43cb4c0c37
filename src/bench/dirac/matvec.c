#include "bench/dirac/case.h"

#include "base/device.h"
#include "base/interrupt.h"
#include "base/memory.h"
#include "base/memory_need.h"
#include "base/options.h"
#include "base/precision.h"
#include "base/random_math.h"
#include "base/timer.h"
#include "dirac/tensor/tensor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PASSES = 20 };
static const double LONGEST_S = 0.5; /* of one median, once three samples are there */

/* Kernels in the order of the table. packing < 0: the host. The published times are those of the
 * first account of the packings, ns a product, CUDA cores against Tensor Cores; CUDA cores were
 * timed beside each packing, 11, 12 and 9.9. */
static const struct {
  const char *name;
  int packing;
  double published_ns;
} KERNELS[] = {{"cpu", -1, NAN},
               {"cuda_cores", MD_PACKING_NONE, 9.9},
               {"single", MD_PACKING_SINGLE, 68000.0},
               {"diagonal", MD_PACKING_DIAGONAL, 35.0},
               {"block8", MD_PACKING_BLOCK8, 5.5}};
enum { KERNEL_COUNT = sizeof KERNELS / sizeof KERNELS[0] };

enum { MATRICES, VECTORS, RESULTS, EXPECTED, ARRAYS };

typedef struct products {
  int64_t count;
  void *host[ARRAYS], *device[EXPECTED];
} products;

static size_t bytes_of(const products *p, int array) {
  const size_t numbers = array == MATRICES ? MD_MATVEC_MATRIX : MD_MATVEC_VECTOR;
  return (size_t)p->count * numbers * (array < RESULTS ? sizeof(uint16_t) : sizeof(float));
}

static void release(products *p) {
  for (int i = 0; i < EXPECTED; i++) md_device_free(p->device[i]);
  for (int i = 0; i < ARRAYS; i++) free(p->host[i]);
}

static void draw(uint16_t *numbers, int64_t count, int reals, uint64_t purpose) {
#pragma omp parallel for schedule(static)
  for (int64_t n = 0; n < count; n++) {
    md_random random = md_random_begin(1, purpose, (uint64_t)n);
    for (int i = 0; i < reals; i++)
      numbers[n * reals + i] =
          md_half_of_float((float)(2.0 * md_random_next_uniform(&random) - 1.0));
  }
}

/* The products in double, by no code of those that are timed. */
static void expect(products *p) {
  float *const expected = p->host[EXPECTED];
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < p->count * MD_MATVEC_VECTOR; i++) {
    const int64_t n = i / MD_MATVEC_VECTOR, row = i % MD_MATVEC_VECTOR / 2;
    const uint16_t *u = (uint16_t *)p->host[MATRICES] + n * MD_MATVEC_MATRIX + 6 * row;
    const uint16_t *v = (uint16_t *)p->host[VECTORS] + n * MD_MATVEC_VECTOR;
    double sum = 0.0;
    for (int c = 0; c < 6; c += 2) {
      const double a = md_float_of_half(u[c]), b = md_float_of_half(u[c + 1]);
      const double x = md_float_of_half(v[c]), y = md_float_of_half(v[c + 1]);
      sum += i % 2 ? a * y + b * x : a * x - b * y;
    }
    expected[i] = (float)sum;
  }
}

static md_status prepare(md_context *context, int64_t count, bool device, products *p) {
  *p = (products){.count = count};
  for (int i = 0; i < ARRAYS; i++)
    MD_TRY(md_allocate(context, bytes_of(p, i), "products", &p->host[i]));
  draw(p->host[MATRICES], count, MD_MATVEC_MATRIX, 1);
  draw(p->host[VECTORS], count, MD_MATVEC_VECTOR, 2);
  expect(p);
  for (int i = 0; i < EXPECTED && device; i++) {
    MD_TRY(md_device_allocate(context, bytes_of(p, i), "products", &p->device[i]));
    if (i != RESULTS) MD_TRY(md_device_upload(context, p->device[i], p->host[i], bytes_of(p, i)));
  }
  return MD_OK;
}

/* One kernel over all products `passes` times, and the wait for it; the host goes once. */
static md_status once(md_context *context, products *p, int packing, int passes) {
  if (packing < 0) {
    const md_matvec work = {p->count, p->host[MATRICES], p->host[VECTORS], p->host[RESULTS]};
    md_matvec_host(&work);
    return MD_OK;
  }
  const md_matvec work = {p->count, p->device[MATRICES], p->device[VECTORS], p->device[RESULTS]};
  if (MINIDIRAC_HAVE_CUDA) MD_TRY(md_matvec_device(context, (md_packing)packing, passes, &work));
  return md_device_synchronise(context);
}

/* *n: how many samples it takes, fewer than asked for where one takes long. */
static md_status time_passes(md_context *context, products *p, int packing, int passes,
                             int repetitions, md_statistics *seconds, int *n) {
  double times[MD_MATVEC_REPETITIONS];
  const double first_s = md_time_s();
  *n = 0;
  do {
    const double start_s = md_time_s();
    MD_TRY(once(context, p, packing, passes));
    times[(*n)++] = md_time_s() - start_s;
  } while (*n < repetitions && (*n < 3 || md_time_s() - first_s < LONGEST_S));
  *seconds = md_statistics_of(times, *n);
  return MD_OK;
}

/* One kernel without its launch: what PASSES more of them in a launch add. The host has no launch
 * to take off. *n: as many as of the launch, or fewer where this took fewer samples. */
static md_status time_kernel(md_context *context, products *p, int packing, int repetitions,
                             double launch_s, md_statistics *kernel, int *n) {
  int samples;
  if (packing < 0) return MD_OK;
  MD_TRY(time_passes(context, p, packing, 1 + PASSES, repetitions, kernel, &samples));
  if (samples < *n) *n = samples;
  kernel->median = (kernel->median - launch_s) / PASSES;
  kernel->min = (kernel->min - launch_s) / PASSES;
  kernel->max = (kernel->max - launch_s) / PASSES;
  return MD_OK;
}

/* Largest difference from what is expected over the largest number. */
static md_status check(md_context *context, products *p, int packing, double *error) {
  float *const results = p->host[RESULTS];
  const float *const expected = p->host[EXPECTED];
  void *const device = p->device[RESULTS];
  const size_t bytes = bytes_of(p, RESULTS);
  memset(results, 0xff, bytes);
  if (packing >= 0) MD_TRY(md_device_upload(context, device, results, bytes));
  MD_TRY(once(context, p, packing, 1));
  if (packing >= 0) MD_TRY(md_device_download(context, results, device, bytes));
  double worst = 0.0, largest = 0.0;
  for (int64_t i = 0; i < p->count * MD_MATVEC_VECTOR; i++) {
    md_raise(&worst, fabs((double)results[i] - (double)expected[i]));
    largest = fmax(largest, fabs((double)expected[i]));
  }
  *error = worst / largest;
  if (!(*error <= 1e-5))
    return md_fail(context, MD_UNREACHED,
                   "matrix-vector products differ by %.3g from those in double", *error);
  return MD_OK;
}

#define COLUMNS                                                                                    \
  "kernel=%-10s count=%10lld seconds_kernel=%g seconds_kernel_min=%g seconds_kernel_max=%g "       \
  "seconds_launch=%g seconds_launch_min=%g seconds_launch_max=%g repetitions=%d "                  \
  "ns_kernel|ns~kernel=%12.4f ns_launch|ns~launch=%12.4f published_ns|published=%12g error=%10.2e"

static md_status bench_one(md_context *context, products *p, int kernel, int repetitions,
                           cJSON *rows) {
  const int packing = KERNELS[kernel].packing;
  const double many = (double)p->count;
  double error;
  int n;
  md_statistics launch, inside;
  MD_TRY(check(context, p, packing, &error));
  MD_TRY(time_passes(context, p, packing, 1, repetitions, &launch, &n));
  inside = launch;
  MD_TRY(time_kernel(context, p, packing, repetitions, launch.median, &inside, &n));
  md_rows_add(context, rows, COLUMNS, KERNELS[kernel].name, (long long)p->count, inside.median,
              inside.min, inside.max, launch.median, launch.min, launch.max, n,
              1e9 * inside.median / many, 1e9 * launch.median / many, KERNELS[kernel].published_ns,
              error);
  return MD_OK;
}

/* Collective: ranks time alone and agree behind each kernel. */
static md_status bench_count(md_context *context, int64_t count, bool device, int repetitions,
                             cJSON *rows) {
  products p;
  md_status status = md_agree(context, prepare(context, count, device, &p));
  for (int k = 0; k < KERNEL_COUNT && status == MD_OK; k++)
    if (device || KERNELS[k].packing < 0) {
      status = md_agree(context, bench_one(context, &p, k, repetitions, rows));
      if (status == MD_OK) status = md_interrupt_check(context, "bench dirac");
    }
  release(&p);
  return status;
}

md_status md_bench_matvec(md_context *context, const md_integers *counts, int repetitions,
                          cJSON *rows) {
  const bool device = md_agree(context, md_device_open(context)) == MD_OK; /* all, or none */
  md_memory_need need = {0};
  products most = {0};
  for (int i = 0; i < counts->count; i++)
    if (counts->value[i] > most.count) most.count = counts->value[i];
  for (int k = 0; k < ARRAYS; k++) {
    need.host += (int64_t)bytes_of(&most, k);
    if (device && k < EXPECTED) need.device += (int64_t)bytes_of(&most, k);
  }
  MD_TRY(md_memory_require(context, &need, "bench dirac"));
  if (!device) md_warn(context, "only the host is timed: %s", context->message);
  md_say(context,
         "independent products of 3x3 complex matrices and vectors in fp16, sums in float\n"
         "kernel      ns a product inside one kernel; launch: one kernel launched and waited for\n"
         "published   CUDA cores beside single, diagonal, block8: 11, 12, 9.9\n\n");
  md_rows_head(context, COLUMNS);
  for (int i = 0; i < counts->count; i++)
    MD_TRY(bench_count(context, counts->value[i], device, repetitions, rows));
  return MD_OK;
}
