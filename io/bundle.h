#ifndef MD_IO_BUNDLE_H
#define MD_IO_BUNDLE_H

#include "io/attribute.h"
#include "io/hdf5_file.h"
#include "lattice/fields/field.h"

/* Inside of io: what propagator and checkpoint files have in common. */
enum { MD_BUNDLE_VERSION = 1, MD_BUNDLE_DATASETS = 32 };

/* One dataset of host fields, in double but where they are only written: both parities in
 * lexicographic order, or one parity alone. */
typedef struct md_bundle_sites {
  const char *name;
  md_field *field[MD_PARITIES]; /* one parity: field[0] only */
} md_bundle_sites;

/* A file with one group, its datasets, and attributes at `object`: the group or the dataset. */
typedef struct md_bundle {
  const char *group, *object;
  md_bundle_sites *datasets;
  int dataset_count; /* at most MD_BUNDLE_DATASETS */
  const md_geometry *geometry;
  const md_attribute *attributes;
  int attribute_count;
} md_bundle;

static inline bool md_bundle_one_parity(const md_bundle_sites *s) {
  return s->field[1] == NULL;
}
md_h5_shape md_bundle_shape(const md_bundle_sites *s);
/* Slabs of about 16 MB of one right-hand side. */
md_slab_plan md_bundle_plan(const md_bundle_sites *s, size_t *slab_bytes);
/* Copies right-hand side r of a slab between raw (sites in file order) and the fields; false when
 * a value that was stored is not finite. Local, threaded. */
bool md_bundle_copy_slab(const md_bundle_sites *s, const md_slab *slab, int r, double *raw,
                         bool store);

/* Reads fields and attributes; the HDF5 library runs in a child process (io/child.h). Collective.
 */
md_status md_bundle_read(md_context *context, const char *path, const md_bundle *b);

#endif
