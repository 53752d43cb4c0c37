#ifndef MD_DIRAC_PHYSICS_OPTIONS_H
#define MD_DIRAC_PHYSICS_OPTIONS_H

#include "base/options.h"
#include "base/report.h"
#include "dirac/backend.h"

/* The options that say what D is, of every command that solves, validates or times it: rows for its
 * table, and what they make of a request. */
typedef struct md_physics_options {
  double imaginary_mu;
  long long magnetic;
  const char *charge; /* NULL: not given, -1/3 */
} md_physics_options;

/* clang-format off */
#define MD_PHYSICS_OPTIONS(physics)                                                                  \
  {.name = "imaginary-mu", .type = MD_OPTION_REAL, .target = &(physics).imaginary_mu,                \
   .argument = "M", .help = "phase exp(i M) on t-links; M in radians per link, mu/T = N_t M [0]",    \
   .low = -10, .high = 10},                                                                          \
  {.name = "magnetic", .type = MD_OPTION_INTEGER, .target = &(physics).magnetic, .argument = "N",    \
   .help = "N quanta of a magnetic field along z, eB = 6 pi N / (Lx Ly) [0]",                        \
   .low = -1e6, .high = 1e6},                                                                        \
  {.name = "charge", .type = MD_OPTION_CHOICE, .target = &(physics).charge, .choices = "-1/3|2/3",   \
   .help = "of the quark in the magnetic field [-1/3]"}
/* clang-format on */

/* Sets the twist of the request. MD_INPUT for options that need others. Local. */
md_status md_physics_apply(md_context *context, const md_physics_options *options,
                           md_backend_request *request);
/* Report keys: action, and where there is a twist imaginary_mu and flux_quanta, those that the
 * quark sees. */
void md_physics_report(cJSON *object, const md_backend_request *request);
/* The same in words, "naive" or "hisq, imaginary mu 0.1, flux quanta -3", into text. */
const char *md_physics_words(const md_backend_request *request, char *text, size_t bytes);

#endif
