#include "base/file.h"
#include "measure/measure.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_number(const void *a, const void *b) {
  return strverscmp(*(char *const *)a, *(char *const *)b);
}

static md_status add(md_context *context, md_study *s, const char *name) {
  if (strlen(name) >= MD_STUDY_NAME_BYTES)
    return md_fail(context, MD_INPUT,
                   "names of lattices must be shorter than %d bytes, got %.60s...",
                   MD_STUDY_NAME_BYTES, name);
  for (int k = 0; k < s->lattices; k++)
    if (strcmp(s->lattice[k].name, name) == 0)
      return md_fail(context, MD_INPUT, "--lattices must differ, %s is there twice", name);
  md_study_lattice *more = realloc(s->lattice, ((size_t)s->lattices + 1) * sizeof *s->lattice);
  if (!more) return md_fail_memory(context, sizeof *more, "list of lattices");
  s->lattice = more;
  s->lattice[s->lattices] = (md_study_lattice){0};
  snprintf(s->lattice[s->lattices++].name, MD_STUDY_NAME_BYTES, "%s", name);
  return MD_OK;
}

/* Folders that may not be read have no files for a pattern; one that cannot be opened for want of
 * something is another matter. */
static int ends_search(const char *folder, int reason) {
  (void)folder;
  return md_open_blame(reason) != MD_INPUT;
}

/* A word without wildcards is a file, which need not be there. */
static md_status add_word(md_context *context, md_study *s, const char *word) {
  glob_t found;
  if (!strpbrk(word, "*?[")) return add(context, s, word);
  errno = 0;
  const int code = glob(word, 0, ends_search, &found);
  if (code == GLOB_ABORTED || code == GLOB_NOSPACE)
    return md_fail(context, MD_ENVIRONMENT, "the files of the pattern '%s' cannot be listed: %s",
                   word, strerror(code == GLOB_NOSPACE ? ENOMEM : errno));
  if (code != 0)
    return md_fail(context, MD_INPUT,
                   "the pattern '%s' of --lattices must name a file, it names none", word);
  md_status status = MD_OK;
  qsort(found.gl_pathv, found.gl_pathc, sizeof *found.gl_pathv, by_number);
  for (size_t k = 0; k < found.gl_pathc && status == MD_OK; k++)
    status = add(context, s, found.gl_pathv[k]);
  globfree(&found);
  return status;
}

/* On rank 0, whose file system counts. */
static md_status find(md_context *context, md_study *s) {
  char *copy = strdup(s->options.lattices), *rest = copy;
  md_status status = copy ? MD_OK : md_fail_memory(context, 1, "list of lattices");
  for (char *word; status == MD_OK && (word = strtok_r(rest, " \t", &rest));)
    status = add_word(context, s, word);
  free(copy);
  if (status == MD_OK && s->lattices == 0)
    status =
        md_fail(context, MD_INPUT, "--lattices must name a file, got '%s'", s->options.lattices);
  return status;
}

md_status md_study_list(md_context *context, md_study *s) {
  MD_TRY(md_agree(context, context->rank == 0 ? find(context, s) : MD_OK));
  md_broadcast(context, &s->lattices, sizeof s->lattices);
  const size_t bytes = (size_t)s->lattices * sizeof *s->lattice;
  if (context->rank != 0) s->lattice = malloc(bytes);
  MD_TRY(
      md_agree(context, s->lattice ? MD_OK : md_fail_memory(context, bytes, "list of lattices")));
  md_broadcast(context, s->lattice, bytes);
  return MD_OK;
}
