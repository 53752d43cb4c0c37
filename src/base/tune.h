#pragma once

#include "base/context.h"

MD_C_BEGIN

struct cJSON;

/* Ways to launch a kernel that differ in speed and in no bit. Unasked the first one is taken, that
 * of a rule of the GPU's facts. With --tune FILE a short trial at first use finds the fastest;
 * what it found is kept in the context, and in the file for later runs of the same build on such a
 * GPU. */
enum { MD_TUNE_NAME_BYTES = 64 };
typedef struct md_tune_case {
  const char *work; /* all that the speed depends on beside GPU and build, in words */
  int count;        /* candidates, 1 at least; may differ between ranks: the fewest count */
  void *user;
  /* The name of one, which tells it from the others. Local. */
  void (*name)(const void *user, int candidate, char name[MD_TUNE_NAME_BYTES]);
  /* The time that it takes, a finite number. Local, called on rank 0 alone. */
  md_status (*time)(md_context *context, void *user, int candidate, double *time_s);
} md_tune_case;

/* Begins to tune, by what the file of that name holds; none of that name, or an empty one, holds
 * nothing. NULL: ends it. MD_INPUT: it is no file that was written here, or a damaged one.
 * Collective. */
md_status md_tune_open(md_context *context, const char *path);
/* Which candidate to take, the same on all ranks: 0 without --tune, else that of an earlier choice
 * or of a trial, by rank 0, whose result goes to the file at once. Choices of other builds or GPUs,
 * or among other candidates, are not looked at; those of other builds for the same work are
 * replaced. MD_ENVIRONMENT: the trial failed, or the file cannot be written. Collective. */
md_status md_tune_choose(md_context *context, const md_tune_case *of, int *candidate);
/* Adds `tuned` to a report, what was chosen in this run, with a warning where that is none; nothing
 * without --tune. Local. */
void md_tune_report(const md_context *context, struct cJSON *root);
void md_tune_close(md_context *context);

MD_C_END
