#ifndef MD_MEASURE_RUN_H
#define MD_MEASURE_RUN_H

#include "measure/measure.h"

/* A study on its way. */
typedef struct md_study_run {
  md_study study;
  md_context *whole, *group; /* the run, and the ranks that share a lattice */
  md_context part;           /* the group where there are several */
  int number, groups;        /* of this group */
  int grid[MD_DIMS];         /* of its ranks */
  const char *backend;       /* of the last action */
  int measured, skipped;
} md_study_run;

/* Lists the lattices, checks --output, looks at the header of every lattice, compares the memory,
 * lays out the records and reads those of an earlier run. Collective. */
md_status md_study_prepare(md_study_run *r);

/* A lattice that cannot be measured is left out with --keep-going, MD_OK, or ends the run: `status`
 * with its name and `why`. All ranks call the same. */
md_status md_study_leave_out(md_study_run *r, int lattice, md_status status, const char *why);

#endif
