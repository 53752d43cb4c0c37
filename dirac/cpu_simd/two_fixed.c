#define SUFFIX fixed
#define STORED int16_t
#define ARITH float
#define SCALED 1
#define LINK_UNIT (1.0f / MD_FIXED_STEPS)
#define FIELDS 2
#include "dirac/cpu_simd/hop.inc.h"
