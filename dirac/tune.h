#pragma once

#include "dirac/operator.h"

MD_C_BEGIN

/* With --tune takes the fastest launch shape of a loaded operator's backend: that of an earlier
 * choice (base/tune.h), else of a trial by rank 0, which times hops of local fields of zeros that
 * it makes for it. Nothing in a dry run. Collective. */
md_status md_dirac_tune(md_context *context, md_dirac *dirac);

MD_C_END
