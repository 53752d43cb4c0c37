#pragma once

#include "base/report.h"
#include "base/statistics.h"
#include "lattice/fields/field.h"

/* The memory bandwidth that kernels are held against, measured in the same run. */
typedef enum md_stream { MD_STREAM_COPY, MD_STREAM_TRIAD } md_stream;

/* Three arrays of doubles in one space, of which a copy uses two. */
typedef struct md_stream_arrays {
  md_space space;
  md_stream stream;
  size_t count; /* doubles in each */
  double *array[3];
} md_stream_arrays;

/* "copy", "triad"; the bytes that one pass counts: each array read or written once. */
const char *md_stream_name(md_stream stream);
double md_stream_bytes(const md_stream_arrays *arrays);

/* Arrays that `stream` moves `bytes` through in one pass, first touched by the threads that will
 * use them. A device has the copy only. Local. */
md_status md_stream_create(md_context *context, md_space space, md_stream stream, double bytes,
                           md_stream_arrays *arrays);
void md_stream_destroy(md_stream_arrays *arrays);
/* One pass over the md_stream_arrays behind `user`: a work that is timed. Local. */
md_status md_stream_pass(md_context *context, void *user);
enum { MD_STREAM_MOST_PASSES = 10000 };

/* One piece of work that is timed; on a device it is queued only. Local. */
typedef md_status (*md_timed_work)(md_context *context, void *user);
/* Runs `work` `passes` times between two barriers; *time_s is the time of one pass on the slowest
 * rank. On a device it waits for the queued work before each reading of the clock. Collective. */
md_status md_time_work(md_context *context, md_space space, md_timed_work work, void *user,
                       int passes, double *time_s);
/* Passes that fill `window_s`, from one timed pass after an untimed one; at most `most`.
 * Collective. */
md_status md_passes_for(md_context *context, md_space space, md_timed_work work, void *user,
                        double window_s, int most, int *passes);

/* `count` samples of as many passes, into `samples` (sorted) and what they come to; an interrupt
 * between them ends the run of `command`. Collective. */
md_status md_time_samples(md_context *context, md_space space, md_timed_work work, void *user,
                          double window_s, int most, const char *command, int count,
                          double *samples, md_statistics *seconds);

/* The head of the table whose lines md_stream_bench prints. */
void md_stream_bench_head(const md_context *context);
/* Times one stream through about `bytes` per rank, adds a row of {kernel, space, bytes, ranks,
 * threads, seconds_median, seconds_min, seconds_max, repetitions, gbytes_per_s}, and assigns the
 * last of these, that of all ranks. Collective. */
md_status md_stream_bench(md_context *context, md_space space, md_stream stream, double bytes,
                          int repetitions, cJSON *rows, double *gbytes_per_s);
