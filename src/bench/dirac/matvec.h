#ifndef MD_BENCH_DIRAC_MATVEC_H
#define MD_BENCH_DIRAC_MATVEC_H

#include "base/options.h"
#include "base/report.h"

/* Times bare 3x3 complex matrix-vector products by the host, CUDA cores and the packings single,
 * diagonal and block8, for each of the counts, checked first; adds rows of
 * {kernel, count, seconds_kernel and seconds_launch (medians, and with _min and _max behind),
 * repetitions, ns_kernel, ns_launch, published_ns, error}. Without a GPU only the host is timed.
 * Local: every rank does the same. */
md_status md_bench_matvec(md_context *context, const md_integers *counts, int repetitions,
                          cJSON *rows);

#endif
