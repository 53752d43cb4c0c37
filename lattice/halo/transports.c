#include "base/text.h"
#include "lattice/halo/transport.h"

#include <stdio.h>
#include <string.h>

extern const md_transport md_transport_mpi, md_transport_peer, md_transport_nccl;
extern const md_transport md_transport_mixed, md_transport_cuda_aware, md_transport_staged;

const md_transport *const *md_transports(void) {
  static const md_transport *const table[] = {&md_transport_mpi,
                                              &md_transport_peer,
                                              &md_transport_mixed,
                                              &md_transport_nccl,
                                              &md_transport_cuda_aware,
                                              &md_transport_staged,
                                              NULL};
  return table;
}

static const char *name_of(md_space space) {
  return space == MD_HOST ? "on the host" : "on a device";
}

/* MD_OK when the ranks can use it for fields of this space. Collective. */
static md_status usable(md_context *context, const md_transport *t, md_space space,
                        const md_geometry *geometry) {
  if (!(t->spaces & 1u << space))
    return md_fail(context, MD_INPUT,
                   "transport %s does not carry fields that lie %s, as this backend's do; leave "
                   "--transport out, or take another backend",
                   t->name, name_of(space));
  if (t->unavailable)
    return md_fail(context, MD_ENVIRONMENT, "transport %s is not available: %s", t->name,
                   t->unavailable);
  return t->check ? md_agree(context, t->check(context, geometry)) : MD_OK;
}

static md_status find_fastest(md_context *context, md_space space, const md_geometry *geometry,
                              const md_transport **transport, md_transport_reason *reason) {
  for (const md_transport *const *t = md_transports(); *t; t++) {
    if (!((*t)->spaces & 1u << space) || (*transport && (*t)->speed <= (*transport)->speed))
      continue;
    if (usable(context, *t, space, geometry) == MD_OK) {
      *transport = *t;
      continue;
    }
    const size_t used = strlen(reason->text);
    snprintf(reason->text + used, sizeof reason->text - used, "%s%s: %s", used ? "; " : "not ",
             (*t)->name, context->message);
  }
  if (!reason->text[0]) strcpy(reason->text, "the fastest");
  if (*transport) return MD_OK;
  return md_fail(context, MD_ENVIRONMENT, "no transport of this build carries fields that lie %s",
                 name_of(space));
}

md_status md_transport_find(md_context *context, const char *name, md_space space,
                            const md_geometry *geometry, const md_transport **transport,
                            md_transport_reason *reason) {
  *transport = NULL;
  reason->text[0] = '\0';
  if (strcmp(name, "auto") == 0) return find_fastest(context, space, geometry, transport, reason);
  strcpy(reason->text, "asked for");
  char known[256] = "auto";
  for (const md_transport *const *t = md_transports(); *t; t++) {
    strncat(known, ", ", sizeof known - strlen(known) - 1);
    strncat(known, (*t)->name, sizeof known - strlen(known) - 1);
    if (strcmp((*t)->name, name) != 0) continue;
    *transport = *t;
    return usable(context, *t, space, geometry);
  }
  md_suggestion nearest = md_suggest(name);
  for (const md_transport *const *t = md_transports(); *t; t++)
    md_suggest_name(&nearest, (*t)->name, strlen((*t)->name));
  return md_fail(context, MD_INPUT, "--transport must be one of %s, got '%.200s'%s", known, name,
                 nearest.text);
}

bool md_halo_request_serves(const md_halo_request *request, md_space space) {
  if (!request || strcmp(request->transport, "auto") == 0) return true;
  for (const md_transport *const *t = md_transports(); *t; t++)
    if (strcmp((*t)->name, request->transport) == 0) return (*t)->spaces & 1u << space;
  return true;
}
