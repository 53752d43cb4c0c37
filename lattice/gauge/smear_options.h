#ifndef MD_LATTICE_GAUGE_SMEAR_OPTIONS_H
#define MD_LATTICE_GAUGE_SMEAR_OPTIONS_H

#include "base/options.h"

/* The parameters of improved actions, of every command that makes their links: rows for its table,
 * into two doubles. u0_of: the actions of the command that have a tadpole factor, a literal. */
/* clang-format off */
#define MD_SMEAR_OPTIONS(u0_target, u0_of, naik_epsilon_target)                                    \
  MD_OPTION(REAL, "u0", &(u0_target), "U", "tadpole factor of " u0_of " [1]",                      \
            .low = 1e-3, .high = 10.0),                                                            \
  MD_OPTION(REAL, "naik-epsilon", &(naik_epsilon_target), "E",                                     \
            "of hisq: its links of charm and other heavy quarks [0]", .low = -10.0, .high = 10.0)
/* Of commands that load thin links: md_gauge_reunitarize, into a bool. */
#define MD_REUNITARIZE_OPTION(flag)                                                                \
  MD_OPTION(FLAG, "reunitarize", &(flag), NULL,                                                    \
            "project the links onto SU(3) once they are read, in double")
/* clang-format on */

#endif
