#ifndef MD_LATTICE_HALO_HALO_OPTIONS_H
#define MD_LATTICE_HALO_HALO_OPTIONS_H

#include "base/options.h"
#include "lattice/halo/halo.h"

/* The options of every command that solves or times over ranks: rows for its table, into an
 * md_halo_request. */
/* clang-format off */
#define MD_HALO_OPTIONS(halo)                                                                      \
  MD_OPTION(TEXT, "transport", &(halo).transport, "NAME",                                          \
            "of halos: auto, or a name of docs/backends.md [auto]"),                             \
  MD_OPTION(FLAG, "check-halo", &(halo).check, NULL,                                               \
            "verify number and hash of every halo message")
/* clang-format on */

#endif
