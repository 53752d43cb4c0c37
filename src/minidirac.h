#ifndef MINIDIRAC_H
#define MINIDIRAC_H

/* The public interface of libminidirac. A program includes this file as <minidirac/minidirac.h>;
 * the headers below may be included one by one too. What they have in common:
 *
 * - Every function that can fail returns an md_status; the message stands in context->message, one
 *   line: the rule, the value, what to do. Nothing but MPI itself, or an OpenMP that cannot have
 * its threads, ends the process, unless the caller sets give_up of the context.
 * - A function is local, or collective: every rank of md_context_open calls it, in the same order.
 *   Collective functions agree on failures, local ones do not: hand a local status to md_agree.
 * - Links, fermions and their order in memory: lattice/fields/field.h; sites and directions:
 *   lattice/geometry; M = m + D and all signs: lattice/geometry/conventions.h. Masses and
 *   eigenvalues are in units of the inverse lattice spacing, times in seconds (_s).
 * - Work on a GPU is queued on one stream for each thread: base/device.h.
 *
 * docs/example has a whole program. */
#include "base/context.h"
#include "base/device.h"
#include "base/precision.h"
#include "base/random.h"
#include "base/status.h"
#include "dirac/operator.h"
#include "dirac/request.h"
#include "dirac/solvers/multishift.h"
#include "dirac/solvers/solver.h"
#include "gemm/gemm.h"
#include "io/attribute.h"
#include "io/lattice_file.h"
#include "io/modes_file.h"
#include "io/propagator.h"
#include "lattice/fields/field.h"
#include "lattice/fields/linear.h"
#include "lattice/fields/modes.h"
#include "lattice/fields/observables.h"
#include "lattice/fields/source.h"
#include "lattice/gauge/gauge.h"
#include "lattice/gauge/heatbath.h"
#include "lattice/gauge/phases.h"
#include "lattice/geometry/conventions.h"
#include "lattice/geometry/geometry.h"
#include "lattice/halo/halo.h"
#include "md_version.h"

#endif
