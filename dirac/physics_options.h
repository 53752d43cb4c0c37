#pragma once

#include "base/options.h"
#include "base/report.h"
#include "dirac/backend.h"
#include "lattice/gauge/smear.h"

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
  const char *charge;    /* NULL: not given, -1/3 */
  long long slices;      /* of domain-wall actions; 0: not given */
  double height, b5, c5; /* likewise, NaN: not given */
  bool reunitarize; /* thin links, once they are read: MD_REUNITARIZE_OPTION of some commands */
} md_physics_options;

/* clang-format off */
#define MD_PHYSICS_DEFAULTS                                                                         \
  {                                                                                                \
    .action = "naive", .u0 = NAN, .naik_epsilon = NAN, .height = NAN, .b5 = NAN, .c5 = NAN         \
  }

/* Phases on the links. */
#define MD_TWIST_OPTIONS(physics)                                                                  \
  MD_OPTION(REAL, "imaginary-mu", &(physics).imaginary_mu, "M",                                    \
            "phase exp(i M) on t-links; M in radians per link, mu/T = N_t M [0]",                  \
            .low = -10, .high = 10, .group = MD_GROUP_PHYSICS),                                    \
  MD_OPTION(INTEGER, "magnetic", &(physics).magnetic, "N",                                         \
            "N quanta of a magnetic field along z, eB = 6 pi N / (Lx Ly) [0]",                     \
            .low = -1e6, .high = 1e6),                                                             \
  MD_OPTION(CHOICE, "charge", &(physics).charge, NULL, "of the quark in the magnetic field [-1/3]",\
            .choices = "-1/3|2/3")
/* All of them. */
#define MD_PHYSICS_OPTIONS(physics)                                                                \
  MD_OPTION(CHOICE, "action", &(physics).action, NULL,                                             \
            "naive: one link; asqtad, hisq: fat and long links; others: four spins [naive]",       \
            .choices = md_action_words, .group = MD_GROUP_PHYSICS),                                \
  MD_SMEAR_OPTIONS((physics).u0, "asqtad", (physics).naik_epsilon),                                \
  MD_OPTION(TEXT, "fat", &(physics).fat_file, "FILE",                                              \
            "fat links that were made before, any format", .file = MD_FILE_INPUT,                  \
            .group = MD_GROUP_INPUT),                                                              \
  MD_OPTION(TEXT, "long", &(physics).long_file, "FILE", "and the long links beside them",          \
            .file = MD_FILE_INPUT),                                                                \
  MD_TWIST_OPTIONS(physics), MD_WALL_OPTIONS(physics)

/* The fifth dimension. */
#define MD_WALL_OPTIONS(physics)                                                                   \
  MD_OPTION(INTEGER, "Ls", &(physics).slices, "N", "slices of domainwall and mobius [12]",         \
            .low = MD_LEAST_SLICES, .high = MD_MOST_SLICES, .group = MD_GROUP_PHYSICS),            \
  MD_OPTION(REAL, "M5", &(physics).height, "M", "height of their wall [1.8]",                      \
            .low = 0.01, .high = 2),                                                               \
  MD_OPTION(REAL, "b5", &(physics).b5, "B", "of mobius [1.5]", .low = -10, .high = 10),            \
  MD_OPTION(REAL, "c5", &(physics).c5, "C", "of mobius [0.5]", .low = -10, .high = 10)

/* How D is applied, into the texts that `o` has of these names; `words` is the caller's buffer. */
#define MD_BACKEND_OPTIONS(o, words)                                                               \
  MD_OPTION(CHOICE, "backend", &(o).backend, NULL, "see docs/backends.md [auto]",                  \
            .choices = md_backend_words("auto", words), .group = MD_GROUP_MACHINE),                \
  MD_OPTION(CHOICE, "packing", &(o).packing, NULL, "of Tensor Core backends [auto]",               \
            .choices = MD_PACKING_OR_AUTO_WORDS)
