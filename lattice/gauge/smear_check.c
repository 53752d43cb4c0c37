#include "lattice/gauge/phases.h"
#include "lattice/gauge/recipes.h"

#include <math.h>

md_status md_smear_check_request(md_context *context, const md_smear_request *r, bool wants_long) {
  const char *name = md_recipe_name(r->recipe);
  if (md_recipe_takes(r->recipe, "u0") && !(r->u0 > 0.0 && r->u0 <= 10.0))
    return md_fail(context, MD_INPUT, "u0 must be above 0 and at most 10, got %g", r->u0);
  if (md_recipe_takes(r->recipe, "alpha") && !(r->alpha >= 0.0 && r->alpha <= 1.0))
    return md_fail(context, MD_INPUT, "alpha must be within 0..1, got %g", r->alpha);
  if (md_recipe_takes(r->recipe, "rho") && !(r->rho >= 0.0 && r->rho <= 1.0))
    return md_fail(context, MD_INPUT, "rho must be within 0..1, got %g", r->rho);
  if (md_recipe_takes(r->recipe, "steps") && !(r->steps >= 1 && r->steps <= 1000))
    return md_fail(context, MD_INPUT, "steps must be within 1..1000, got %d", r->steps);
  if (r->epsilon_count > MD_EPSILONS_MOST)
    return md_fail(context, MD_INPUT, "at most %d values of the Naik epsilon, got %d",
                   MD_EPSILONS_MOST, r->epsilon_count);
  for (int e = 0; e < r->epsilon_count; e++)
    if (!(fabs(r->naik_epsilon[e]) <= 10.0) ||
        (r->naik_epsilon[e] != 0.0 && !md_recipe_takes(r->recipe, "naik-epsilon")))
      return md_fail(context, MD_INPUT,
                     "the Naik epsilon must be within -10..10, and 0 for %s links, got %g", name,
                     r->naik_epsilon[e]);
  if (wants_long && !md_recipe_has_long(r->recipe))
    return md_fail(context, MD_INPUT, "%s has no long links", name);
  return MD_OK;
}

/* Names what is wrong with links that are not in SU(3). */
md_status md_smear_check_thin(md_context *context, const md_gauge *thin) {
  md_gauge_observables observables;
  md_phases phases;
  MD_TRY(md_gauge_observe(context, thin, &observables));
  if (observables.bad_links > 0)
    return md_fail(context, MD_INPUT,
                   "thin links must be finite, NaN or infinity is in %lld of them",
                   observables.bad_links);
  if (observables.unitarity_deviation <= MD_THIN_TOLERANCE) return MD_OK;
  MD_TRY(md_phases_score(context, thin, MD_LINKS_THIN, &phases));
  if (phases.clear && (phases.convention != MD_PHASES_NONE || phases.antiperiodic))
    return md_fail(context, MD_INPUT,
                   "thin links must be bare, these have in them: staggered phases %s, boundary "
                   "sign %s; write them without",
                   md_phase_name(phases.convention),
                   phases.antiperiodic ? "antiperiodic" : "periodic");
  return md_fail(context, MD_INPUT,
                 "thin links must be in SU(3) within %g, their largest deviation is %.3g; are "
                 "they fat or long links?",
                 MD_THIN_TOLERANCE, observables.unitarity_deviation);
}
