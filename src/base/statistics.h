#ifndef MD_BASE_STATISTICS_H
#define MD_BASE_STATISTICS_H

#include "base/context.h"

/* Mean of a Markov chain's measurements, and its standard error with autocorrelation seen:
 * neighbours are averaged into blocks of 1, 2, 4, ... values while 16 blocks remain, and the
 * largest of their standard errors is taken (H. Flyvbjerg and H. Petersen, J. Chem. Phys. 91
 * (1989) 461). error is infinite for fewer than 2 values. count >= 1. Local. */
md_status md_blocked_mean(md_context *context, const double *values, int count, double *mean,
                          double *error);

#endif
