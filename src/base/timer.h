#pragma once

/* Seconds of a clock that only runs forward. */
double md_time_s(void);
/* Sorts `values` and returns their median (mean of the middle two for an even count > 0). */
double md_median(double *values, int count);
