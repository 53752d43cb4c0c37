#include "dirac/physics_options.h"

#include <stdio.h>
#include <string.h>

md_status md_physics_apply(md_context *context, const md_physics_options *options,
                           md_backend_request *request) {
  if (options->charge && options->magnetic == 0)
    return md_fail(context, MD_INPUT, "--charge %s needs a magnetic field, --magnetic N",
                   options->charge);
  const bool up = options->charge && strcmp(options->charge, "2/3") == 0;
  request->twist = (md_twist){.imaginary_mu = options->imaginary_mu,
                              .flux = (up ? 2 : -1) * (int)options->magnetic};
  return MD_OK;
}

void md_physics_report(cJSON *object, const md_backend_request *request) {
  cJSON_AddStringToObject(object, "action", md_action_name(request->action));
  if (!md_links_twisted(&request->twist)) return;
  cJSON_AddNumberToObject(object, "imaginary_mu", request->twist.imaginary_mu);
  cJSON_AddNumberToObject(object, "flux_quanta", request->twist.flux);
}

const char *md_physics_words(const md_backend_request *request, char *text, size_t bytes) {
  const char *name = md_action_name(request->action);
  if (md_links_twisted(&request->twist))
    snprintf(text, bytes, "%s, imaginary mu %.15g, flux quanta %d", name,
             request->twist.imaginary_mu, request->twist.flux);
  else
    snprintf(text, bytes, "%s", name);
  return text;
}
