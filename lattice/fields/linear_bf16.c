#define PRECISION MD_BF16
#define SUFFIX bf16
#define STORED uint16_t
#define ARITH float
#define LOAD(x) md_float_of_bf16(x)
#define STORE(x) md_bf16_of_float(x)
#define DIRECT 0
#define SCALED 0
#include "lattice/fields/linear_host.inc.h"
