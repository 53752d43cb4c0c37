#pragma once

#include "dirac/solvers/solver_options.h"
#include "links/run.h"
#include "sources/sources.h"

/* The parts of `minidirac measure`: lattices x actions x masses x sources in one run. */

enum {
  MD_STUDY_SOURCES_MOST = 16,
  MD_STUDY_NAME_BYTES = 256,
  MD_STUDY_SETTINGS_BYTES = 4096,
  MD_STUDY_HEAD_MOST = 256, /* numbers that go before a record when groups tell what they found */
  MD_STUDY_CHECKSUM = 64
};

typedef struct md_study_options {
  md_run_options run;                      /* without lattice; action and width are set for each */
  const char *lattices, *output, *deflate; /* deflate: a pattern of names, or NULL */
  md_choices actions;
  md_reals masses;
  struct {
    md_source source[MD_STUDY_SOURCES_MOST];
    int count;
  } sources;
  md_momentum_list momenta;
  long long vectors, rhs, max_iterations, groups, bin;
  double tolerance;
  bool resume, force, keep_going, allow_repeats;
  md_solver_options how;                  /* by: NULL of multishift */
  char settings[MD_STUDY_SETTINGS_BYTES]; /* in words, what results must share to be in one file */
} md_study_options;

/* What is kept of a lattice: doubles one behind the other, the fields of a table (record.c). */
typedef enum md_study_field {
  MD_STUDY_PLAQUETTE, /* plaquette, space-space, space-time, link trace: one each */
  MD_STUDY_PLAQUETTE_SS,
  MD_STUDY_PLAQUETTE_ST,
  MD_STUDY_LINK_TRACE,
  MD_STUDY_POLYAKOV,         /* [2] */
  MD_STUDY_SECONDS,          /* that it took */
  MD_STUDY_PION,             /* [action][mass][source][momentum][t from the source], else NaN */
  MD_STUDY_PION_ERROR,       /* the same, over the copies of a source */
  MD_STUDY_CONDENSATE,       /* [action][mass][source], of noise, else NaN */
  MD_STUDY_CONDENSATE_ERROR, /* the same, over noise vectors */
  MD_STUDY_RESIDUAL,         /* the same: largest true residual */
  MD_STUDY_ITERATIONS,       /* the same: of the right-hand side that took longest */
  MD_STUDY_MIDPOINT, /* the same, of points and walls and domain-wall actions, else NaN: their pion
                        in the middle of the fifth dimension, summed over the slices of m_res */
  MD_STUDY_FIELDS
} md_study_field;

typedef enum md_lattice_state {
  MD_LATTICE_WAITS,
  MD_LATTICE_MEASURED,
  MD_LATTICE_RESUMED, /* by an earlier run: it was in the file */
  MD_LATTICE_SKIPPED, /* with --keep-going */
  MD_LATTICE_STATES
} md_lattice_state;

/* What tells a lattice from others. */
typedef struct md_lattice_sums {
  char file[MD_STUDY_CHECKSUM];    /* of its links as read: numbers by the kind of its file */
  char links[MD_LATTICE_IDENTITY]; /* md_lattice_identity; empty in files of older studies */
} md_lattice_sums;

typedef struct md_study_lattice {
  char name[MD_STUDY_NAME_BYTES];
  md_lattice_state state;
  char reason[MD_STUDY_NAME_BYTES]; /* why it was skipped */
  char stated[32];                  /* checksum that its header says; empty: it was not read */
  md_lattice_sums sums;             /* where there are results: of the links that they are of */
} md_study_lattice;

/* Everything of one run. */
typedef struct md_study {
  md_study_options options;
  int dims[MD_DIMS]; /* of every lattice */
  int lattices;
  md_study_lattice *lattice;
  int start[MD_STUDY_FIELDS], length[MD_STUDY_FIELDS]; /* of the fields in a record */
  int record;                                          /* doubles of a record */
  double *records;     /* [lattices][record], NaN where waited for */
  bool saved;          /* the file of --output is this run's */
  bool stale;          /* that file has its lattices in another order than --lattices, or results of
                          links that were replaced */
  double begin, share; /* of this run, 0..1: what was done before the lattice at work, its part */
} md_study;

static inline double *md_study_at(const md_study *s, int lattice, md_study_field field) {
  return s->records + (size_t)lattice * (size_t)s->record + (size_t)s->start[field];
}
static inline bool md_study_has(const md_study *s, int lattice) {
  return s->lattice[lattice].state == MD_LATTICE_MEASURED ||
         s->lattice[lattice].state == MD_LATTICE_RESUMED;
}
static inline int md_study_momenta(const md_study *s) {
  return md_momenta_of(&s->options.momenta).count;
}
/* Place of an action, a mass and a source in a field that has one entry for each. */
static inline int md_study_case(const md_study *s, int action, int mass, int source) {
  return (action * s->options.masses.count + mass) * s->options.sources.count + source;
}
/* The physics of one of the actions, and the request that its operators are made by. */
md_physics_options md_study_physics(const md_study_options *options, int action);
md_backend_request md_study_request(const md_study_options *options, int action);
/* The same of a batch on ranks with these extents: fewer right-hand sides, where a backend takes
 * these faster (md_solver_part_request). Collective. */
