#pragma once

#include "io/attribute.h"
#include "lattice/fields/field.h"

/* Fermion fields in HDF5. All fields are MD_DOUBLE, MD_HOST (those of a checkpoint that is written
 * may be narrower: a file has their values in double, which is exact), of either layout; every rank
 * moves its own part, and a file can be read on another rank grid than it was written on. Files are
 * written to a temporary and renamed when complete (base/file.h); every chunk has a Fletcher32,
 * damage is MD_INPUT. All functions are collective. MD_ENVIRONMENT: disk. */

/* Writes, in hdf5, /propagator/solution [rhs][t][z][y][x][3], of quarks with spin [4][3], of
 * complex {r, i} (h5py: complex128) from the even and odd part, and the attributes beside `dims`
 * (x,y,z,t) and `format_version` to that dataset; with keep_old the file is to be new: as
 * md_new_file.keep_old of base/file.h. The same in any other format of colour vectors
 * (io/vectors.h), where those have a place for them with the sources; `precision` is not that of
 * hdf5, which is double. source may be NULL. */
struct md_lattice_format;
md_status md_solution_write(md_context *context, const char *path,
                            const struct md_lattice_format *format, md_precision precision,
                            bool keep_old, const md_field solution[MD_PARITIES],
                            const md_field *source, const md_attribute *attributes, int count);
/* Reads it, or a solution in another format of colour vectors, into existing fields: MD_INPUT when
 * lattice extents or the number of right-hand sides are others, or an attribute that is asked for
 * is missing. Of hdf5 files of others dims and format_version may be missing, and the numbers may
 * be in single precision. */
md_status md_propagator_read(md_context *context, const char *path, md_field solution[MD_PARITIES],
                             const md_attribute *attributes, int count);

/* The state of a solver: fields of one parity each, under names of their own, at most so many. */
enum { MD_CHECKPOINT_FIELDS = 48 };
typedef struct md_named_field {
  const char *name;
  md_field *field;
} md_named_field;

/* Writes each field to /checkpoint/NAME [rhs][t][z][y][x/2][3], with spin [4][3] and with slices
 * [Ls][4][3], and the attributes to /checkpoint:
 * all of them or, on failure, the file that was there before. */
md_status md_checkpoint_write(md_context *context, const char *path, const md_named_field *fields,
                              int field_count, const md_attribute *attributes, int count);
/* Reads fields, those that are asked for of those that are there, and attributes back, bit for bit,
 * from the checkpoint of a lattice of these extents; without fields the attributes alone, of which
 * the rest may depend. MD_INPUT when a field, its parity, the lattice or the number of right-hand
 * sides differ from what is asked for, or an attribute is missing. */
md_status md_checkpoint_read(md_context *context, const char *path, const md_geometry *geometry,
                             const md_named_field *fields, int field_count,
                             const md_attribute *attributes, int count);
