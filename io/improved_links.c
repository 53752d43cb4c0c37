#include "io/improved_links.h"

static md_status take_off_phases(md_context *context, const char *path, md_link_kind kind,
                                 bool known_bare, md_gauge *gauge, md_phases *phases) {
  *phases = (md_phases){.convention = MD_PHASES_NONE, .score = 1.0, .boundary_score = 1.0};
  if (known_bare) return MD_OK;
  MD_TRY(md_phases_find(context, gauge, kind, path, phases));
  md_say(context, "%s: %s links with staggered phases %s, boundary sign %s (scores %.2f, %.2f)%s\n",
         path, md_link_kind_name(kind), md_phase_name(phases->convention),
         phases->antiperiodic ? "antiperiodic" : "periodic", phases->score, phases->boundary_score,
         phases->convention != MD_PHASES_NONE || phases->antiperiodic ? ", taken off" : "");
  return md_phases_apply(context, gauge, kind, phases);
}

md_status md_improved_load(md_context *context, const char *path, md_link_kind kind,
                           const int grid[MD_DIMS], bool ignore_checksum, md_geometry **geometry,
                           md_gauge *gauge, md_improved_info *info) {
  const bool given = *geometry != NULL;
  *info = (md_improved_info){0};
  MD_TRY(md_lattice_load_links(context, path, &kind, grid, ignore_checksum, geometry, gauge,
                               &info->lattice));
  const md_status status =
      take_off_phases(context, path, kind, info->lattice.header.label.bare, gauge, &info->phases);
  if (status == MD_OK) return MD_OK;
  md_gauge_destroy(gauge);
  if (!given) {
    md_geometry_destroy(*geometry);
    *geometry = NULL;
  }
  return status;
}
