#pragma once

#include "lattice/geometry/conventions.h"
#include <stdint.h>

/* Where the messages of an exchange arrive in device memory, for a kernel that waits for them
 * itself and reads them there: nothing is copied into the zones of the field, and no kernel for
 * what reads the halo has to follow the others. Plain data, handed to kernels by value. */
typedef struct md_halo_arrival {
  const void *values;    /* entries of the zone's sites, in order; NULL: no such zone */
  const float *scales;   /* NULL where the precision has none */
  int64_t zone;          /* index of the zone's first site in a field */
  const long long *flag; /* reaches the message's number with the message */
  const long long *sent; /* how many messages this rank has sent on the channel: as many as the
                            number of this one, or one less while it has not sent its own */
  long long *looked;     /* the newest number that a thread has set out to look for at the flag, */
  long long *arrived;    /* and has seen there; for the others, who look at the latter */
  int from;              /* rank */
  double expected_s;     /* about how long after the exchange has begun it is there */
} md_halo_arrival;

typedef struct md_halo_arrivals {
  md_halo_arrival of[MD_DIRECTIONS]; /* by the direction of the zone */
  int parity;                        /* of the messages' number */
  struct md_peer_timeout *timeout;   /* for base/device_peers.cuh; NULL: nothing is to be awaited */
} md_halo_arrivals;
