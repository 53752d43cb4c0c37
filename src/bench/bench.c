#include "bench/bench.h"
#include "base/interrupt.h"
#include "base/text.h"
#include "commands.h"

#include <stdio.h>
#include <string.h>

static const struct {
  const char *name, *summary;
  md_status (*run)(md_context *context, int argc, char **argv);
} KINDS[] = {
    {"suite", "all parts on a fixed problem, checked, with one figure of merit", md_bench_suite},
    {"dirac", "the stencil of each backend, against the memory bandwidth", md_bench_dirac},
    {"solver", "time to a true residual: precisions, many right-hand sides, shifts",
     md_bench_solver},
    {"copy", "memory bandwidth by working set", md_bench_copy},
    {"gemm", "C <- alpha A B + beta C by every kernel, on one rank or many", md_bench_gemm},
    {"transpose", "out of place transpose, by block shape", md_bench_transpose},
    {"shift", "out[x, y] = in[x, y] + in[x + 4, y], by block shape", md_bench_shift},
    {"gemv", "matrix times vector, integers and floats", md_bench_gemv},
};
enum { KIND_COUNT = sizeof KINDS / sizeof KINDS[0] };

md_status md_command_bench(md_context *context, int argc, char **argv) {
  const char *name = argc > 1 ? argv[1] : "";
  md_interrupt_catch(context);
  for (int k = 0; k < KIND_COUNT; k++)
    if (strcmp(KINDS[k].name, name) == 0) return KINDS[k].run(context, argc - 1, argv + 1);
  if (strcmp(name, "--help") != 0) {
    md_suggestion nearest = md_suggest(name);
    for (int k = 0; k < KIND_COUNT; k++)
      md_suggest_name(&nearest, KINDS[k].name, strlen(KINDS[k].name));
    return md_fail(context, MD_INPUT,
                   "bench needs a kind, got '%.200s'; see minidirac bench --help%s", name,
                   nearest.text);
  }
  if (context->rank == 0) printf("usage: minidirac bench KIND [options]\n\n");
  for (int k = 0; k < KIND_COUNT && context->rank == 0; k++)
    printf("  %-10s %s\n", KINDS[k].name, KINDS[k].summary);
  return MD_OK;
}
