#ifndef MD_LINKS_ORIGIN_H
#define MD_LINKS_ORIGIN_H

#include "dirac/action.h"
#include "io/lattice_file.h"

/* Of which lattice a file's links are. */
typedef struct md_link_origin {
  const char *path; /* of the file, borrowed */
  /* Both empty where the file does not say. */
  char identity[MD_LATTICE_IDENTITY]; /* md_lattice_identity of the thin links */
  char checksum[32];                  /* of their file, which depends on its format */
} md_link_origin;

/* From what a file of fat or long links says of itself; files that smear wrote, and copies of them
 * by convert, name their lattice. Local. */
md_link_origin md_link_origin_of(const char *path, const md_file_texts *texts);

/* MD_INPUT where fat and long links say that they are of different lattices, or of another one than
 * `thin`, which may be NULL: with the names of two files and what they say, a warning instead where
 * `ignored`. Where only one of two says, or they say it in different ways, there is a warning; two
 * files of another code go without one. Local, same on all ranks. */
md_status md_link_origins_check(md_context *context, const md_link_origin *thin,
                                const md_link_origin made[MD_MOST_LINK_FIELDS], bool ignored);

#endif
