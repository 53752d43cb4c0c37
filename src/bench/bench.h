#pragma once

#include "base/context.h"

/* minidirac bench KIND: argv[0] is the kind. Collective, as the subcommands of commands.h. */
md_status md_bench_suite(md_context *context, int argc, char **argv);
md_status md_bench_copy(md_context *context, int argc, char **argv);
md_status md_bench_dirac(md_context *context, int argc, char **argv);
md_status md_bench_solver(md_context *context, int argc, char **argv);
md_status md_bench_gemm(md_context *context, int argc, char **argv);
md_status md_bench_transpose(md_context *context, int argc, char **argv);
md_status md_bench_shift(md_context *context, int argc, char **argv);
md_status md_bench_gemv(md_context *context, int argc, char **argv);
