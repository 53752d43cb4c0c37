#ifndef MD_IO_ILDG_H
#define MD_IO_ILDG_H

#include "io/lattice_format.h"

/* What the label of links says, in files that we write, of links without phases and boundary sign.
 */
#define MD_ILDG_BARE "no phases, no boundary sign"

/* As md_lattice_format.write. Collective. */
md_status md_ildg_write(md_context *context, const char *path, md_lattice_header *header,
                        const md_gauge *gauge);

#endif
