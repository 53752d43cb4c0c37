#ifndef MD_IO_LATTICE_OUTPUT_H
#define MD_IO_LATTICE_OUTPUT_H

#include "io/lattice_file.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is written beside the links. */
typedef struct md_lattice_output {
  const md_lattice_format *format;
  md_precision precision;
  md_link_label label;
  const md_file_texts *texts;      /* NULL: none. What the format has no place for is left out */
  const md_provenance *provenance; /* NULL: that of the run. In HDF5 files only */
  bool keep_old; /* the file is to be new: as md_new_file.keep_old of base/file.h */
} md_lattice_output;

/* The same with texts and provenance, equal on all ranks. Collective. */
md_status md_lattice_save_as(md_context *context, const char *path, const md_lattice_output *output,
                             const md_gauge *gauge);
/* True when files of this format have a place for a text of that name. */
bool md_lattice_format_keeps(const md_lattice_format *format, const char *name, const char *text);

#ifdef __cplusplus
}
#endif

#endif
