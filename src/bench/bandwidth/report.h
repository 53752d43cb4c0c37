#ifndef MD_BENCH_BANDWIDTH_REPORT_H
#define MD_BENCH_BANDWIDTH_REPORT_H

#include "base/report.h"
#include "bench/bandwidth/bandwidth.h"

/* The head of the table whose lines md_stream_bench prints. */
void md_stream_bench_head(const md_context *context);
/* Times one stream through about `bytes` per rank, adds a row of {kernel, space, bytes, ranks,
 * threads, seconds_median, seconds_min, seconds_max, repetitions, gbytes_per_s}, and assigns the
 * last of these, that of all ranks. Collective. */
md_status md_stream_bench(md_context *context, md_space space, md_stream stream, double bytes,
                          int repetitions, cJSON *rows, double *gbytes_per_s);

#endif
