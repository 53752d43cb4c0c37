#include "dirac/physics_options.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

md_action md_physics_action(const md_physics_options *options) {
  return (md_action)md_action_of(options->action);
}

/* A parameter that was given belongs to the recipe of the action, and files have their own. */
static md_status check_parameter(md_context *context, const md_physics_options *o, const char *name,
                                 double value) {
  const md_recipe *recipe = md_recipe_find(o->action);
  if (isnan(value)) return MD_OK;
  if (!recipe || !md_recipe_takes(recipe, name))
    return md_fail(context, MD_INPUT, "--action %s takes no --%s; leave it out", o->action, name);
  if (o->fat_file)
    return md_fail(context, MD_INPUT,
                   "--%s is for links that are made here, --fat and --long read them; leave it out",
                   name);
  return MD_OK;
}

md_status md_physics_check_walls(md_context *context, const md_physics_options *o) {
  const bool walls = md_action_get(md_physics_action(o))->walls;
  const bool given[] = {o->slices != 0, !isnan(o->height), !isnan(o->b5), !isnan(o->c5)};
  static const char *const name[] = {"Ls", "M5", "b5", "c5"};
  for (int i = 0; i < 4; i++)
    if (given[i] && !(i < 2 ? walls : md_physics_action(o) == MD_ACTION_MOBIUS))
      return md_fail(context, MD_INPUT, "--action %s takes no --%s; leave it out or take %s",
                     o->action, name[i], i < 2 ? "domainwall or mobius" : "mobius");
  if (o->b5 == 0.0 && o->c5 == 0.0)
    return md_fail(context, MD_INPUT,
                   "--b5 and --c5 are both 0, which leaves no links in M; change one of them");
  return MD_OK;
}

md_status md_physics_check_mass(md_context *context, const char *name, md_action action,
                                double mass) {
  const double least = md_action_has_spin(action) ? MD_LEAST_SPIN_MASS : MD_LEAST_MASS;
  if (mass >= least && mass <= MD_MOST_MASS) return MD_OK;
  return md_fail(context, MD_INPUT, "--%s must lie in %g to %g, got %g", name, least, MD_MOST_MASS,
                 mass);
}

md_status md_physics_check(md_context *context, const md_physics_options *o) {
  if (o->charge && o->magnetic == 0)
    return md_fail(context, MD_INPUT, "--charge %s needs a magnetic field, --magnetic N",
                   o->charge);
  if (!o->fat_file != !o->long_file)
    return md_fail(context, MD_INPUT, "--fat FILE and --long FILE need each other, got --%s alone",
                   o->fat_file ? "fat" : "long");
  if (o->fat_file && md_action_get(md_physics_action(o))->fields == 1)
    return md_fail(context, MD_INPUT,
                   "--action %s has no fat and long links; give --action asqtad or hisq with --fat",
                   o->action);
  if (o->fat_file && o->reunitarize)
    return md_fail(context, MD_INPUT,
                   "--reunitarize is for thin links, those of --fat and --long are not in SU(3); "
                   "leave it out");
  MD_TRY(md_physics_check_walls(context, o));
  MD_TRY(check_parameter(context, o, "u0", o->u0));
  return check_parameter(context, o, "naik-epsilon", o->naik_epsilon);
}

void md_physics_apply(const md_physics_options *options, md_backend_request *request) {
  const bool up = options->charge && strcmp(options->charge, "2/3") == 0;
  request->action = md_physics_action(options);
  request->twist = (md_twist){.imaginary_mu = options->imaginary_mu,
                              .flux = (up ? 2 : -1) * (int)options->magnetic};
  if (!md_action_get(request->action)->walls) return;
  const bool mobius = request->action == MD_ACTION_MOBIUS;
  request->walls = (md_walls){options->slices ? (int)options->slices : 12,
                              isnan(options->height) ? 1.8 : options->height,
                              !mobius              ? 1.0
                              : isnan(options->b5) ? 1.5
                                                   : options->b5,
                              !mobius              ? 0.0
                              : isnan(options->c5) ? 0.5
                                                   : options->c5};
}

