#include "base/memory.h"
#include "gemm/gemm.h"

#include <omp.h>
#include <stdlib.h>

/* Panels of A and B are packed tile by tile, the innermost tile of C stays in registers (Goto and
 * van de Geijn, doi:10.1145/1356052.1356053). Every tile has the full TILE_ROWS x lanes shape,
 * edges padded with zeros, and k is cut at multiples of DEPTH: an element of C sees the same
 * operations in the same order wherever it stands in whatever sub-block, so that a product of
 * rows and columns spread over ranks or threads equals the sequential one bit for bit. */
enum { TILE_ROWS = 6, DEPTH = 256, PANEL_ROWS = 20 * TILE_ROWS, PANEL_COLUMNS = 2048 };
enum { VECTOR_BYTES = 64 };

/* The compiler lowers 64-byte vectors to what the machine has; chosen once when the program loads.
 */
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
#define CLONES __attribute__((target_clones("avx512f", "fma", "default")))
#else
#define CLONES
#endif

#define REAL double
#define NAME(name) name##_double
#include "gemm/cpu_tiled.inc.h"
#undef REAL
#undef NAME
#define REAL float
#define NAME(name) name##_float
#include "gemm/cpu_tiled.inc.h"

static md_status multiply_tiled(md_context *context, const md_gemm_call *call) {
  const md_gemm_problem *p = call->problem;
  const int threads = call->launch->threads;
  const int64_t depth = p->k < DEPTH ? p->k : DEPTH;
  const int64_t columns = p->n < PANEL_COLUMNS ? p->n + VECTOR_BYTES : PANEL_COLUMNS;
  const size_t b_bytes = (size_t)(depth * columns) * md_gemm_input_bytes(p->precision);
  const size_t a_bytes = (size_t)(depth * PANEL_ROWS) * md_gemm_input_bytes(p->precision);
  void *b_panel, *a_panels;
  md_status status = md_allocate(context, b_bytes, "packed panel of B", &b_panel);
  if (status == MD_OK)
    status = md_allocate(context, a_bytes * (size_t)threads, "packed panels of A", &a_panels);
  else
    a_panels = NULL;
  if (status == MD_OK && p->precision == MD_GEMM_DOUBLE)
    product_double(p, threads, call->a, call->b, call->c, a_panels, b_panel);
  else if (status == MD_OK)
    product_float(p, threads, call->a, call->b, call->c, a_panels, b_panel);
  MD_FREE(a_panels, b_panel);
  return status;
}

const md_gemm_kernel md_gemm_cpu_tiled = {
    .name = "cpu_tiled",
    .space = MD_GEMM_HOST,
    .precisions = 1u << MD_GEMM_DOUBLE | 1u << MD_GEMM_SINGLE,
    .run = multiply_tiled,
};
