#define STORED int16_t
#define ARITH float
#define LOAD(x) md_float_of_fixed(x)
#define STORE(x) md_fixed_of_float(x)
#define DIRECT 0
#define TABLE md_linear_host_fixed
#include "lattice/linear_host.inc.h"
