#define SUFFIX bf16
#define STORED uint16_t
#define ARITH float
#define SCALED 0
#define FIELDS 1
#include "dirac/cpu_simd/hop.inc.h"
