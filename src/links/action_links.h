#pragma once

#include "dirac/physics_options.h"
#include "io/lattice_file.h"
#include "io/modes_file.h"

/* The link fields of an action for every command that applies D: thin links of a lattice, fat and
 * long links that are made from them, or fat and long links of two files. */

/* Where they come from. All is borrowed. */
typedef struct md_action_links_request {
  const md_physics_options *physics; /* checked */
  /* NULL with --fat and --long, which do without; where it is given all the same, its extents must
   * be theirs, and its plaquette is reported. */
  const char *lattice;
  const int *grid; /* of MD_DIMS, as md_layout_request.grid */
  bool ignore_checksum;
  md_space space; /* where operators keep their fields, and fat and long links are made */
  bool identify;  /* the checksum of the links is wanted */
} md_action_links_request;

typedef struct md_action_links {
  md_geometry *geometry;               /* as deep as the action needs */
  md_gauge field[MD_MOST_LINK_FIELDS]; /* of the action, bare, halos exchanged */
  md_action action;
  double plaquette;     /* of the thin links; NaN where there were none */
  double fat_plaquette; /* of fat links that were read; else NaN */
  double unitarity;     /* deviation from SU(3) of the thin links as read; NaN: none were read */
  double reunitarized;  /* with --reunitarize the largest change by it; else NaN */
  /* md_links_checksum of the fat and long links that were read, else of the thin links, whose
   * smearing may differ in the last bits from machine to machine; empty unless asked for. */
  char checksum[MD_MODES_TEXT];
  /* Of the file of thin links, else of fat ones, as md_checksum_print has it; empty: no file. */
  char lattice_checksum[32];
  /* Of links that were made here; smear_s is 0 where none were. */
  md_space space;
  md_projection_counts projection;
  double smear_s;
  /* Of links that were read: what was found in each field and taken off. */
  md_phases phases[MD_MOST_LINK_FIELDS];
} md_action_links;

/* Where operators of the action by this backend, "auto" or a name, keep their fields, whatever
 * their packing and precision: the host where there are none. Collective. */
md_space md_action_links_space(md_context *context, const char *backend,
                               const md_physics_options *physics);

/* The geometry that md_action_links_load will make, without tables; errors as there. Collective. */
md_status md_action_links_plan(md_context *context, const md_action_links_request *request,
                               md_geometry *plan);
/* Reads or makes the links. Errors as md_lattice_load, md_smear and md_improved_load; MD_INPUT also
 * for files that say that their links are of another action, that fat and long links were made in
 * different ways, or that not all are of one lattice. In a dry run
 * (base/memory_need.h) nothing but the header is read, and the fields have no data. On failure
 * there is nothing to destroy. Collective. */
md_status md_action_links_load(md_context *context, const md_action_links_request *request,
                               md_action_links *links);
/* The same from thin links with halos exchanged, on a geometry as deep as the action needs. Both
 * change hands: they belong to `links`, or are destroyed on failure. Collective. */
md_status md_action_links_make(md_context *context, const md_physics_options *physics,
                               md_space space, md_geometry *geometry, md_gauge *thin,
                               md_action_links *links);
void md_action_links_destroy(md_action_links *links);

struct md_link_origin; /* of which lattice links are */
/* Whether fat and long links of two files, of which `info` tells, belong together. MD_INPUT where
 * they say that they are of another action, were made in different ways, or are of different
 * lattices or of another one than `thin`, which may be NULL; of lattices a warning instead where
 * `ignored`. Where only one of two says, or they say it in different ways, there is a warning; two
 * files of another code go without one. Local, same on all ranks. */
md_status md_improved_check(md_context *context, const char *action,
                            const char *const path[MD_MOST_LINK_FIELDS],
                            const md_improved_info info[MD_MOST_LINK_FIELDS],
                            const struct md_link_origin *thin, bool ignored);

/* What modes of the operator that the request makes of these links belong to; the boundary in
 * words, with spin also the mass. `checksum` is that of the links, thin ones where there are some,
 * by md_links_checksum: that of md_action_links where it was asked for. Local. */
md_modes_label md_deflation_label(const md_physics_options *physics, double mass,
                                  const md_backend_request *request, const char *boundary,
                                  const char *checksum);
/* The same but for the mass, and the mass. */
md_modes_label md_massless_label(const md_physics_options *physics,
                                 const md_backend_request *request, const char *boundary,
                                 const char *checksum);
void md_label_mass(const md_backend_request *request, double mass, md_modes_label *label);

/* md_modes_describe for a file that is to deflate with: MD_INPUT also where none of its modes
 * converged. Collective. */
md_status md_deflation_describe(md_context *context, const char *path, md_modes_info *info);

/* Report keys: plaquette where there are thin links; reunitarized and largest_link_change where
 * they were projected; u0 or naik_epsilon, projections,
 * projections_by_singular_values, smear_on and smear_s of links that were made here; fat_file,
 * long_file, fat_plaquette, fat_phases, fat_boundary, long_phases, long_boundary of links that were
 * read. */
void md_action_links_report(cJSON *object, const md_physics_options *physics,
                            const md_action_links *links);
/* The same on the terminal, for other actions than naive. */
void md_action_links_say(const md_context *context, const md_physics_options *physics,
                         const md_action_links *links);
