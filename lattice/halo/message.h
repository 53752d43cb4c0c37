#ifndef MD_LATTICE_HALO_MESSAGE_H
#define MD_LATTICE_HALO_MESSAGE_H

#include "lattice/halo/transport.h"

/* The messages of a halo exchange: the planes of a surface one after another, then its scales; with
 * checks then a seal. */

/* Bytes of one site in one plane, of a message of `sites` sites. */
size_t md_message_entry_bytes(const md_field_shape *shape);
size_t md_message_bytes(const md_field_shape *shape, int64_t sites);

/* MD_INPUT for a message that MPI's counts cannot hold. Local. */
md_status md_message_check(md_context *context, const md_halo_channel *channel);

/* The surface of a host field that the channel sends, and the zone that it receives. Local. */
void md_message_pack(const md_field *field, const md_halo_channel *channel, char *message);
void md_message_unpack(md_field *field, const md_halo_channel *channel, const char *message);

/* With checks: writes the seal behind the `bytes` of a message on the host; MD_ENVIRONMENT when the
 * seal of a received one is not that of its bytes or of this number. Local. */
enum { MD_SEAL_BYTES = 16 };
void md_message_seal(char *message, size_t bytes, int64_t number);
md_status md_message_verify(md_context *context, const md_halo_channel *channel,
                            const char *message, size_t bytes, int64_t number);
/* The failure of either: message `number` carries the number `got`, or other bytes than were sent
 * where that is the same. */
md_status md_message_damaged(md_context *context, const md_halo_channel *channel, int64_t number,
                             int64_t got);

#endif