/* And what in: `o` has precision, inner and reconstruct. */
#define MD_OPERATOR_OPTIONS(o, words)                                                              \
  MD_BACKEND_OPTIONS(o, words),                                                                    \
  MD_OPTION(CHOICE, "precision", &(o).precision, NULL, "storage of links and fermions [double]",   \
            .choices = &(MD_PRECISION_WORDS)[1]),                                                  \
  MD_OPTION(CHOICE, "inner", &(o).inner, NULL,                                                     \
            "of the iterations under --precision double [none]",                                   \
            .choices = "none|auto" MD_NARROW_PRECISION_WORDS),                                     \
  MD_OPTION(CHOICE, "reconstruct", &(o).reconstruct, NULL, "reals a link is stored in [18]",       \
            .choices = &(MD_RECONSTRUCT_WORDS)[1])
/* When a solver ends. */
#define MD_LIMIT_OPTIONS(o)                                                                        \
  MD_OPTION(REAL, "tol", &(o).tolerance, "T", "on norm(b - M x) / norm(b) [1e-10]",                \
            .low = 1e-20, .high = 0.1, .group = MD_GROUP_SOLVER),                                  \
  MD_OPTION(INTEGER, "max-iter", &(o).max_iterations, "N", "iterations at most [10000]",           \
            .low = 1, .high = 10000000)
#define MD_BOUNDARY_OPTION(word)                                                                   \
  MD_OPTION(CHOICE, "boundary", &(word), NULL, "in t [antiperiodic]",                              \
            .choices = "antiperiodic|periodic", .group = MD_GROUP_PHYSICS)
#define MD_LATTICE_OR_FAT_OPTION(path)                                                             \
  MD_OPTION(TEXT, "lattice", &(path), "LATTICE",                                                   \
            "lattice file of any format (required without --fat)", .positional = true,             \
            .file = MD_FILE_INPUT, .group = MD_GROUP_INPUT)
/* clang-format on */

/* MD_INPUT for options that need others or go without them. Local, same on all ranks. */
md_status md_physics_check(md_context *context, const md_physics_options *options);
/* Of them those of the fifth dimension. */
md_status md_physics_check_walls(md_context *context, const md_physics_options *options);
/* Masses of staggered quarks, and of those with four spins. */
#define MD_LEAST_MASS 1e-6
#define MD_LEAST_SPIN_MASS (-4.0)
#define MD_MOST_MASS 100.0
/* MD_INPUT for a mass of the option `name` that the action does not allow. Local. */
md_status md_physics_check_mass(md_context *context, const char *name, md_action action,
                                double mass);
/* 1 / (2 mass + 8) of Wilson quarks, NaN of others, which have none; and as a report's key kappa
 * where there is one. */
double md_physics_kappa(md_action action, double mass);
void md_kappa_report(cJSON *object, md_action action, double mass);
/* Sets action and twist of the request, by options that passed the check. */
void md_physics_apply(const md_physics_options *options, md_backend_request *request);
md_action md_physics_action(const md_physics_options *options);
/* How the links of the action are made from thin ones in `space`, counts and times reported; for
 * naive the recipe is NULL. Points into the options. */
md_smear_request md_physics_smear(const md_physics_options *options, md_space space);

/* Report keys: action, Ls, M5, b5 and c5 of domain walls, and where there is a twist imaginary_mu
 * and flux_quanta, those that the quark sees. */
void md_physics_report(cJSON *object, const md_backend_request *request);
/* All but the first, behind a row that has `action` already. */
void md_twist_report(cJSON *object, const md_backend_request *request);
enum { MD_PHYSICS_WORDS_BYTES = 160 };
/* The same in words with the parameters of the links, "naive" or "hisq, naik-epsilon 0, imaginary
 * mu 0.1, flux quanta -3, reunitarized" or "mobius, Ls 12, M5 1.8, b5 1.5, c5 0.5", into text. */
const char *md_physics_words(const md_physics_options *options, const md_backend_request *request,
                             char *text, size_t bytes);
/* MD_INPUT where links of files that are rebuilt from fewer reals, or held in fixed by an action of
 * bare links, are no thin ones; and if `warn` a warning that names --reunitarize where it would
 * spare iterations: links for a solver in double that are off SU(3) by more than rounding in
 * double. Local. */
md_status md_physics_check_unitarity(md_context *context, const md_physics_options *options,
                                     const md_backend_request *request, double unitarity_deviation,
                                     bool warn);
