#ifndef MD_MEASURE_RUN_H
#define MD_MEASURE_RUN_H

#include "measure/measure.h"

/* A study on its way. */
typedef struct md_study_run {
  md_study study;
  md_context *whole, *group; /* the run, and the ranks that share a lattice */
  md_context part;           /* the group where there are several */
  int number, groups;        /* of this group */
  md_geometry plan;          /* of its ranks, without tables */
  const char *backend;       /* of the last action */
  int measured, skipped;
  bool unsaved;        /* the file lacks results, because it could not be written */
  int64_t modes_bytes; /* on a rank, the most that those of --deflate take for any lattice */
} md_study_run;

/* Lists the lattices, checks --output, looks at the header of every lattice, compares the memory,
 * lays out the records and reads those of an earlier run. Collective. */
md_status md_study_prepare(md_study_run *r);

/* Modes of --deflate: one file for each lattice and action, whose name is the option's text with
 * {lattice}, the lattice's path without its suffix, {name}, its last part, and {action} filled in.
 *
 * MD_INPUT where the name does not fit. Local. */
md_status md_study_modes_name(md_context *context, const md_study *study, int lattice, int action,
                              char name[MD_STUDY_NAME_BYTES]);
/* Appends them to the files that the study reads. MD_INPUT where several lattices or actions would
 * share one. Local, same on all ranks. */
md_status md_study_modes_list(md_context *context, const md_study *study, md_made_files *files);
/* Looks at the files of one lattice and raises *bytes to what those of an action take on a rank of
 * the plan. Collective. */
md_status md_study_modes_look(md_context *context, const md_study *study, int lattice,
                              const md_geometry *plan, int64_t *bytes);
/* All modes that converged; `checksum` is md_links_checksum of the lattice's links as read.
 * MD_INPUT where they belong to another lattice, action or boundary;
 * on failure there is nothing to destroy. Collective. */
md_status md_study_modes_read(md_context *context, const md_study *study, int lattice, int action,
                              const md_geometry *geometry, const char *checksum, md_space space,
                              md_modes *modes);

/* Results of an earlier run whose lattice is another by now are refused, or with --force waited for
 * again; then, of two lattices that are known to be the same, by their headers or their results,
 * the later one, or the one without results, is left out as below. Collective. */
md_status md_study_check_sameness(md_study_run *r);

/* A lattice that cannot be measured is left out with --keep-going, MD_OK, or ends the run: `status`
 * with its name and `why`. All ranks call the same. */
md_status md_study_leave_out(md_study_run *r, int lattice, md_status status, const char *why);

#endif
