#ifndef MD_LATTICE_HALO_DEVICE_MESSAGE_H
#define MD_LATTICE_HALO_DEVICE_MESSAGE_H

#include "lattice/halo/transport.h"

/* The device side of message.h: surfaces between a device field and page-locked host buffers, on a
 * stream of its own beside the interior. Local. */
typedef struct md_device_messages md_device_messages;

/* *messages is to be destroyed after a failure too, unless NULL. */
md_status md_device_messages_create(md_context *context, const md_halo_plan *plan,
                                    md_device_messages **messages);
void md_device_messages_destroy(md_device_messages *messages);

/* Queues the gather of the surface that channel c sends, after the work so far. */
md_status md_device_message_pack(md_context *context, md_device_messages *messages,
                                 const md_field *field, int c, void *send);
/* Waits until packed buffers are filled and received ones are read. */
md_status md_device_messages_wait(md_context *context, md_device_messages *messages);
/* Queues the copy of what channel c received into its zone; later work waits for it. */
md_status md_device_message_unpack(md_context *context, md_device_messages *messages,
                                   md_field *field, int c, const void *receive);

#endif
