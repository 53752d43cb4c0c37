#pragma once

#include "io/site_data.h"

/* Inside of io: what a lattice format is. A new one is a file with one const md_lattice_format
 * and a line in the table of lattice_file.c. */

typedef struct md_header_input { /* a file that rank 0 has open for reading */
  md_context *context;
  const char *path;
  int file; /* descriptor */
  int64_t bytes;
  md_lattice_header *header; /* what is found in it */
  md_notes *notes;
} md_header_input;

/* What stands before and behind links that lie in a file as one run of sites; the length of the
 * head must not depend on the checksum. Released with free(). */
typedef struct md_frame {
  char *head, *tail;
  size_t head_bytes, tail_bytes;
} md_frame;

enum { MD_HOLDS_LINKS = 1, MD_HOLDS_VECTORS = 2 };

struct md_lattice_format {
  const char *name;
  const char *suffixes; /* ".a .b" */
  unsigned holds;       /* of those that are written: links, colour vectors */
  bool single_only, thin_only;
  int vectors_only;          /* a file holds that many vectors and no other number; 0: any */
  bool together;             /* the vectors of a site lie side by side, all in one run */
  md_checksum_kind checksum; /* of files that we write */
  /* md_lattice_format_keeps. NULL: every text has a place. */
  bool (*keeps)(const char *name, const char *text, size_t *used);
  /* True when the file starts as files of this format do. NULL: another format knows them. */
  bool (*recognises)(const unsigned char *head, size_t bytes);
  /* Fills header (all but `format`) and notes, and checks dims and sizes; allocates nothing that
   * grows with what the file claims. Rank 0 only, local. */
  md_status (*describe)(const md_header_input *source);
  /* Makes the frame of a file that is written, in big-endian numbers: header has all but what the
   * first call, whose frame counts for its lengths, does not know: offset and checksum. NULL: the
   * links lie in no frame but in HDF5. Local. */
  md_status (*compose)(md_context *context, const md_lattice_header *header, md_frame *frame);
};

extern const md_lattice_format md_format_hdf5, md_format_ildg, md_format_milc, md_format_nersc,
    md_format_scidac, md_format_quda, md_format_milc_vectors, md_format_fnal;

/* Reads every rank's sites into the fields (NULL: only the checksum) and adds this rank's part to
 * *checksum, whose kind is the header's: from one run of sites, by MPI-IO with every rank's part as
 * a subarray, or from our HDF5 files. Collective. */
md_status md_payload_read(md_context *context, const char *path, const md_lattice_header *header,
                          const md_geometry *geometry, const md_site_fields *fields,
                          md_checksum *checksum);
md_status md_h5_lattice_read(md_context *context, const char *path, const md_lattice_header *header,
                             const md_geometry *geometry, const md_site_fields *links,
                             md_checksum *checksum);
/* Writes a whole new file of one run of sites or several, each with its head and tail: header->run
 * counts them. `fill`, where it is not NULL, assigns the fields of a run before they are written.
 * Of `header` dims, precision, site, the kind of the checksum and what is said beside the sites are
 * given; offset and checksum are assigned so that reading can follow, sums[run] where it is not
 * NULL. Space for the whole file is reserved first, so that a full disk is met before anything
 * collective. Collective. */
typedef md_status md_run_fill(md_context *context, void *user, int run);
typedef struct md_runs {
  int count;
  md_run_fill *fill;
  void *user;
  md_checksum *sums;
} md_runs;
md_status md_payload_write(md_context *context, const char *path, md_lattice_header *header,
                           const md_site_fields *fields, const md_lattice_format *format,
                           const md_runs *runs);
/* The same for links in HDF5; header->planes is assigned too. */
md_status md_h5_lattice_write(md_context *context, const char *path, md_lattice_header *header,
                              const md_gauge *gauge);
/* Reads exactly `bytes` at `offset`: MD_INPUT when the file ends before. */
md_status md_header_input_read(const md_header_input *source, int64_t offset, void *data,
                               size_t bytes);
/* Assigns the extents of the header: even and within 2..32767, at most 2^40 sites. */
md_status md_header_input_check_dims(const md_header_input *source, const long long dims[MD_DIMS]);
/* Ends the description of colour vectors: checks extents and that all runs have the length that
 * they ask for, and assigns the rest of the header. MD_INPUT. */
md_status md_vectors_settle(const md_header_input *source, const long long dims[MD_DIMS],
                            bool big_endian);
/* For a file of a head, the sites that the header promises and nothing else: MD_INPUT when they do
 * not end within it. Notes both as records, under the name `what`, and what is behind them. */
md_status md_header_input_take_sites(const md_header_input *source, const char *what);

void md_notes_record(md_notes *notes, const md_record *record);
/* MD_ENVIRONMENT: memory. Local. */
md_status md_notes_run(md_context *context, md_notes *notes, const md_vector_run *run);
void md_notes_departure(md_notes *notes, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
