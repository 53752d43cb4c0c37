#include "io/provenance.h"
#include "base/report.h"
#include "md_version.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void md_provenance_of_run(const md_context *context, md_provenance *p) {
  *p = (md_provenance){.mass = NAN, .tolerance = NAN};
  if (context->rank == 0) {
    char *line = md_command_line();
    const int whole = snprintf(p->command_line, sizeof p->command_line, "%s", line ? line : "");
    if (whole >= (int)sizeof p->command_line)
      memcpy(p->command_line + sizeof p->command_line - 4, "...", 4);
    md_date_utc(p->date_utc, sizeof p->date_utc);
    free(line);
  }
  md_broadcast(context, p->command_line, sizeof p->command_line);
  md_broadcast(context, p->date_utc, sizeof p->date_utc);
}

static int append_text(md_attribute *attributes, int count, const char *name, const char *text) {
  if (!text || !*text) return count;
  attributes[count] = (md_attribute){name, MD_ATTRIBUTE_TEXT, 0, (char *)text};
  return count + 1;
}

static int append_real(md_attribute *attributes, int count, const char *name, double *value) {
  if (isnan(*value)) return count;
  attributes[count] = (md_attribute){name, MD_ATTRIBUTE_REAL, 1, value};
  return count + 1;
}

int md_provenance_append(md_provenance *p, md_attribute *attributes, int count) {
  count = append_text(attributes, count, "lattice", p->lattice);
  count = append_text(attributes, count, "lattice_checksum", p->lattice_checksum);
  count = append_text(attributes, count, "action", p->action);
  count = append_real(attributes, count, "mass", &p->mass);
  count = append_real(attributes, count, "tolerance", &p->tolerance);
  count = append_text(attributes, count, "version", MD_VERSION);
  count = append_text(attributes, count, "commit", MD_COMMIT);
  count = append_text(attributes, count, "date_utc", p->date_utc);
  return append_text(attributes, count, "command_line", p->command_line);
}
