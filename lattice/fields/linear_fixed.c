#define PRECISION MD_FIXED
#define SUFFIX fixed
#define STORED int16_t
#define ARITH float
#define LOAD(x) md_float_of_fixed(x)
#define STORE(x) md_fixed_of_float(x)
#define DIRECT 0
#define SCALED 1
#include "lattice/fields/linear_host.inc.h"
