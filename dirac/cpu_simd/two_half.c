#define SUFFIX half
#define STORED uint16_t
#define ARITH float
#define SCALED 1
#define FIELDS 2
#include "dirac/cpu_simd/hop.inc.h"
