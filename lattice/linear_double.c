#define STORED double
#define ARITH double
#define LOAD(x) (x)
#define STORE(x) (x)
#define DIRECT 1
#define TABLE md_linear_host_double
#include "lattice/linear_host.inc.h"
