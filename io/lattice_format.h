#ifndef MD_IO_LATTICE_FORMAT_H
#define MD_IO_LATTICE_FORMAT_H

#include "io/lattice_file.h"

/* Inside of io: what a lattice format is. A new one is a file with one const md_lattice_format
 * and a line in the table of lattice_file.c. */

typedef struct md_source { /* a file that rank 0 has open for reading */
  const char *path;
  int file; /* descriptor */
  int64_t bytes;
} md_source;

struct md_lattice_format {
  const char *name;
  const char *suffixes; /* ".a .b" */
  bool single_only, thin_only;
  /* Whether a file has a place for a text of that name. NULL: for every one. */
  bool (*keeps)(const char *name, const char *text);
  /* True when the file starts as files of this format do. */
  bool (*recognises)(const unsigned char *head, size_t bytes);
  /* Fills header (all but `format`) and notes, and checks dims and sizes; allocates nothing that
   * grows with what the file claims. Rank 0 only, local. */
  md_status (*describe)(md_context *context, const md_source *source, md_lattice_header *header,
                        md_notes *notes);
  /* Reads every rank's links into gauge (NULL: only the checksum) and assigns the checksum of
   * the header's kind over the whole file. Collective. */
  md_status (*read)(md_context *context, const char *path, const md_lattice_header *header,
                    const md_geometry *geometry, md_gauge *gauge, md_checksum *checksum);
  /* Writes a whole new file. Of `header` dims, precision, plaquette, link trace and label are
   * given; site, offset and checksum are assigned so that `read` can follow. Collective. */
  md_status (*write)(md_context *context, const char *path, md_lattice_header *header,
                     const md_gauge *gauge);
};

extern const md_lattice_format md_format_hdf5, md_format_ildg, md_format_milc, md_format_nersc;

/* Reads exactly `bytes` at `offset`: MD_INPUT when the file ends before. */
md_status md_source_read(md_context *context, const md_source *source, int64_t offset, void *data,
                         size_t bytes);
/* Extents even and within 2..32767, at most 2^40 sites. */
md_status md_source_check_dims(md_context *context, const md_source *source,
                               const long long dims[MD_DIMS], md_lattice_header *header);
/* The links that the header promises end within the file; *rest = bytes behind them. */
md_status md_source_check_links(md_context *context, const md_source *source,
                                const md_lattice_header *header, int64_t *rest);
/* Bytes of all links on file. */
int64_t md_lattice_link_bytes(const md_lattice_header *header);

void md_notes_record(md_notes *notes, const md_record *record);
void md_notes_departure(md_notes *notes, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
