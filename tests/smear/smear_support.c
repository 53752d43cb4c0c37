#include "smear_support.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

md_smear_request smear_request(const char *action) {
  const md_recipe *recipe = md_recipe_find(action);
  assert_non_null(recipe);
  return md_smear_defaults(recipe);
}

smear_links smear_make(md_context *context, const md_gauge *thin, const md_smear_request *request) {
  smear_links links = {.has_long = md_recipe_has_long(request->recipe)};
  MD_REQUIRE(context, md_smear(context, thin, request, &links.fat,
                               links.has_long ? &links.long_links : NULL, &links.report));
  return links;
}

void smear_free(smear_links *links) {
  md_gauge_destroy(&links->fat);
  md_gauge_destroy(&links->long_links);
}

bool smear_load(md_context *context, const char *folder, const char *name, md_geometry **geometry,
                md_gauge *gauge) {
  const int grid[MD_DIMS] = {0};
  md_lattice_info info = {0};
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  if (access(path, R_OK) != 0) return false;
  MD_REQUIRE(context, md_lattice_load(context, path, grid, false, geometry, gauge, &info));
  md_lattice_info_destroy(&info);
  return true;
}
