#pragma once

#include "io/attribute.h"
#include "io/lattice_file.h"
#include "lattice/fields/modes.h"

/* Colour vectors in files of other codes: solutions of staggered equations, their sources, and
 * eigenvectors. Formats, by name or suffix of a file:
 *   scidac  QIO's records in LIME (.lime .scidac). Solutions: a file usqcdKSPropFile of the type
 *           USQCD_ColorVector_Source_Sink_Pairs, in which each right-hand side is a record of its
 *           source and one of its solution. Modes: as MILC writes them, <eigVal> and <resid> in
 *           each record. Files of plain ColorVector records are read too.
 *
 *   quda    modes alone (.quda): all in one record, side by side on each site, odd sites zero, as
 *           QUDA reads them; without eigenvalues, so that it is not read as modes.
 *
 *   milc    MILC's binary KS propagator, magic number 0x5aa9 (.milc .ks): three right-hand sides.
 *
 *   fnal    The site-major file of three that MILC calls Fermilab's, 0x71626434 (.fnal).
 *
 * The last two are in single precision and have no place for attributes.
 *
 * All are in MILC's convention: (2 m + D') x' = b', with 2 D = D' and phases that run t, x, y, z.
 * With s(x) = (-1)^(t (x + y + z)) it is b' = s b, x' = s x / 2, for eigenvectors v' = s v and for
 * their eigenvalues 4 times ours; signs and powers of two, so that a way there and back changes no
 * bit in double. Fields here are host, MD_DOUBLE, in our convention. All functions are collective;
 * MD_ENVIRONMENT: disk, memory. */

#define MD_VECTORS_FORMAT_WORDS "hdf5|scidac|milc|fnal"
#define MD_VECTORS_FORMAT_OPTION(target)                                                           \
  MD_OPTION(CHOICE, "format", &(target), "F",                                                      \
            "of --output: hdf5, scidac, milc or fnal [by its suffix: .h5, .lime, .milc, .fnal]",   \
            .choices = MD_VECTORS_FORMAT_WORDS)

/* How the text "convention" of a file begins whose vectors are modes. */
#define MD_MILC_MODES "MILC: of -D' D'"

/* The format that a name, or without one the suffix of the file, stands for; hdf5 where neither
 * does, or MD_INPUT. Local. */
const md_lattice_format *md_vectors_format_of(const char *path, const char *name);
md_status md_vectors_format_find(md_context *context, const char *path, const char *name,
                                 const md_lattice_format **format);
/* MD_INPUT for a suffix that stands for a format of links alone. Local. */
md_status md_vectors_check_suffix(md_context *context, const char *path);
/* True when the file begins as one of these formats does, hdf5 left out. */
bool md_vectors_recognised(const md_context *context, const char *path);

typedef struct md_vectors_output {
  const md_lattice_format *format; /* not hdf5 */
  md_precision precision;          /* double or single */
  bool keep_old;                   /* as md_new_file.keep_old of base/file.h */
  /* Solutions and their sources, [even, odd]; source NULL: without them. Or modes, of any space and
   * precision. */
  const md_field *solution, *source;
  const md_modes *modes;
  const md_attribute *attributes; /* said in XML as lines NAME = VALUE; of several numbers, one a
                                     right-hand side, each record has its own */
  int count;
} md_vectors_output;

/* MD_INPUT where the format has no place for so many vectors, for modes or for solutions, or for
 * their precision: known before the work that makes them. Local. */
md_status md_vectors_check(md_context *context, const md_lattice_format *format,
                           md_precision precision, int count, bool modes);
/* The precision to write where none is asked for: double as far as the format can hold it. */
static inline md_precision md_vectors_precision(const md_lattice_format *format) {
  return md_lattice_format_holds(format, MD_DOUBLE) ? MD_DOUBLE : MD_SINGLE;
}

/* Writes the file, reads it back and compares checksums, then renames. MD_INPUT: a number of
 * right-hand sides, a precision or kind of vectors that the format has no place for, or values that
 * are not finite. */
md_status md_vectors_write(md_context *context, const char *path, const md_vectors_output *output);

/* Of a file that md_lattice_describe found to hold "vectors". */
/* Its right-hand sides: with `source` those of sources, where there are any that are whole, else
 * all that are none. Local. */
int md_vectors_count(const md_lattice_info *info, bool source);
/* Whether they are eigenvectors, with their eigenvalues or without. Local. */
bool md_vectors_are_modes(const md_lattice_info *info);
/* Reads as many as the fields have right-hand sides, from the first. MD_INPUT: other extents, fewer
 * vectors, a checksum that fails, values that are not finite. */
md_status md_vectors_read(md_context *context, const char *path, const md_lattice_info *info,
                          bool source, md_field fields[MD_PARITIES]);
/* Assigns mode number i of a file of them to a field of even sites. As md_vectors_read. */
md_status md_vectors_read_mode(md_context *context, const char *path, const md_lattice_info *info,
                               int i, md_field *even);
/* Compares the checksums of all runs with `sums`, NULL: with what the file says of them.
 * *state: of the worst. */
md_status md_vectors_verify(md_context *context, const char *path, const md_geometry *geometry,
                            const md_lattice_info *info, const md_checksum *sums,
                            md_checksum_state *state);
/* What the file said under that name, as the attribute wants it; false when it did not, or a text
 * has no room. Also of a "solution" or "modes" in HDF5. Local. */
bool md_vectors_attribute(const md_lattice_info *info, const md_attribute *attribute);
