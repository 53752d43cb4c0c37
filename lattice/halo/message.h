#ifndef MD_LATTICE_HALO_MESSAGE_H
#define MD_LATTICE_HALO_MESSAGE_H

#include "lattice/halo/transport.h"

/* The messages of a halo exchange: the planes of a surface one after another, then its scales. */

/* Bytes of one site in one plane, of a message of `sites` sites. */
size_t md_message_entry_bytes(const md_field_shape *shape);
size_t md_message_bytes(const md_field_shape *shape, int64_t sites);

/* MD_INPUT for a message that MPI's counts cannot hold. Local. */
md_status md_message_check(md_context *context, const md_halo_channel *channel);

/* The surface of a host field that the channel sends, and the zone that it receives. Local. */
void md_message_pack(const md_field *field, const md_halo_channel *channel, char *message);
void md_message_unpack(md_field *field, const md_halo_channel *channel, const char *message);

#endif
