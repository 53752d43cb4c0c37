#define SUFFIX double
#define STORED double
#define ARITH double
#define SCALED 0
#define FIELDS 2
#include "dirac/cpu_simd/hop.inc.h"
