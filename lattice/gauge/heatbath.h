#ifndef MD_LATTICE_GAUGE_HEATBATH_H
#define MD_LATTICE_GAUGE_HEATBATH_H

#include "base/random.h"
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
 * for every rank grid and thread count. Each link is put back on SU(3) as it is stored. */
typedef struct md_heatbath md_heatbath;

/* Work space for sweeps over `gauge`, which must have exchanged halos and outlive it. Collective.
 */
md_status md_heatbath_create(md_context *context, md_gauge *gauge, md_heatbath **heatbath);
void md_heatbath_destroy(md_heatbath *heatbath);

/* One update of every link; halos are exchanged again when it returns. beta >= 0; no two sweeps
 * of a chain may share (seed, sweep). Failures are deferred (md_defer). Collective. */
md_status md_heatbath_sweep(md_heatbath *heatbath, double beta, uint64_t seed, uint64_t sweep);
/* One microcanonical update of every link; the same about halos. Collective. */
md_status md_overrelaxation_sweep(md_heatbath *heatbath);

/* Draws x in [-1, 1] with density proportional to sqrt(1 - x^2) exp(z x), z >= 0: the first
 * component of an SU(2) heatbath. Its mean is I_2(z) / I_1(z). Local. */
double md_heatbath_draw(md_random *random, double z);

#endif
