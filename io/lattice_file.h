#pragma once

#include "io/attribute.h"
#include "lattice/gauge/gauge.h"
#include "lattice/gauge/phases.h"

/* A site as every format has it: sites in lexicographic order, x fastest; four links mu = x,y,z,t;
 * rows; columns; re, im. Or colour vectors, one behind the other: colour; re, im. */
typedef struct md_site_format {
  int vectors;    /* 0: links */
  int rows;       /* of a vector 1; of a link 3, or 2: the third row is the conjugate cross product
                     of the others */
  int real_bytes; /* 4 or 8 */
  bool big_endian;
} md_site_format;
#define MD_HOST_BIG_ENDIAN (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

static inline int md_site_reals(const md_site_format *format) {
  return (format->vectors ? format->vectors : MD_DIMS) * format->rows * 6;
}
static inline size_t md_site_bytes(const md_site_format *format) {
  return (size_t)md_site_reals(format) * (size_t)format->real_bytes;
}

/* Checksums of lattice files; r is the lexicographic index of a site in the whole lattice.
 *   SciDAC (QIO): c = crc32 of the site's bytes, big-endian; a ^= rotl(c, r mod 29),
 *     b ^= rotl(c, r mod 31).
 *   MILC v5: the same with every 32-bit word (value in file byte order) for c and the number of
 *     the word for r.
 *   NERSC: a = sum of all 32-bit words modulo 2^32. */
typedef enum md_checksum_kind {
  MD_CHECKSUM_NONE,
  MD_CHECKSUM_SCIDAC,
  MD_CHECKSUM_MILC,
  MD_CHECKSUM_NERSC
} md_checksum_kind;

typedef struct md_checksum {
  md_checksum_kind kind;
  uint32_t a, b;
  long long damaged; /* parts whose own checksum failed (HDF5: Fletcher32 of a chunk) */
} md_checksum;

/* What a lattice file says in words beside its links: named texts, at most
 * MD_FILE_TEXTS_MOST bytes of them. Names:
 *   NAME             LIME: the text record of this type; HDF5: an attribute of /gauge/texts
 *   nersc KEY        a line of a NERSC header
 *   milc time_stamp  MILC v5
 *   NAME             of colour vectors and of what else our HDF5 files hold: an attribute of it, a
 *                    line NAME = VALUE in LIME
 *   scidac date      of another writer's scidac-private-record-xml
 *   minidirac NAME   ours; in a NERSC header the line MINIDIRAC_NAME. MD_THIN_LINKS says of links
 *                    that were made from thin ones which those are (md_lattice_identity)
 *   source NAME      what a file said of itself before it was converted, where the new file says
 *                    something of its own under that name
 * Texts that the new file says anew (extents, precision, checksum, plaquette) are not among them.
 */
#define MD_THIN_LINKS "minidirac thin_links"
enum { MD_FILE_TEXTS_MOST = 1 << 18, MD_FILE_TEXT_MOST = 1 << 15, MD_FILE_TEXT_NAME = 127 };

typedef struct md_file_texts {
  char *bytes; /* NAME\0TEXT\0 for each */
  size_t used;
  int count;
  int lost; /* texts that were too long, or not text */
} md_file_texts;

/* Adds a copy of `length` bytes, without blanks and zero bytes at their end. A text of that name
 * that is there stays, and an empty one is not kept: MD_OK. One that holds a zero byte, or for
 * which there is no room, is counted as lost: MD_OK. MD_ENVIRONMENT: no memory. Local. */
md_status md_file_texts_add(md_context *context, md_file_texts *texts, const char *name,
                            const char *text, size_t length);
/* NULL: none of that name. texts may be NULL. Local. */
const char *md_file_texts_find(const md_file_texts *texts, const char *name);
/* The text behind *at (0 at first), which moves on; false at the end. texts may be NULL. Local. */
bool md_file_texts_next(const md_file_texts *texts, size_t *at, const char **name,
                        const char **text);
