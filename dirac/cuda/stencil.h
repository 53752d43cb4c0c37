#pragma once

#include "base/divisor.h"
#include "dirac/backend.h"
#include "dirac/cuda/spin_march.h"

/* What the kernels of the cuda backend need to know of a lattice and its links.
 *
 * A row is the sites of one parity with common y, z, t: L_x/2 of them, neighbours along x/2 = h.
 * The neighbour in y, z or t of the site h is the site h of another row (the same x), so one row
 * record serves all its sites, and V neighbouring sites read V neighbouring values. Along x, one
 * neighbour is the site h of the same row in the other parity (the `near` one), the other (`far`)
 * is h-1 or h+1, at the row's end `edge`. Links are stored in this order: near, far, then forward
 * and backward of y, z, t. */
typedef struct md_row {
  int32_t base[6]; /* first site of the neighbour row: y, z, t forward; y, z, t backward */
  int32_t edge;    /* far neighbour of the row's last (far = h+1) or first (far = h-1) site */
  uint32_t bits;   /* bit 0: far = h+1; bits 1..8: sign of the links in stored order, 1 = minus;
                      bits 9..16: of the long ones */
} md_row;

/* The same for hops of three sites, of actions with long links. Along x one neighbour lies on the
 * far side at h+2 or h-2, the other on the near side at h-1 or h+1; long links are stored in the
 * order near, far too. */
typedef struct md_long_row {
  int32_t base[6];
  int32_t beyond; /* the second site beyond the row on the far side; the first is md_row.edge */
  int32_t behind; /* the first on the near side */
} md_long_row;

/* Slots that one call takes: the i-th is i + first, from i = gap_at on `gap` further, so that the
 * kernels of an undivided lattice, of its interior and of its first and last time slices read no
 * list; or the i-th of a list. */
typedef struct md_slot_range {
  const int32_t *list; /* NULL: counted */
  int32_t count, first, gap_at, gap;
} md_slot_range;

/* The links of one parity in a backend's order. A slot is V neighbouring sites; the links of a
 * slot in a direction pair are 2 R V reals [direction][real][site], R those of the field, cut into
 * chunks of 4 to 16 bytes. A tile of slots holds its pairs k = 4 field + mu one behind the other,
 * those of the first field and then those of the second, whose R and chunks may be others; within a
 * pair chunk c of slot i lies at c tile + i % tile. Tiles of 32: a warp reads whole lines and walks
 * through memory. Tiles of 1: a site's links lie together, for bulk copies to shared memory; of a
 * march: a direction of all sites of its tile, in chunks of one link. */
typedef struct md_stencil {
  int parity;
  int sites_per_slot; /* V */
  int tile;           /* 32, 1 or the sites of a march's tile */
  int64_t slots;
  md_divisor slots_per_row;
  const void *links;
  const md_row *rows;
  const md_long_row *long_rows;        /* NULL: one link field */
  int reals[MD_MOST_LINK_FIELDS];      /* R of a field: 18, 12, 8; 13, 9 of the second; 0: none */
  double largest[MD_MOST_LINK_FIELDS]; /* of md_links: fixed holds parts of it, 13 and 9 reals s */
  const int32_t *order;   /* site of a slot, those of the interior first but in a march; NULL: slot
                             V; n_rhs > 1, and four spins */
  md_slot_range range[3]; /* of each md_range; with an order never a list */
  bool keep_links;        /* in L2: all of them fit */
  int few_slots;          /* up to so many, four threads share one; n_rhs == 1 */
  int columns_of_block;   /* of four spins: slices and right-hand sides of a block of threads */
  md_spin_march march;    /* of four spins, x 0: none */
} md_stencil;

/* Threads of a block of the hop of four spins, twice as many for many right-hand sides; so many
 * columns of a site, slices times right-hand sides, meet in one that multiplies slices. */
enum { MD_SPIN_THREADS = 256 };

/* keep_links and few_slots on a GPU: `bytes` of links of a parity stay in L2 where they leave a
 * third of it to fields; for each byte of a number and multiprocessor so many slots leave threads
 * without work. On an H200 that is below 40 MiB, and 32768 for each byte. */
static inline bool md_stencil_keeps_links(const md_device_facts *gpu, size_t bytes) {
  return bytes < (size_t)gpu->l2_bytes / 3 * 2;
}
static inline int md_stencil_few_slots(const md_device_facts *gpu, md_precision precision) {
  return (int)md_precision_bytes(precision) * gpu->multiprocessors * 8192 / 33;
}

/* Pairs of an action, and the term (dirac/links/links.h) whose link is stored at `side` of one; up:
 * bit 0 of the row. */
static inline int md_stencil_pairs(md_action action) {
  return MD_DIMS * md_action_get(action)->fields;
}
static inline int md_stencil_term(int pair, int side, bool up) {
  const int mu = pair % MD_DIMS;
  const bool backward = mu == MD_X ? (side == 0) == up : side == 1;
  return pair / MD_DIMS * MD_DIRECTIONS + (backward ? MD_DIMS + mu : mu);
}

/* Reals of a field's links in a request, 0 where the action lacks the field. */
int md_stencil_reals(const md_backend_request *request, int field);

/* Makes the tables of both parities on the device, all of md_stencil but the links. On failure what
 * was made stays for md_stencil_tables_free. Local. */
md_status md_stencil_tables_load(md_context *context, const md_links *links,
                                 const md_backend_request *request,
                                 md_stencil stencil[MD_PARITIES]);
void md_stencil_tables_free(md_stencil stencil[MD_PARITIES]);

/* Bare links of one field and direction on the device, and what folds them. */
typedef struct md_pack_source {
  const double *forward, *backward; /* 18 planes: U_mu of this parity, of the other with halo */
  const int32_t *neighbour;         /* site x - h mu, h the hop of the field */
  const double *phases; /* [side][re, im][site]; NULL: the signs of the rows, no twist */
  int64_t stride;
} md_pack_source;

/* Entry points of one storage type; each queues one kernel and returns cudaGetLastError's int.
 * Hops are md_backend.hop with the stencil of out's parity; hop_spins, of actions of four spins
 * and without steps, is NULL for MD_FIXED. */
typedef struct md_stencil_kernels {
  int (*pack)(const md_stencil *stencil, int pair, const md_pack_source *source, void *links);
  int (*hop_one)(const md_stencil *stencil, const md_hop_call *call);
  int (*hop_many)(const md_stencil *stencil, const md_hop_call *call);
  int (*hop_spins)(const md_stencil *stencil, const md_hop_call *call);
} md_stencil_kernels;

extern const md_stencil_kernels md_stencil_double, md_stencil_single, md_stencil_half,
    md_stencil_bf16, md_stencil_fixed;
