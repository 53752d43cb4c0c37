#ifndef MD_IO_HDF5_LABEL_H
#define MD_IO_HDF5_LABEL_H

#include "io/hdf5_file.h"
#include "io/lattice_file.h"

/* Inside of io: the label of links as attributes of their dataset. Files of thin links have
 * none, but for `made` where they were smeared. * links: "fat" or "long"; made: action and
 * parameters; phases: "none" where they are bare. */

/* Leaves *label as it is where nothing is said. MD_INPUT for a kind that is not known. Local. */
md_status md_h5_get_label(md_context *context, const char *path, hid_t dataset,
                          md_link_label *label);
/* Texts as attributes of the group MD_H5_TEXTS. All ranks call the same. */
#define MD_H5_TEXTS "/gauge/texts"
md_status md_h5_put_texts(md_context *context, const char *path, hid_t file,
                          const md_file_texts *texts);
/* Adds those texts, and the provenance of the dataset. In a child. */
md_status md_h5_get_texts(md_context *context, hid_t file, hid_t dataset, md_file_texts *texts);

/* All ranks call the same. */
md_status md_h5_put_label(md_context *context, const char *path, hid_t dataset,
                          const md_link_label *label);

#endif
