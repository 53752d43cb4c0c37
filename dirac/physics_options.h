#ifndef MD_DIRAC_PHYSICS_OPTIONS_H
#define MD_DIRAC_PHYSICS_OPTIONS_H

#include "base/options.h"
#include "base/report.h"
#include "dirac/backend.h"
#include "lattice/gauge/smear.h"
#include "lattice/gauge/smear_options.h"

#include <math.h>

/* The options that say what D is, of every command that solves, validates or times it: rows for its
 * table, and what they make of a request. */
typedef struct md_physics_options {
  const char *action;
  double u0, naik_epsilon; /* NaN: not given */
  const char *fat_file,
      *long_file; /* links that were made before; NULL: they are made from thin ones */
  double imaginary_mu;
  long long magnetic;
  const char *charge; /* NULL: not given, -1/3 */
  bool reunitarize;   /* thin links, once they are read: MD_REUNITARIZE_OPTION of some commands */
} md_physics_options;

/* clang-format off */
#define MD_PHYSICS_DEFAULTS {.action = "naive", .u0 = NAN, .naik_epsilon = NAN}

#define MD_PHYSICS_OPTIONS(physics)                                                                  \
  {.name = "action", .type = MD_OPTION_CHOICE, .target = &(physics).action,                          \
   .choices = md_action_words, .help = "naive: one link; others: fat and long links [naive]"},        \
  MD_SMEAR_OPTIONS((physics).u0, "asqtad", (physics).naik_epsilon),                                  \
  {.name = "fat", .type = MD_OPTION_TEXT, .target = &(physics).fat_file, .argument = "FILE",              \
   .help = "fat links that were made before, any format", .file = MD_FILE_INPUT},                    \
  {.name = "long", .type = MD_OPTION_TEXT, .target = &(physics).long_file, .argument = "FILE",       \
   .help = "and the long links beside them", .file = MD_FILE_INPUT},                                 \
  {.name = "imaginary-mu", .type = MD_OPTION_REAL, .target = &(physics).imaginary_mu,                \
   .argument = "M", .help = "phase exp(i M) on t-links; M in radians per link, mu/T = N_t M [0]",    \
   .low = -10, .high = 10},                                                                          \
  {.name = "magnetic", .type = MD_OPTION_INTEGER, .target = &(physics).magnetic, .argument = "N",    \
   .help = "N quanta of a magnetic field along z, eB = 6 pi N / (Lx Ly) [0]",                        \
   .low = -1e6, .high = 1e6},                                                                        \
  {.name = "charge", .type = MD_OPTION_CHOICE, .target = &(physics).charge, .choices = "-1/3|2/3",   \
   .help = "of the quark in the magnetic field [-1/3]"}
/* clang-format on */

/* MD_INPUT for options that need others or go without them. Local, same on all ranks. */
md_status md_physics_check(md_context *context, const md_physics_options *options);
/* Sets action and twist of the request, by options that passed the check. */
void md_physics_apply(const md_physics_options *options, md_backend_request *request);
md_action md_physics_action(const md_physics_options *options);
/* How the links of the action are made from thin ones in `space`, counts and times reported; for
 * naive the recipe is NULL. Points into the options. */
md_smear_request md_physics_smear(const md_physics_options *options, md_space space);

/* Report keys: action, and where there is a twist imaginary_mu and flux_quanta, those that the
 * quark sees. */
void md_physics_report(cJSON *object, const md_backend_request *request);
enum { MD_PHYSICS_WORDS_BYTES = 160 };
/* The same in words with the parameters of the links, "naive" or "hisq, naik-epsilon 0, imaginary
 * mu 0.1, flux quanta -3, reunitarized", into text. */
const char *md_physics_words(const md_physics_options *options, const md_backend_request *request,
                             char *text, size_t bytes);
/* A warning that names --reunitarize where it would spare iterations: links that are rebuilt from
 * fewer reals for a solver in double, and are off SU(3) by more than rounding in double. */
void md_physics_advise(const md_context *context, const md_physics_options *options,
                       const md_backend_request *request, double unitarity_deviation);

#endif
