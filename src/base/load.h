#pragma once

#include "base/context.h"

/* What else a host does during a measurement. */
typedef struct md_load {
  double time_s;       /* md_time_s() */
  double all_s, own_s; /* CPU time of all that the host does, and of this process; all_s is NaN
                          where the system does not tell */
} md_load;

/* Reads them now. `root` stands before /proc: "" for the system itself. Local. */
void md_load_read(const char *root, md_load *now);
/* Cores' worth of time that was not this run's between two readings, what the host of a virtual
 * machine took included, on the host of the run where it is most; NaN: not told. Collective. */
double md_load_others(const md_context *context, const md_load *before, const md_load *after);
