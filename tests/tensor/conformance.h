#pragma once

#include "support.h"

/* The tests that `tensor` and `tensor_emu` both have to pass against cpu_ref; each fails the
 * running cmocka test. Collective. */

/* All packings and precisions, rows that fill no tile, extents of 2, odd counts of right-hand
 * sides, with and without epilogue, both parities. */
void tensor_matches_reference(md_context *context, const char *backend);
/* A lattice large enough for the kernel that marches along t. */
void tensor_marches(md_context *context, const char *backend, md_action action);
/* Quarks with four spins: tiles of slices and right-hand sides that are full or not, by themselves
 * and several at once, norms and decays of half. */
void tensor_serves_spins(md_context *context, const char *backend);
/* Sums of the largest numbers of half. */
void tensor_adds_largest_spins(md_context *context, const char *backend);
/* A lattice large enough for their march. */
void tensor_marches_with_spin(md_context *context, const char *backend);
/* Half at norms 1e-20 and 1e+20 and on a field that decays by 1e-8 along t: every site keeps its
 * relative accuracy. */
void tensor_half_keeps_range(md_context *context, const char *backend);
/* Everything through the halo: interior, then boundary, gives the bits of one call for all. */
void tensor_ranges_are_disjoint(md_context *context, const char *backend);
/* Requests that no packing can serve, and the messages. */
void tensor_refuses(md_context *context, const char *backend);
