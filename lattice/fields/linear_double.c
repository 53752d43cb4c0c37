#define PRECISION MD_DOUBLE
#define SUFFIX double
#define STORED double
#define ARITH double
#define LOAD(x) (x)
#define STORE(x) (x)
#define DIRECT 1
#define SCALED 0
#include "lattice/fields/linear_host.inc.h"
