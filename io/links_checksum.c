#include "base/memory.h"
#include "io/lattice_file.h"
#include "io/modes_file.h"
#include "io/site_data.h"

#include <stdio.h>
#include <stdlib.h>

enum { SLAB_BYTES = 16 << 20 };

static md_status checksum_of(md_context *context, const md_gauge *links, int rows, int real_bytes,
                             md_checksum *sum) {
  const md_site_format format = {.rows = rows, .real_bytes = real_bytes, .big_endian = true};
  const size_t site_bytes = md_site_bytes(&format);
  const md_slab_plan plan = md_slab_plan_make(links->geometry, site_bytes, SLAB_BYTES, 1);
  const size_t bytes = md_slab_bytes(links->geometry, &plan, site_bytes);
  void *raw = NULL;
  *sum = (md_checksum){.kind = MD_CHECKSUM_SCIDAC};
  MD_TRY(md_agree(context, md_allocate(context, bytes, "checksum of links", &raw)));
  for (int i = 0; i < plan.count; i++) {
    const md_slab slab = md_slab_at(links->geometry, &plan, i);
    md_sites_pack(links->geometry, &slab, &format, links, raw, sum);
  }
  free(raw);
  md_checksum_combine(context, sum);
  return MD_OK;
}

md_status md_links_checksum(md_context *context, const md_gauge *fields, int count,
                            char text[MD_MODES_TEXT]) {
  size_t used = 0;
  for (int f = 0; f < count; f++) {
    md_checksum sum;
    MD_TRY(checksum_of(context, &fields[f], 3, 8, &sum));
    used += (size_t)snprintf(text + used, MD_MODES_TEXT - used, "%s%08x%08x", f ? " " : "", sum.a,
                             sum.b);
  }
  return MD_OK;
}

md_status md_lattice_identity(md_context *context, const md_gauge *thin,
                              char text[MD_LATTICE_IDENTITY]) {
  md_checksum sum;
  MD_TRY(checksum_of(context, thin, 2, 4, &sum));
  snprintf(text, MD_LATTICE_IDENTITY, "%08x%08x", sum.a, sum.b);
  return MD_OK;
}
