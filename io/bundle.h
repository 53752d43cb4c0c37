#pragma once

#include "io/child.h"
#include "io/modes_file.h"

/* Inside of io: what files of propagators, checkpoints and modes have in common: one group,
 * datasets of fermion fields, and attributes. */
enum { MD_BUNDLE_VERSION = 1, MD_BUNDLE_DATASETS = MD_CHILD_DATASETS };

/* One dataset of host fields, in double but where they are only written: both parities in
 * lexicographic order, or one parity alone. */
typedef struct md_bundle_sites {
  const char *name;
  md_field *field[MD_PARITIES]; /* one parity: field[0] only */
  /* Modes: each is brought to field[0], which has one right-hand side, from any space. */
  const md_modes *modes; /* to be written; NULL: the right-hand sides of the fields */
  int mode_count;        /* of the dataset; 0: it has no modes */
  md_precision store;    /* of modes, as of md_modes_info */
  double scale;          /* of modes: what half and the scales of fixed8 are multiplied with */
} md_bundle_sites;

/* A file with one group, its datasets, and attributes at `object`: the group or the dataset. */
typedef struct md_bundle {
  const char *group, *object;
  md_bundle_sites *datasets;
  int dataset_count; /* at most MD_BUNDLE_DATASETS */
  const md_geometry *geometry;
  const md_attribute *attributes; /* beside dims and format_version */
  int attribute_count;
  bool keep_old; /* of writing: as md_new_file.keep_old of base/file.h */
} md_bundle;

static inline bool md_bundle_one_parity(const md_bundle_sites *s) {
  return s->field[1] == NULL;
}
md_h5_shape md_bundle_shape(const md_bundle_sites *s);
/* Bytes in double of the largest slab that is read or written at once, about 16 MB. */
size_t md_bundle_slab_bytes(const md_bundle_sites *s);

/* Writes a new file: all of it or, on failure, what was there before stays. Collective. */
md_status md_bundle_write(md_context *context, const char *path, const md_bundle *b);
/* Reads right-hand side or mode number `lead` of the dataset that a child opened as the number-th
 * into the fields; of a mode *norm2 grows by its norm^2. MD_INPUT: damage, NaN. Local. */
md_status md_bundle_read_lead(md_context *context, md_child *child, int number,
                              const md_bundle_sites *s, int lead, double *norm2);

/* The scale of a site of fixed8 is the smallest binary16 that brings its largest number to
 * MD_FIXED8_STEPS at most. */
enum { MD_FIXED8_STEPS = 127 };
