#pragma once

#include "io/lattice_file.h"
#include "lattice/gauge/smear.h"
#include "support.h"

/* Fat and long links with the parameters of `request` for the action of this name. */
typedef struct smear_links {
  md_gauge fat, long_links;
  bool has_long;
  md_smear_report report;
} smear_links;

/* The usual request for the action of this name. */
md_smear_request smear_request(const char *action);
/* Fails the test where smearing fails. */
smear_links smear_make(md_context *context, const md_gauge *thin, const md_smear_request *request);
void smear_free(smear_links *links);
/* Loads a lattice of thin links; false when the file is not there. */
bool smear_load(md_context *context, const char *folder, const char *name, md_geometry **geometry,
                md_gauge *gauge);
