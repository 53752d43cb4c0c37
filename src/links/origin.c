#include "links/origin.h"

#include <stdio.h>
#include <string.h>

/* What convert says is of the file that it read, which has become `source` in the next copy: only
 * who says an action has made the links of a lattice. */
static const char *checksum_in(const md_file_texts *texts) {
  if (md_file_texts_find(texts, "source action"))
    return md_file_texts_find(texts, "source lattice_checksum");
  return md_file_texts_find(texts, "action") ? md_file_texts_find(texts, "lattice_checksum") : NULL;
}

md_link_origin md_link_origin_of(const char *path, const md_file_texts *texts) {
  const char *identity = md_file_texts_find(texts, MD_THIN_LINKS), *checksum = checksum_in(texts);
  md_link_origin origin = {.path = path};
  snprintf(origin.identity, sizeof origin.identity, "%s", identity ? identity : "");
  snprintf(origin.checksum, sizeof origin.checksum, "%s", checksum ? checksum : "");
  return origin;
}

static bool says(const md_link_origin *origin) {
  return *origin->identity || *origin->checksum;
}

static md_status compare(md_context *context, const md_link_origin *a, const md_link_origin *b,
                         bool ignored) {
  const bool both = *a->identity && *b->identity;
  const char *in_a = both ? a->identity : a->checksum, *in_b = both ? b->identity : b->checksum;
  if (*in_a && *in_b && strcmp(in_a, in_b) == 0) return MD_OK;
  if (!*in_a || !*in_b) {
    if (says(a) || says(b))
      md_warn(context, "%s and %s do not both say of which lattice they are; see that it is one",
              a->path, b->path);
    return MD_OK;
  }
  const md_status status =
      md_fail(context, MD_INPUT,
              "links must be of one lattice, but that of %s has the checksum '%s' and that of %s "
              "'%s'; make fat and long links from one file with minidirac smear",
              a->path, in_a, b->path, in_b);
  if (!ignored) return status;
  md_warn(context, "%s (ignored)", context->message);
  return MD_OK;
}

md_status md_link_origins_check(md_context *context, const md_link_origin *thin,
                                const md_link_origin made[MD_MOST_LINK_FIELDS], bool ignored) {
  if (!thin) return compare(context, &made[0], &made[1], ignored);
  for (int f = 0; f < MD_MOST_LINK_FIELDS; f++) MD_TRY(compare(context, thin, &made[f], ignored));
  return MD_OK;
}
