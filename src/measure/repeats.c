/* Which lattices of a study are the same: two names for one, which would count twice, and one name
 * for two, the earlier of which has results. */
#include "measure/run.h"

#include <stdio.h>
#include <string.h>

static md_status refuse(md_context *context, const md_study *s, int lattice, int same,
                        const char *checksum) {
  return md_fail(context, MD_INPUT,
                 "a lattice must count once, %s has the links of %s, checksum '%s'; list one of "
                 "them, or add --allow-repeats",
                 s->lattice[lattice].name, s->lattice[same].name, checksum);
}

md_status md_study_repeat(md_context *context, const md_study *s, int lattice,
                          const md_lattice_sums *sums) {
  if (s->options.allow_repeats) return MD_OK;
  for (int k = 0; k < s->lattices; k++)
    if (k != lattice && md_study_has(s, k) && strcmp(s->lattice[k].sums.links, sums->links) == 0)
      return refuse(context, s, lattice, k, sums->links);
  return MD_OK;
}

/* The checksum that both have; NULL where none is known. One of 32 bits, as NERSC files state,
 * proves nothing. */
static const char *shared(const md_study_lattice *a, const md_study_lattice *b) {
  enum { ONE_NUMBER = 8 };
  if (strlen(a->stated) > ONE_NUMBER && strcmp(a->stated, b->stated) == 0) return a->stated;
  if (*a->sums.links && strcmp(a->sums.links, b->sums.links) == 0) return a->sums.links;
  return NULL;
}

static md_status check_repeats(md_study_run *r) {
  const md_study *s = &r->study;
  for (int k = 0; k < s->lattices; k++)
    for (int j = 0; j < k; j++) {
      const md_study_lattice *a = &s->lattice[j], *b = &s->lattice[k];
      const char *checksum = shared(a, b);
      if (!checksum || a->state == MD_LATTICE_SKIPPED || b->state == MD_LATTICE_SKIPPED) continue;
      const bool later = md_study_has(s, j) || !md_study_has(s, k);
      char why[sizeof r->whole->message];
      const md_status status = refuse(r->whole, s, later ? k : j, later ? j : k, checksum);
      snprintf(why, sizeof why, "%s", r->whole->message);
      MD_TRY(md_study_leave_out(r, later ? k : j, status, why));
    }
  return MD_OK;
}

/* What the links of a lattice are now, to all ranks; the first group's verdict counts. */
static md_status identify(md_study_run *r, int lattice, md_lattice_sums *sums) {
  struct {
    md_status status;
    md_lattice_sums sums;
    char message[sizeof r->whole->message];
  } found = {MD_OK, {"", ""}, ""};
  found.status = md_study_identify(r->group, &r->study, lattice, &found.sums);
  snprintf(found.message, sizeof found.message, "%s", r->group->message);
  md_broadcast(r->whole, &found, sizeof found);
  *sums = found.sums;
  return found.status == MD_OK ? MD_OK : md_fail(r->whole, found.status, "%s", found.message);
}

/* A header that states the checksum of the results is believed. Another may be that of a copy in
 * another format, so that links decide; studies of old know those of the file alone. */
static md_status check_results(md_study_run *r, int lattice) {
  md_study_lattice *l = &r->study.lattice[lattice];
  const md_study_options *o = &r->study.options;
  const bool known = *l->sums.links, states = strcmp(l->stated, "none") != 0;
  md_lattice_sums now;
  if (!*l->stated || (states && strcmp(l->stated, l->sums.file) == 0)) return MD_OK;
  MD_TRY(identify(r, lattice, &now));
  const char *before = known ? l->sums.links : l->sums.file, *here = known ? now.links : now.file;
  if (strcmp(before, here) == 0) return MD_OK;
  if (!o->force)
    return md_fail(r->whole, MD_INPUT,
                   "%s has changed since %s got its results, from checksum '%s' to '%s'; put the "
                   "file of before back, measure it anew with --resume --force, or give another "
                   "--output",
                   l->name, o->output, before, here);
  md_warn(r->whole, "%s has changed since %s got its results and is measured anew", l->name,
          o->output);
  l->state = MD_LATTICE_WAITS;
  l->sums = (md_lattice_sums){"", ""};
  return MD_OK;
}

md_status md_study_check_sameness(md_study_run *r) {
  const md_study *s = &r->study;
  for (int k = 0; k < s->lattices; k++)
    if (s->lattice[k].state == MD_LATTICE_RESUMED) MD_TRY(check_results(r, k));
  return s->options.allow_repeats ? MD_OK : check_repeats(r);
}
