#ifndef MD_LATTICE_HALO_HALO_OPTIONS_H
#define MD_LATTICE_HALO_HALO_OPTIONS_H

#include "base/options.h"
#include "lattice/halo/halo.h"

/* The options of every command that solves or times over ranks: rows for its table, into an
 * md_halo_request. */
/* clang-format off */
#define MD_HALO_OPTIONS(halo)                                                                        \
  {.name = "transport", .type = MD_OPTION_TEXT, .target = &(halo).transport, .argument = "NAME",     \
   .help = "of halos: auto, or a name of docs/backends.md [auto]"},                                \
  {.name = "check-halo", .type = MD_OPTION_FLAG, .target = &(halo).check,                            \
   .help = "verify number and hash of every halo message"}
/* clang-format on */

#endif
