#define PRECISION MD_HALF
#define SUFFIX half
#define STORED uint16_t
#define ARITH float
#define LOAD(x) md_float_of_half(x)
#define STORE(x) md_half_of_float(x)
#define DIRECT 0
#define SCALED 1
#include "lattice/fields/linear_host.inc.h"
