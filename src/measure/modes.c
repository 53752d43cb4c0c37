/* The modes of --deflate: one file for each lattice and action, named by a pattern. */
#include "links/action_links.h"
#include "measure/run.h"

#include <stdio.h>
#include <string.h>

/* Appends `length` bytes as far as there is room. */
static void append(char name[MD_STUDY_NAME_BYTES], size_t *used, const char *text, size_t length) {
  for (size_t k = 0; k < length; k++, (*used)++)
    if (*used + 1 < MD_STUDY_NAME_BYTES) name[*used] = text[k];
}

/* What stands for the placeholder that `at` begins with; NULL where it is none. */
static const char *stand_in(const char *at, const char *lattice, const char *action,
                            size_t *placeholder, size_t *length) {
  const char *slash = strrchr(lattice, '/'), *base = slash ? slash + 1 : lattice;
  const char *dot = strrchr(base, '.');
  const struct {
    const char *word, *from;
  } known[] = {{"{lattice}", lattice}, {"{name}", base}, {"{action}", action}};
  for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
    *placeholder = strlen(known[k].word);
    if (strncmp(at, known[k].word, *placeholder) != 0) continue;
    const bool whole = known[k].from == action || !dot || dot == base;
    *length = whole ? strlen(known[k].from) : (size_t)(dot - known[k].from);
    return known[k].from;
  }
  return NULL;
}

md_status md_study_modes_name(md_context *context, const md_study *s, int lattice, int action,
                              char name[MD_STUDY_NAME_BYTES]) {
  const char *pattern = s->options.deflate;
  const char *of_action = md_action_name((md_action)s->options.actions.value[action]);
  size_t used = 0, placeholder, length;
  memset(name, 0, MD_STUDY_NAME_BYTES);
  for (const char *at = pattern; *at;) {
    const char *from = stand_in(at, s->lattice[lattice].name, of_action, &placeholder, &length);
    append(name, &used, from ? from : at, from ? length : 1);
    at += from ? placeholder : 1;
  }
  if (used < MD_STUDY_NAME_BYTES) return MD_OK;
  return md_fail(context, MD_INPUT, "names of modes must be shorter than %d bytes, got %.60s...",
                 MD_STUDY_NAME_BYTES, name);
}

md_status md_study_modes_list(md_context *context, const md_study *s, md_made_files *files) {
  const char *pattern = s->options.deflate;
  if (!pattern) return MD_OK;
  if (s->lattices > 1 && !strstr(pattern, "{lattice}") && !strstr(pattern, "{name}"))
    return md_fail(
        context, MD_INPUT,
        "modes belong to one lattice, and there are %d: --deflate must have {lattice} or "
        "{name} in it, which stand for a lattice's path or file name without suffix, got "
        "'%s'",
        s->lattices, pattern);
  if (s->options.actions.count > 1 && !strstr(pattern, "{action}"))
    return md_fail(context, MD_INPUT,
                   "modes belong to one action, and there are %d: --deflate must have {action} in "
                   "it, got '%s'",
                   s->options.actions.count, pattern);
  for (int k = 0; k < s->lattices; k++)
    for (int a = 0; a < s->options.actions.count; a++) {
      char name[MD_STUDY_NAME_BYTES];
      MD_TRY(md_study_modes_name(context, s, k, a, name));
      MD_TRY(md_made_files_add(context, files, "--deflate", name, MD_FILE_INPUT));
    }
  return MD_OK;
}

md_status md_study_modes_look(md_context *context, const md_study *s, int lattice,
                              const md_geometry *plan, int64_t *bytes) {
  if (!s->options.deflate) return MD_OK;
  for (int a = 0; a < s->options.actions.count; a++) {
    char name[MD_STUDY_NAME_BYTES];
    md_modes_info info;
    MD_TRY(md_study_modes_name(context, s, lattice, a, name));
    MD_TRY(md_deflation_describe(context, name, &info));
    const md_field_shape shape = {info.store, MD_HOST, MD_FERMION_REALS, 1, true};
    const int64_t needed = info.converged * md_field_bytes(plan, &shape);
    if (needed > *bytes) *bytes = needed;
  }
  return MD_OK;
}

md_status md_study_modes_read(md_context *context, const md_study *s, int lattice, int action,
                              const md_geometry *geometry, const char *checksum, md_space space,
                              md_modes *modes) {
  const md_study_options *o = &s->options;
  const md_physics_options physics = md_study_physics(o, action);
  md_backend_request request = o->request;
  char name[MD_STUDY_NAME_BYTES];
  md_modes_info info;
  md_physics_apply(&physics, &request);
  MD_TRY(md_study_modes_name(context, s, lattice, action, name));
  MD_TRY(md_deflation_describe(context, name, &info));
  const md_modes_label wanted = md_deflation_label(&physics, &request, o->boundary, checksum);
  return md_modes_read(context, name, geometry, &wanted, &info, info.converged, space, modes);
}
