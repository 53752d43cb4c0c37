#ifndef MD_BENCH_DIRAC_PARTS_H
#define MD_BENCH_DIRAC_PARTS_H

#include "dirac/operator.h"

/* Seconds of what a hop of a split lattice consists of, each alone. They add up to more than the
 * hop where the exchange hides behind the interior. */
typedef struct md_hop_parts {
  double exchange_s, interior_s, boundary_s;
} md_hop_parts;

/* Times them on fields of the operator, whose halos are filled; the longest of the ranks each.
 * All zero where nothing is split. Collective. */
md_status md_hop_parts_time(md_context *context, md_dirac *dirac, md_field fields[MD_PARITIES],
                            md_hop_parts *parts);

#endif
