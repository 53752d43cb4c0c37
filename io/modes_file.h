#pragma once

#include "lattice/fields/modes.h"
#include "lattice/gauge/gauge.h"

/* Modes in HDF5: /modes/vectors [mode][t][z][y][x/2][3], of quarks with four spins [4][3] and of
 * those with a fifth dimension [Ls][4][3], of complex {r, i} (h5py reads it as complex
 * but for half), or [mode][t][z][y][x/2] of {scale, r[3], i[3]} with integers of 8 bits: fixed8.
 * And attributes of /modes. All ranks write and read, each its own part, and a file can be read on
 * another rank grid than it was written on. Files are written to a temporary and renamed when
 * complete (base/file.h); every chunk has a Fletcher32, damage is MD_INPUT. */

enum { MD_MODES_TEXT = 192 };

/* What the modes belong to: texts that must be equal on reading. The mass is not among them
 * but where modes depend on it, as with spin: then it is said with the action. */
typedef struct md_modes_label {
  char lattice_checksum[MD_MODES_TEXT]; /* of the links, see md_links_checksum */
  char action[MD_MODES_TEXT];           /* with its parameters, see md_deflation_label */
  char boundary[MD_MODES_TEXT];         /* in t: "antiperiodic" or "periodic" */
} md_modes_label;

typedef struct md_modes_info {
  int dims[MD_DIMS];
  int components;     /* reals of a site: 6, with spin and slices more */
  int count;          /* modes of the file, the lowest first */
  int converged;      /* the lowest of them that met the tolerance, without a gap */
  double tolerance;   /* on their residuals */
  md_precision store; /* that vectors are read in: MD_DOUBLE, MD_SINGLE, MD_HALF; MD_FIXED stands
                         for fixed8, which takes 16 bits in memory and 8 on file */
  md_modes_label label;
  bool keep_old; /* of writing: the file is to be new, as md_new_file.keep_old of base/file.h */
} md_modes_info;

/* As words of a choice, and by such a word; the name of how a file stores them. */
#define MD_MODES_STORE_WORDS "double|single|half|fixed8"
md_precision md_modes_store_of(const char *word);
const char *md_modes_store_name(md_precision store);

/* Writes the vectors, of any space and precision, in the precision info->store; its dims and count
 * are not read. Attributes: dims, format_version, the label, mass_independent (1, with spin 0),
 * converged, tolerance, eigenvalues, residuals, scale: a vector is scale times what is stored.
 * Scale is 1 but for half and for the scales of fixed8, which are so brought near 1.
 * Other formats than hdf5 (io/vectors.h): modes as scidac or quda files have them, of which scidac
 * is read by the functions below too; store: double, or single for all others. Attributes are the
 * label, converged and tolerance. MD_ENVIRONMENT: disk. Collective. */
struct md_lattice_format;
md_status md_modes_write(md_context *context, const char *path,
                         const struct md_lattice_format *format, const md_modes *modes,
                         const md_modes_info *info);
/* What a file says of itself. MD_INPUT when it is none of modes. Collective. */
md_status md_modes_describe(md_context *context, const char *path, md_modes_info *info);
/* The lowest `count` modes of the file that *info describes into `space`, in the file's precision.
 * MD_INPUT when the lattice's extents or the label are others than *wanted, naming the one that
 * differs, the file is damaged, or its vectors are no unit vectors. In a dry run the eigenvalues
 * alone are read, whatever they belong to. On failure there is nothing to destroy. Collective. */
md_status md_modes_read(md_context *context, const char *path, const md_geometry *geometry,
                        const md_modes_label *wanted, const md_modes_info *info, int count,
                        md_space space, md_modes *modes);

/* A name for link fields that does not depend on the file that they came from: the SciDAC checksum
 * of each field's image in double, as 16 hexadecimal digits a field. Local extents as of the
 * geometry; collective. */
md_status md_links_checksum(md_context *context, const md_gauge *fields, int count,
                            char text[MD_MODES_TEXT]);
