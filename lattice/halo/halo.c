#include "lattice/halo/halo.h"
#include "lattice/halo/message.h"
#include "lattice/halo/transport.h"

#include <stdlib.h>

/* The surface towards d goes to that neighbour, and lands in its zone of the opposite direction. */
static void fill_plan(const md_geometry *g, const md_field_shape *shape, md_halo_plan *plan) {
  plan->geometry = g;
  plan->shape = *shape;
  for (int d = 0; d < MD_DIRECTIONS; d++) {
    const int opposite = (d + MD_DIMS) % MD_DIRECTIONS;
    if (!g->split[d % MD_DIMS]) continue;
    plan->channel[plan->channels++] =
        (md_halo_channel){.direction = d,
                          .send_to = g->neighbour_rank[d],
                          .receive_from = g->neighbour_rank[opposite],
                          .sites = g->face_sites[d % MD_DIMS],
                          .zone = g->halo_offset[opposite],
                          .face = {g->face[MD_EVEN][d], g->face[MD_ODD][d]},
                          .bytes = md_message_bytes(shape, g->face_sites[d % MD_DIMS])};
  }
}

static md_status create(md_context *context, md_halo *halo, const char *name) {
  const md_space space = halo->plan.shape.space;
  MD_TRY(md_agree(context,
                  md_transport_find(context, name, space, halo->plan.geometry, &halo->transport)));
  if (halo->plan.channels == 0) return MD_OK;
  return md_agree(context, halo->transport->create(context, &halo->plan, &halo->state));
}

md_status md_halo_create(md_context *context, const md_geometry *geometry,
                         const md_field_shape *shape, const md_halo_request *request,
                         md_halo **halo) {
  md_halo *h = *halo = calloc(1, sizeof *h);
  MD_TRY(md_agree(context, h ? MD_OK : md_fail_memory(context, sizeof *h, "halo")));
  h->context = context;
  fill_plan(geometry, shape, &h->plan);
  const md_status status = create(context, h, request ? request->transport : "auto");
  if (status != MD_OK) {
    md_halo_destroy(h);
    *halo = NULL;
  }
  return status;
}

void md_halo_destroy(md_halo *halo) {
  if (halo && halo->state) halo->transport->destroy(halo->state);
  free(halo);
}

md_status md_halo_begin(md_halo *halo, const md_field *field) {
  if (!halo->state) return MD_OK;
  return md_defer(halo->context, halo->transport->begin(halo->context, halo->state, field));
}

md_status md_halo_end(md_halo *halo, md_field *field) {
  if (!halo->state) return MD_OK;
  return md_defer(halo->context, halo->transport->end(halo->context, halo->state, field));
}

int64_t md_halo_bytes(const md_halo *halo) {
  int64_t bytes = 0;
  for (int c = 0; c < halo->plan.channels; c++) bytes += (int64_t)halo->plan.channel[c].bytes;
  return bytes;
}

const char *md_halo_transport(const md_halo *halo) {
  return halo->state ? halo->transport->name : "none";
}