md_smear_request md_physics_smear(const md_physics_options *options, md_space space) {
  md_smear_request request = md_smear_defaults(md_recipe_find(options->action));
  request.space = space;
  request.unmeasured = true;
  if (!isnan(options->u0)) request.u0 = options->u0;
  if (!isnan(options->naik_epsilon)) request.naik_epsilon = options->naik_epsilon;
  return request;
}

double md_physics_kappa(md_action action, double mass) {
  return action == MD_ACTION_WILSON ? 0.5 / (mass + 4.0) : NAN;
}

void md_kappa_report(cJSON *object, md_action action, double mass) {
  const double kappa = md_physics_kappa(action, mass);
  if (!isnan(kappa)) md_report_real(object, "kappa", kappa);
}

void md_twist_report(cJSON *object, const md_backend_request *request) {
  const md_twist *twist = &request->twist;
  const md_walls *w = &request->walls;
  if (md_action_get(request->action)->walls)
    md_report_add(object, "Ls=%d M5=%g b5=%g c5=%g", w->slices, w->height, w->b5, w->c5);
  if (md_links_twisted(twist))
    md_report_add(object, "imaginary_mu=%g flux_quanta=%d", twist->imaginary_mu, twist->flux);
}

void md_physics_report(cJSON *object, const md_backend_request *request) {
  cJSON_AddStringToObject(object, "action", md_action_name(request->action));
  md_twist_report(object, request);
}

const char *md_physics_words(const md_physics_options *options, const md_backend_request *request,
                             char *text, size_t bytes) {
  const md_recipe *recipe = md_recipe_find(options->action);
  snprintf(text, bytes, "%s", options->action);
  if (options->fat_file)
    md_append(text, bytes, ", links of files");
  else if (recipe && md_recipe_takes(recipe, "u0"))
    md_append(text, bytes, ", u0 %.15g", isnan(options->u0) ? 1.0 : options->u0);
  else if (recipe)
    md_append(text, bytes, ", naik-epsilon %.15g",
              isnan(options->naik_epsilon) ? 0.0 : options->naik_epsilon);
  if (md_action_get(request->action)->walls)
    md_append(text, bytes, ", Ls %d, M5 %.15g, b5 %.15g, c5 %.15g", request->walls.slices,
              request->walls.height, request->walls.b5, request->walls.c5);
  if (md_links_twisted(&request->twist))
    md_append(text, bytes, ", imaginary mu %.15g, flux quanta %d", request->twist.imaginary_mu,
              request->twist.flux);
  if (options->reunitarize) md_append(text, bytes, ", reunitarized");
  return text;
}

md_status md_physics_check_unitarity(md_context *context, const md_physics_options *options,
                                     const md_backend_request *request, double unitarity_deviation,
                                     bool warn) {
  const double rounding = 1e-10;
  const md_reconstruct reals = request->reconstruct;
  const bool rebuilt = reals != MD_RECONSTRUCT_18 && !md_reconstruct_has_phase(reals);
  const bool fixed = /* which holds no number above 1 of such links */
      request->precision == MD_FIXED && md_action_get(request->action)->special_unitary;
  if (options->reunitarize) return MD_OK;
  if ((rebuilt || fixed) && unitarity_deviation > MD_THIN_TOLERANCE)
    return md_fail(
        context, MD_INPUT,
        "links %s%s%s must be in SU(3) within %g, their largest deviation is %.3g; use %s",
        rebuilt ? "of " : "in ", rebuilt ? md_reconstruct_name(reals) : "fixed",
        rebuilt ? " reals" : "", MD_THIN_TOLERANCE, unitarity_deviation,
        rebuilt ? "--reconstruct 18" : "half");
  if (reals == MD_RECONSTRUCT_18) return MD_OK;
  if (!warn || request->precision != MD_DOUBLE || !(unitarity_deviation > rounding)) return MD_OK;
  md_warn(context,
          "links are in SU(3) within %.1e only, as in single precision, and rebuilding them from "
          "%s reals costs iterations; --reunitarize projects them once they are read",
          unitarity_deviation, md_reconstruct_name(reals));
  return MD_OK;
}
