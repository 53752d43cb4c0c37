/* Device fields of ranks of one node: the kernel that gathers a surface writes it into the memory
 * of the neighbour's GPU, and that GPU waits for it. The host takes no part. */
#include "lattice/halo/device_message.h"

/* Whether every GPU can address the others' memory is found out by doing it. */
static md_status check(md_context *context, const md_geometry *geometry) {
  md_device_peers *peers = NULL;
  (void)geometry;
  MD_TRY(md_device_peers_create(context, 256, "a test of shared memory", &peers));
  md_device_peers_destroy(peers);
  return MD_OK;
}

static md_status create(md_context *context, const md_halo_plan *plan, void **state) {
  MD_TRY(
      md_agree(context, md_device_carrier_create(context, plan, sizeof(md_device_carrier), state)));
  return md_device_messages_peers(context, ((md_device_carrier *)*state)->messages);
}

const md_transport md_transport_peer = {.name = "peer",
                                        .needs = "GPUs of one node that address each other",
                                        MD_DEVICE_CARRIER,
                                        .speed = 5,
                                        .queued = true,
                                        .check = check,
                                        .create = create,
                                        .begin = md_device_carrier_pack,
                                        .end = md_device_carrier_unpack,
                                        .arrivals = md_device_carrier_arrivals,
                                        .verify = md_device_carrier_verify,
                                        .destroy = md_device_carrier_destroy};