/* Adds those of `bytes`, NAME\0TEXT\0 for each, which may come from anywhere. Local. */
md_status md_file_texts_take(md_context *context, md_file_texts *texts, const char *bytes,
                             size_t used);
void md_file_texts_free(md_file_texts *texts);

/* Lattice files of every format: sniffed by their first bytes, read and written by all ranks,
 * each its own part, in slabs of bounded size. */

typedef struct md_lattice_format md_lattice_format; /* io/lattice_format.h */

typedef enum md_checksum_state {
  MD_CHECKSUM_ABSENT,
  MD_CHECKSUM_OK,
  MD_CHECKSUM_MISMATCH,
  MD_CHECKSUM_UNREAD /* not all was read to the end */
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
  int format;        /* index of the table of formats */
  char content[32];  /* "links", "vectors" (io/vectors.h), or what else one of our HDF5 files holds:
                        "solution", "modes", "checkpoint", "study" */
  bool scidac;       /* LIME with its sites as scidac-binary-data, not ILDG's record */
  int dims[MD_DIMS]; /* zeros in an HDF5 file of no links that does not say them */
  int count;         /* of such a file: right-hand sides or modes; 0: it does not say */
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
  const struct md_vectors_output *vectors; /* and of these the run that is being written */
  int run;
} md_lattice_header;

/* A run of sites with colour vectors in a file. */
typedef struct md_vector_run {
  int64_t offset, bytes;  /* in the file */
  int vectors;            /* of a site */
  int real_bytes;         /* 4 or 8 */
  bool source;            /* the right-hand side of the run behind it */
  bool part;              /* of some sites only: not read */
  bool mode;              /* an eigenvector with its eigenvalue */
  int colour;             /* of the source; -1: not said */
  double value, residual; /* of a mode, as on file */
  md_checksum checksum;   /* kind MD_CHECKSUM_NONE: none */
} md_vector_run;

typedef struct md_record {
  char type[129];
  char detail[96]; /* shape and type of an HDF5 object; empty for LIME */
  int64_t offset, bytes;
  bool message_begin, message_end; /* LIME flags */
  bool attribute;                  /* of an HDF5 object: OBJECT@NAME */
} md_record;

/* What rank 0 noted on the way: the records or objects of the file, and each departure from the
 * rules of its format that did not keep the links from being read. */
