#pragma once

#include "lattice/gauge/gauge.h"

/* Markov chain of quenched SU(3) links with the weight exp(beta/3 sum over plaquettes Re tr P),
 * the Wilson action at beta = 6/g^2.
 *
 * Heatbath: N. Cabibbo and E. Marinari, Phys. Lett. B 119 (1982) 387, over the three SU(2)
 * subgroups, each drawn with A. Kennedy and B. Pendleton, Phys. Lett. B 156 (1985) 393.
 * Overrelaxation, which keeps the action: M. Creutz, Phys. Rev. D 36 (1987) 515; F. Brown and
 * T. Woch, Phys. Rev. Lett. 58 (1987) 2394.
 *
 * Links of one direction and parity do not meet in a plaquette and are updated together. Random
 * numbers are drawn by (seed, sweep, mu, global site), so the chain is the same to the last bit
 * for every rank grid and thread count. Each link is put back on SU(3) as it is stored.
 *
 * The sweeps are done on the host or on a GPU, which draws the same random numbers and does the
 * same arithmetic, but with fused multiplications and functions of its own: its links are those of
 * the host to rounding, as long as rounding has not grown. A heatbath forgets it, overrelaxation
 * lets it grow (docs/suite.md), and a draw whose acceptance hangs on the last bit may end
 * otherwise. On a GPU too the links are the same to the last bit for every rank grid. */
typedef struct md_heatbath md_heatbath;

#define MD_BETA_MOST 1e6

/* Work space for sweeps over `gauge`, links on the host, which must have exchanged halos and
 * outlive it: on the host, or on the device, where the links are copied to; MD_ENVIRONMENT where
 * the build or the machine has none. Collective. */
md_status md_heatbath_create(md_context *context, md_gauge *gauge, md_space space,
                             md_heatbath **heatbath);
/* Bytes that it allocates beside the links for sweeps on the host; that it allocates on the device
 * for sweeps there. */
int64_t md_heatbath_bytes(const md_geometry *geometry);
int64_t md_heatbath_device_bytes(const md_geometry *geometry);
void md_heatbath_destroy(md_heatbath *heatbath);

/* For sweeps on the device, nothing on the host: the links of `gauge` are taken to the device anew;
 * and given back to `gauge`, with halos exchanged, which sweeps leave as it was before. Collective.
 */
md_status md_heatbath_take(md_heatbath *heatbath);
md_status md_heatbath_give(md_heatbath *heatbath);
/* Returns when the sweeps are done that were asked for, which are only queued on the device.
 * Collective. */
md_status md_heatbath_wait(md_heatbath *heatbath);

/* Plaquettes of the links as they stand after the sweeps. On the host those of md_gauge_observe,
 * bit for bit; on the device the same to rounding (2^-50 a site), and the same bits for every rank
 * grid. NaN where a link is not finite. Collective. */
md_status md_heatbath_plaquettes(md_heatbath *heatbath, md_plaquettes *plaquettes);

/* One update of every link; their halos are exchanged again when it returns. beta >= 0; no two
 * sweeps of a chain may share (seed, sweep). Failures are deferred (md_defer). Collective. */
md_status md_heatbath_sweep(md_heatbath *heatbath, double beta, uint64_t seed, uint64_t sweep);
/* One microcanonical update of every link; the same about halos. Collective. */
md_status md_overrelaxation_sweep(md_heatbath *heatbath);
