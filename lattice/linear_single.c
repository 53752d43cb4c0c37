#define STORED float
#define ARITH float
#define LOAD(x) (x)
#define STORE(x) (x)
#define DIRECT 1
#define TABLE md_linear_host_single
#include "lattice/linear_host.inc.h"
