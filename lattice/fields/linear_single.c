#define PRECISION MD_SINGLE
#define SUFFIX single
#define STORED float
#define ARITH float
#define LOAD(x) (x)
#define STORE(x) (x)
#define DIRECT 1
#define SCALED 0
#include "lattice/fields/linear_host.inc.h"
