#ifndef MD_IO_FILE_TEXTS_H
#define MD_IO_FILE_TEXTS_H

#include "base/context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a lattice file says in words beside its links: named texts, at most
 * MD_FILE_TEXTS_MOST bytes of them. Names:
 *   NAME             LIME: the text record of this type; HDF5: an attribute of /gauge/texts
 *   nersc KEY        a line of a NERSC header
 *   milc time_stamp  MILC v5
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

#ifdef __cplusplus
}
#endif

#endif