typedef struct md_notes {
  md_record *records;
  int record_count;
  char (*departures)[200];
  int departure_count;
  md_file_texts texts; /* on every rank once the file was described */
  md_vector_run *runs; /* on every rank too */
  int run_count;
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

/* "hdf5", "ildg", "milc", "nersc". */
const char *md_lattice_format_name(const md_lattice_format *format);
/* The same for a file that was read, which may also be "scidac". */
const char *md_lattice_header_format(const md_lattice_header *header);
/* Frees the notes and clears. */
void md_lattice_info_destroy(md_lattice_info *info);

/* All datasets of an HDF5 file, read to their end. Collective. */
typedef struct md_datasets_found {
  long long datasets, unguarded, damaged; /* without Fletcher32; where it or a read fails */
  bool unseen; /* there may be more: beyond what is listed, or data that are not read */
} md_datasets_found;
md_status md_datasets_verify(md_context *context, const char *path, md_datasets_found *found);

/* Describes a file of any content; *info is to be destroyed in any case. Collective. */
md_status md_lattice_describe(md_context *context, const char *path, md_lattice_info *info);
/* The same for a file that may not be there yet, or be empty: MD_OK and *there false. Collective.
 */
md_status md_lattice_describe_old(md_context *context, const char *path, md_lattice_info *info,
                                  bool *there);

/* Reads a lattice of thin links: recognises the format, checks all sizes against the file before
 * anything is allocated, creates geometry (rank grid as in md_layout_request) and gauge, reads,
 * verifies the checksum, exchanges halos, measures, and compares plaquette and link trace with the
 * header. MD_INPUT: not a lattice file, truncated, checksum or header values that do not fit the
 * links (only warnings with ignore_checksum), links that are not finite, or a label that says fat
 * or long. Whether they are in SU(3) is the caller's to ask (md_gauge_check_thin). On failure there
 * is no geometry and no gauge; *info keeps what was found. It is to be destroyed in any case.
 * Collective. */
md_status md_lattice_load(md_context *context, const char *path, const int grid[MD_DIMS],
                          bool ignore_checksum, md_geometry **geometry, md_gauge *gauge,
                          md_lattice_info *info);

/* The same for links of the kind *wanted, NULL: any, with a warning where thin ones are not in
 * SU(3); a file whose label names another kind is MD_INPUT. Where *geometry is not NULL the links
 * come on it, and it is left alone on failure; MD_INPUT when the file has other extents.
 * Collective. */
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
/* Bytes that md_lattice_load allocates on this rank at most, and links with md_lattice_save_as. */
int64_t md_lattice_load_bytes(const md_geometry *geometry);

/* The format to write: by name when `name` is not NULL, else by the suffix of `path` (.h5 .hdf5:
 * hdf5; .lime .ildg: ildg). MD_INPUT with the list of formats. Local, same on all ranks. */
md_status md_lattice_format_find(md_context *context, const char *path, const char *name,
                                 const md_lattice_format **format);
/* True when files of this format can hold that precision. */
bool md_lattice_format_holds(const md_lattice_format *format, md_precision precision);
/* True when they can hold links of that kind: NERSC files only thin ones, in SU(3). */
bool md_lattice_format_takes(const md_lattice_format *format, md_link_kind kind);

/* What is written beside the links. */
typedef struct md_lattice_output {
  const md_lattice_format *format;
  md_precision precision;
  md_link_label label;
  const md_file_texts *texts;      /* NULL: none. What the format has no place for is left out */
  const md_provenance *provenance; /* NULL: that of the run. In HDF5 files only */
  bool keep_old;                 /* the file is to be new: as md_new_file.keep_old of base/file.h */
  md_gauge_observables *written; /* NULL, or receives those of the links as the file has them */
} md_lattice_output;

/* Writes the links to a temporary (base/file.h), reads them back and compares checksums, flushes,
 * renames to `path`: what was there stays whole until then. Plaquette and link trace of the links
 * go into the metadata; halos must be exchanged, and label, texts and provenance be equal on all
 * ranks. MD_INPUT: precision that the format cannot hold, links that are not finite, fat and long
 * links in NERSC files, whose links are in SU(3); MD_ENVIRONMENT: disk. Collective. */
md_status md_lattice_save_as(md_context *context, const char *path, const md_lattice_output *output,
                             const md_gauge *gauge);
/* True when files of this format have a place for a text of that name. *used: what those before it
 * take up, 0 at first. */
bool md_lattice_format_keeps(const md_lattice_format *format, const char *name, const char *text,
                             size_t *used);
/* Lists what of the label they have no place for: links, made. Returns its length. */
int md_lattice_format_drops(const md_lattice_format *format, const md_link_label *label,
                            const char *names[2]);

/* Fat and long links that were made before, by us or by another code, from files of any lattice
 * format (HDF5, ILDG and SciDAC, MILC v5; in NERSC files links are unitary). */

/* What was found in one file. */
typedef struct md_improved_info {
  md_lattice_info lattice;
  md_phases phases; /* found in the links, and taken off */
} md_improved_info;

/* Reads links of a kind. The file may name its kind (our HDF5 and SciDAC files do, and MILC's
 * records "Fat links" and "Long links"): one that differs is MD_INPUT. Finds phases and boundary
 * sign, takes them off and says so (md_say); our own files tell that there are none and are taken
 * at their word. *geometry NULL: created as by md_lattice_load; else the file must have its
 * extents, and the links come on it. Errors as md_lattice_load and md_phases_find; unitarity is
 * not looked at. *info is to be destroyed in any case. Collective. */
md_status md_improved_load(md_context *context, const char *path, md_link_kind kind,
                           const int grid[MD_DIMS], bool ignore_checksum, md_geometry **geometry,
                           md_gauge *gauge, md_improved_info *info);
