#define SUFFIX single
#define STORED float
#define ARITH float
#define SCALED 0
#define FIELDS 2
#include "dirac/cpu_simd/hop.inc.h"
