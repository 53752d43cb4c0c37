#pragma once

#include "io/attribute.h"

/* Results in HDF5: a group with arrays of doubles or texts and attributes. Every rank holds all of
 * them; rank 0 writes and reads. A file is written to a temporary and renamed when complete
 * (base/file.h), each array with a Fletcher32; it is read in a child process (io/child.h). */

enum { MD_ARRAY_RANK_MOST = 6 };

typedef struct md_array {
  const char *name;
  int rank;                           /* extents in use, 1 to MD_ARRAY_RANK_MOST */
  int64_t extent[MD_ARRAY_RANK_MOST]; /* slowest first, each at least 1 */
  int text_bytes;   /* 0: doubles; else texts of that many bytes, the closing zero included */
  void *data;       /* of doubles, or [..][text_bytes] of char */
  bool optional;    /* on reading: zeros where the file has none */
  const char *axes; /* on writing: as of md_h5_put_axes; NULL: not named */
} md_array;

/* Writes the file anew with /GROUP; with keep_old it is to be new: as md_new_file.keep_old of
 * base/file.h. MD_ENVIRONMENT: disk. Collective. */
md_status md_arrays_write(md_context *context, const char *path, bool keep_old, const char *group,
                          const md_array *arrays, int array_count, const md_attribute *attributes,
                          int attribute_count);
/* Reads arrays of the given extents and attributes of /GROUP into their data, on every rank.
 * MD_INPUT: no such file, another shape or type, damage. Collective. */
md_status md_arrays_read(md_context *context, const char *path, const char *group,
                         const md_array *arrays, int array_count, const md_attribute *attributes,
                         int attribute_count);
