#ifndef MD_IO_LATTICE_FILE_H
#define MD_IO_LATTICE_FILE_H

#include "io/file_texts.h"
#include "io/provenance.h"
#include "io/site_format.h"
#include "lattice/gauge/gauge.h"
#include "lattice/gauge/phases.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Lattice files of every format: sniffed by their first bytes, read and written by all ranks,
 * each its own part, in slabs of bounded size. */

typedef struct md_lattice_format md_lattice_format; /* io/lattice_format.h */

typedef enum md_checksum_state {
  MD_CHECKSUM_ABSENT,
  MD_CHECKSUM_OK,
  MD_CHECKSUM_MISMATCH,
  MD_CHECKSUM_UNREAD /* the links could not be read to the end */
} md_checksum_state;
/* "absent", "ok", "mismatch", "unread" */
const char *md_checksum_state_name(md_checksum_state state);

/* What the links of a file are, as far as it says so: thin and with nothing made of them where it
 * says nothing. HDF5: attributes links, made, phases; SciDAC: the words "Fat links" or "Long links"
 * in the record's XML, as MILC writes them. MILC v5 and NERSC files have no place for it. */
typedef struct md_link_label {
  md_link_kind kind;
  bool bare;     /* the file says that no phases and no boundary sign are in the links */
  char made[96]; /* action and parameters, "hisq, naik epsilon 0"; empty: not said */
} md_link_label;

/* What a file says of itself. Plain data: rank 0 reads it, every rank receives it. */
typedef struct md_lattice_header {
  int format;  /* index of the table of formats */
  bool scidac; /* LIME with the links as scidac-binary-data, not ILDG's record */
  int dims[MD_DIMS];
  md_precision precision; /* MD_DOUBLE or MD_SINGLE */
  md_site_format site;
  int64_t offset;       /* byte of the file where the links start; 0 for HDF5 */
  int planes;           /* in z that are stored together, in HDF5; else 0 */
  md_checksum checksum; /* kind MD_CHECKSUM_NONE: the file has none */
  bool has_plaquette, has_link_trace;
  bool binding; /* the format defines both values, so that links that differ are an error */
  double plaquette, link_trace;
  md_link_label label;
  /* For a file that is written: what else it is to say; borrowed, NULL: nothing. */
  const md_file_texts *texts;
  md_provenance *provenance;
} md_lattice_header;

typedef struct md_record {
  char type[129];
  char detail[96]; /* shape and type of an HDF5 object; empty for LIME */
  int64_t offset, bytes;
  bool message_begin, message_end; /* LIME flags */
} md_record;

/* What rank 0 noted on the way: the records or objects of the file, and each departure from the
 * rules of its format that did not keep the links from being read. */
typedef struct md_notes {
  md_record *records;
  int record_count;
  char (*departures)[200];
  int departure_count;
  md_file_texts texts; /* on every rank once the file was described */
} md_notes;

typedef struct md_lattice_info {
  md_lattice_header header;
  md_checksum computed;
  md_checksum_state checksum;
  bool described; /* the header is valid */
  bool observed;  /* the observables are valid */
  md_gauge_observables observables;
  int64_t file_bytes;
  double read_s; /* links from disk to field, checksum included */
  md_notes notes;
} md_lattice_info;

/* The format of a header, and its name: "hdf5", "ildg", "milc", "nersc". */
const md_lattice_format *md_lattice_format_of(const md_lattice_header *header);
const char *md_lattice_format_name(const md_lattice_format *format);
/* The same for a file that was read, which may also be "scidac". */
const char *md_lattice_header_format(const md_lattice_header *header);
/* Frees the notes and clears. */
void md_lattice_info_destroy(md_lattice_info *info);

/* Reads a lattice of thin links: recognises the format, checks all sizes against the file before
 * anything is allocated, creates geometry (rank grid as in md_layout_request) and gauge, reads,
 * verifies the checksum, exchanges halos, measures, and compares plaquette and link trace with the
 * header. MD_INPUT: not a lattice file, truncated, checksum or header values that do not fit the
 * links (only warnings with ignore_checksum), links that are not finite, or a label that says fat
 * or long. On failure there is no geometry and no gauge; *info keeps what was found. It is to be
 * destroyed in any case. Collective. */
md_status md_lattice_load(md_context *context, const char *path, const int grid[MD_DIMS],
                          bool ignore_checksum, md_geometry **geometry, md_gauge *gauge,
                          md_lattice_info *info);

/* The same for links of the kind *wanted, NULL: any; a file whose label names another kind is
 * MD_INPUT. Where *geometry is not NULL the links come on it, and it is left alone on failure;
 * MD_INPUT when the file has other extents. Collective. */
md_status md_lattice_load_links(md_context *context, const char *path, const md_link_kind *wanted,
                                const int grid[MD_DIMS], bool ignore_checksum,
                                md_geometry **geometry, md_gauge *gauge, md_lattice_info *info);

/* The geometry that md_lattice_load would make, without its tables, from the file's header alone,
 * and that header where `header` is not NULL. Nothing is to be destroyed. Errors as there.
 * Collective. */
md_status md_lattice_plan(md_context *context, const char *path, const int grid[MD_DIMS],
                          md_geometry *geometry, md_lattice_header *header);
/* A name for thin links that copies of a lattice share, whatever their format and precision: the
 * SciDAC checksum, as 16 hexadecimal digits, of the first two rows of each link rounded to single
 * precision. Two, for some formats have no third one and readers make it anew. Files of links that
 * are made from them say it in the text MD_THIN_LINKS. Collective. */
enum { MD_LATTICE_IDENTITY = 24 };
md_status md_lattice_identity(md_context *context, const md_gauge *thin,
                              char text[MD_LATTICE_IDENTITY]);
/* Bytes that md_lattice_load allocates on this rank at most, and links with md_lattice_save. */
int64_t md_lattice_load_bytes(const md_geometry *geometry);

/* The format to write: by name when `name` is not NULL, else by the suffix of `path` (.h5 .hdf5:
 * hdf5; .lime .ildg: ildg). MD_INPUT with the list of formats. Local, same on all ranks. */
md_status md_lattice_format_find(md_context *context, const char *path, const char *name,
                                 const md_lattice_format **format);
/* True when files of this format can hold that precision. */
bool md_lattice_format_holds(const md_lattice_format *format, md_precision precision);
/* True when they can hold links of that kind: NERSC files only thin ones, in SU(3). */
bool md_lattice_format_takes(const md_lattice_format *format, md_link_kind kind);

/* Writes the links to a temporary (base/file.h), reads them back and compares checksums, flushes,
 * renames to `path`: what was there stays whole until then. Plaquette and link trace of the links
 * go into the metadata; halos must be exchanged. MD_INPUT: precision that the format cannot hold,
 * links that are not finite; MD_ENVIRONMENT: disk. Collective. */
md_status md_lattice_save(md_context *context, const char *path, const md_lattice_format *format,
                          md_precision precision, const md_gauge *gauge);
/* The same with a label; fat and long links are MD_INPUT for NERSC files, whose links are in SU(3).
 */
md_status md_lattice_save_links(md_context *context, const char *path,
                                const md_lattice_format *format, md_precision precision,
                                const md_link_label *label, const md_gauge *gauge);

#ifdef __cplusplus
}
#endif

#endif
