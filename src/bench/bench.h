#pragma once

#include "base/report.h"
#include "base/statistics.h"
#include "dirac/physics_options.h"
#include "links/action_links.h"

/* minidirac bench KIND: argv[0] is the kind. Collective, as the subcommands of commands.h. */
md_status md_bench_suite(md_context *context, int argc, char **argv);
md_status md_bench_copy(md_context *context, int argc, char **argv);
md_status md_bench_dirac(md_context *context, int argc, char **argv);
md_status md_bench_solver(md_context *context, int argc, char **argv);
md_status md_bench_gemm(md_context *context, int argc, char **argv);
md_status md_bench_small(md_context *context, int argc, char **argv); /* transpose, shift, gemv */

/* Links of a benchmark: of files, or made for it, then the same for every rank grid and thread
 * count. */
typedef struct md_bench_links_request {
  const char *command;               /* as messages name it */
  const md_physics_options *physics; /* checked; links of its files are read */
  const char *lattice;               /* so are those of this file; NULL: none */
  bool ignore_checksum;              /* of the files */
  const int *dims, *grid;            /* of MD_DIMS each */
  md_space space;                    /* where operators keep their fields */
  md_space sweeps_in; /* where the sweeps are done; fat and long links are made on a device too
                         where either is one */
  uint64_t seed;
  double beta;
  long long sweeps; /* of heatbath from unit links; 0: uniform links, far from a thermal spectrum */
  int overrelax;    /* updates behind each sweep */
  /* Memory is required also for cpu_ref and its fields, for a first case of as many right-hand
   * sides and for about as much as its hop moves, to measure the bandwidth of; 0: for none. */
  int n_rhs;
  /* And for the smallest case of many: in a dry run with links that have no data. What each needs
   * is compared again when it begins. NULL: none. */
  md_status (*least)(const md_action_links *links, void *user, md_memory_need *need);
  void *user;
} md_bench_links_request;

/* At the root of a report the transport of its rows, or a list of those that they have. Local. */
void md_bench_say_transport(cJSON *root, const cJSON *rows);

/* MD_ENVIRONMENT with the reason of the first that was skipped, for what has no row. Local. */
md_status md_bench_timed_nothing(md_context *context, const char *command, const cJSON *skipped);

/* What sweeps_in of the request may be: a device where every rank has one with room for making the
 * links, whatever the operators run on. Collective. */
md_space md_bench_links_space(md_context *context, const md_bench_links_request *request);
/* On failure there is nothing to destroy; MD_ENVIRONMENT also where the memory does not hold them,
 * and for sweeps on a device that is not there. Collective. */
md_status md_bench_links_make(md_context *context, const md_bench_links_request *request,
                              md_action_links *links);

/* The list of operators of a benchmark's --operators: BACKEND, BACKEND:PACKING or
 * BACKEND:PACKING:REALS, where REALS is what a link is stored in. */
enum { MD_BENCH_OPERATORS = 16, MD_BENCH_OPERATOR_BYTES = 1024 };

typedef struct md_bench_operators {
  struct {
    char backend[MD_BENCH_OPERATOR_BYTES];
    md_packing packing;
    md_reconstruct reconstruct;
  } of[MD_BENCH_OPERATORS];
  int count;
} md_bench_operators;

/* As md_option.parse, into md_bench_operators. */
md_status md_bench_operators_read(md_context *context, const char *label, const char *text,
                                  void *target);

/* On a GPU where one of the operators keeps its fields there. Collective. */
md_space md_bench_operators_space(md_context *context, const md_bench_operators *operators,
                                  const md_physics_options *physics);

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
 * last of these, that of all ranks. Messages name `command`. Collective. */
md_status md_stream_bench(md_context *context, md_space space, md_stream stream, double bytes,
                          int repetitions, const char *command, cJSON *rows, double *gbytes_per_s);
