#pragma once

#include "base/context.h"

/* Whether every rank can have `threads` threads, its own number each, with the stacks of
 * OMP_STACKSIZE: starts so many and ends them again, since what the limits of users, control groups
 * and address spaces leave cannot be read. The OpenMP library ends the process where it gets none.
 * MD_ENVIRONMENT on all ranks with the first that cannot. Collective. */
md_status md_threads_check(md_context *context, int threads);
