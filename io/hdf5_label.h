#ifndef MD_IO_HDF5_LABEL_H
#define MD_IO_HDF5_LABEL_H

#include "io/hdf5_file.h"
#include "io/lattice_file.h"

/* Inside of io: the label of links as attributes of their dataset. Files of thin links have
 * none, but for `made` where they were smeared. * links: "fat" or "long"; made: action and
 * parameters; phases: "none" where they are bare. */

/* Those attributes as they are on file, "thin" and empty where it has none. */
typedef struct md_h5_label_words {
  char links[16], phases[16], made[sizeof((md_link_label *)0)->made];
} md_h5_label_words;
/* MD_INPUT for a kind that is not known. Local. */
md_status md_h5_take_label(md_context *context, const char *path, const md_h5_label_words *words,
                           md_link_label *label);
/* Texts as attributes of the group MD_H5_TEXTS. All ranks call the same. */
#define MD_H5_TEXTS "/gauge/texts"
md_status md_h5_put_texts(md_context *context, const char *path, hid_t file,
                          const md_file_texts *texts);
/* All ranks call the same. */
md_status md_h5_put_label(md_context *context, const char *path, hid_t dataset,
                          const md_link_label *label);

#endif