md_backend_request md_study_batch(md_context *context, const md_study_options *options, int action,
                                  const int *local);

/* For its lattices, as deep as the deepest action needs, with rank grids as the backend of the
 * first action likes them. Collective. */
md_layout_request md_study_layout(md_context *context, const md_study *study);

/* Reads and checks the options. Collective. */
md_status md_study_options_read(md_context *context, md_study_options *options, int argc,
                                char **argv);

/* A whole study by the words of a command line, argv[0] being "measure"; without md_interrupt_catch
 * before it no signal ends it early. As md_command_measure. Collective. */
md_status md_study_by_words(md_context *context, int argc, char **argv);
/* Lays out the records for the dims; MD_INPUT for more than the groups can add up. Local. */
md_status md_study_records_lay_out(md_context *context, md_study *study);
/* The same, and allocates them, all NaN. Local. */
md_status md_study_records_create(md_context *context, md_study *study);
/* The lattices that are done as the file of --output, which is replaced as a whole. Collective. */
md_status md_study_save(md_context *context, md_study *study);
/* With --resume and where the file is there: what it has of lattices in the list, whose state
 * becomes MD_LATTICE_RESUMED. MD_INPUT where it belongs to other settings, or is damaged.
 * Collective. */
md_status md_study_load(md_context *context, md_study *study);

/* One lattice of the list into `record`, and what tells it from others. Failures of reading are
 * MD_INPUT, as is a lattice that has results under another name (md_study_repeat), of solvers
 * MD_UNREACHED, and MD_ENVIRONMENT where a signal ended it. Collective over the ranks of the
 * context, which may be some of the run's. */
md_status md_study_measure(md_context *context, const md_study *study, int lattice, double *record,
                           md_lattice_sums *sums);
/* The second alone; nothing is measured. */
md_status md_study_identify(md_context *context, const md_study *study, int lattice,
                            md_lattice_sums *sums);

/* The link fields of one action on one lattice. */
typedef struct md_study_links {
  int action; /* place in options.actions */
  const md_gauge *field;
  uint64_t key;          /* of the lattice's random numbers */
  const md_modes *modes; /* to deflate with, in the space of the backend; NULL: none */
} md_study_links;
/* Right-hand sides of even parts of at most --rhs. */
int md_study_width(const md_study_options *options);
/* All masses and sources of one action into `record`; in a dry run (base/memory_need.h) one batch
 * of them, and no record. MD_UNREACHED where a solve does not converge, MD_ENVIRONMENT where a
 * signal ended it. Collective. */
md_status md_study_propagate(md_context *context, const md_study *study,
                             const md_study_links *links, double *record);

/* Means and errors over the lattices that are done: tables on the terminal, keys of the report. */
md_status md_study_analyse(md_context *context, const md_study *study, cJSON *root);

/* A study on its way. */
typedef struct md_study_run {
  md_study study;
  md_context *whole, *group;                      /* the run, and the ranks that share a lattice */
  md_context part;                                /* the group where there are several */
  int number, groups;                             /* of this group */
  md_geometry plan;                               /* of its ranks, without tables */
  const char *backend, *packing, *packing_reason; /* of the last action */
  int rhs_block;                                  /* likewise: right-hand sides of a batch */
  int waiting, begun;  /* lattices that this run is to measure, and those that it has begun */
  bool unsaved;        /* the file lacks results, because it could not be written */
  int64_t modes_bytes; /* on a rank, the most that those of --deflate take for any lattice */
} md_study_run;

/* Lists the lattices, checks --output, looks at the header of every lattice, compares the memory,
 * lays out the records, reads those of an earlier run and leaves lattices out that are there twice.
 * Collective. */
md_status md_study_prepare(md_study_run *r);
/* MD_INPUT where another lattice of the study has results and these links, unless --allow-repeats
 * was given. Local, same on all ranks of the context. */
md_status md_study_repeat(md_context *context, const md_study *study, int lattice,
                          const md_lattice_sums *sums);
/* A lattice that cannot be measured, for which the message of the run says why, is left out with
 * --keep-going, MD_OK, or ends the run: `status` with its name and that. All ranks call the same.
 */
md_status md_study_leave_out(md_study_run *r, int lattice, md_status status);

/* Modes of --deflate: one file for each lattice and action, whose name is the option's text with
 * {lattice}, the lattice's path without its suffix, {name}, its last part, and {action} filled in.
 * MD_INPUT where the name does not fit. Local. */
md_status md_study_modes_name(md_context *context, const md_study *study, int lattice, int action,
                              char name[MD_STUDY_NAME_BYTES]);
