#ifndef MD_BENCH_DIRAC_PARTS_H
#define MD_BENCH_DIRAC_PARTS_H

#include "base/report.h"
#include "dirac/operator.h"

/* Seconds of what a hop of a split lattice consists of, each alone. They add up to more than the
 * hop where the exchange hides behind the interior. */
typedef struct md_part_time {
  double median_s, min_s, max_s;
} md_part_time;
typedef struct md_hop_parts {
  md_part_time exchange, interior, boundary;
} md_hop_parts;

/* Times them on fields of the operator, whose halos are filled; the longest of the ranks each.
 * All zero where nothing is split. Collective. */
md_status md_hop_parts_time(md_context *context, md_dirac *dirac, md_field fields[MD_PARITIES],
                            md_hop_parts *parts);

/* Adds exchange_seconds, interior_seconds and boundary_seconds, each with _min and _max behind, and
 * halo_bytes to a row; nothing where nothing is split. Local. */
void md_hop_parts_report(const md_dirac *dirac, const md_hop_parts *parts, cJSON *row);

#endif
