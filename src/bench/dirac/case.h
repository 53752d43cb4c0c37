#pragma once

#include "base/device.h"
#include "base/options.h"
#include "base/report.h"
#include "base/statistics.h"
#include "dirac/backend.h"
#include "dirac/operator.h"
#include "links/action_links.h"

/* What is timed of an operator: the parts of a hop of a split lattice, each alone, Deo, or Deo and
 * Doe in turn. */
typedef enum md_hop_part {
  MD_HOP_EXCHANGE,
  MD_HOP_INTERIOR,
  MD_HOP_BOUNDARY,
  MD_HOP_BOTH,
  MD_HOP_ONE
} md_hop_part;

typedef struct md_hop_work {
  md_dirac *dirac;
  md_field *fields; /* by parity, of the operator */
  md_hop_part part;
  int at_once;                    /* in a pass */
  md_device_recording *recording; /* of these; NULL: each is queued by itself */
} md_hop_work;

/* One pass over the md_hop_work behind `user`: a work that is timed. Collective. */
md_status md_hop_pass(md_context *context, void *user);

/* One run of bench dirac: what its configurations share. */
typedef struct md_dirac_bench {
  md_context *context;
  const md_action_links *links;
  const md_halo_request *halo;
  const md_physics_options *physics;
  const char *command; /* as messages name it */
  bool turn;           /* time Deo and Doe in turn, else Deo alone */
  int repetitions;
  cJSON *wrong;               /* results so far: name, error, bound; NULL: the first ends the run */
  md_field base[MD_PARITIES]; /* random source, one right-hand side in double */
  md_field reference[MD_PARITIES]; /* reference[p] = D base[1-p] by cpu_ref */
  cJSON *rows, *skipped;
  double copy_gbytes_per_s;  /* of the largest working set so far, devices before the host */
  double copy_min, copy_max; /* the slowest and the fastest of its repetitions */
  double copy_bytes;
  md_space copy_space;
} md_dirac_bench;

/* Draws the source and applies cpu_ref once to each parity. Collective. */
md_status md_dirac_bench_open(md_dirac_bench *bench);
void md_dirac_bench_close(md_dirac_bench *bench);

/* What is asked of every backend. */
typedef struct md_dirac_bench_list {
  md_choices packing, precision, reconstruct;
  md_integers n_rhs;
} md_dirac_bench_list;

/* Checks every combination of a backend against cpu_ref, then times it and adds a row; adds to
 * `skipped` with the reason what this build, machine or backend does not serve. MD_UNREACHED at the
 * first whose result is wrong, unless the bench lists them. Right-hand side r of the check is the
 * source times a number that depends on r, so that one application of cpu_ref serves all.
 * Collective. */
md_status md_dirac_bench_backend(md_dirac_bench *bench, const md_backend *backend,
                                 const md_dirac_bench_list *list);

/* The head of the table whose lines md_dirac_bench_backend prints. */
void md_dirac_bench_head(const md_context *context);

enum { MD_MATVEC_REPETITIONS = 1000 }; /* at most */

/* Times bare 3x3 complex matrix-vector products by the host, CUDA cores and the packings single,
 * diagonal and block8, for each of the counts, checked first; adds rows of
 * {kernel, count, seconds_kernel and seconds_launch (medians, and with _min and _max behind),
 * repetitions (the fewer of both), ns_kernel, ns_launch, published_ns, error}. Without a GPU only
 * the host is timed. MD_ENVIRONMENT where the memory does not hold the largest count. Collective:
 * every rank does the same. */
md_status md_bench_matvec(md_context *context, const md_integers *counts, int repetitions,
                          cJSON *rows);
