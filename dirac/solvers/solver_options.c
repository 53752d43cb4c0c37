#include "dirac/solvers/solver_options.h"
#include "base/text.h"

#include <stdio.h>

md_status md_solver_options_read(md_context *context, md_solver_options *o, bool inner, bool states,
                                 bool modes) {
  o->by = md_solver_find(o->solver);
  o->before = (md_precondition)md_choice_of(MD_PRECONDITION_WORDS, o->precondition);
  const unsigned takes = o->by ? o->by->takes : 0;
  if (o->by && states && !(takes & MD_TAKES_STATES))
    return md_fail(context, MD_INPUT, "--solver %s goes without --checkpoint", o->solver);
  if (o->before != MD_PRECONDITION_NONE && !(takes & MD_TAKES_PRECONDITION))
    return md_fail(context, MD_INPUT, "--precondition needs --solver fcg or gcr, got %s",
                   o->solver);
  if (o->before != MD_PRECONDITION_CHEBYSHEV && o->degree > 0)
    return md_fail(context, MD_INPUT, "--degree needs --precondition chebyshev, got %s",
                   o->precondition);
  if (o->before == MD_PRECONDITION_MODES && !modes)
    return md_fail(context, MD_INPUT,
                   "--precondition modes needs --deflate MODES.h5, or --modes N in bench solver");
  if (inner && (takes & MD_TAKES_PRECONDITION) && o->before != MD_PRECONDITION_CHEBYSHEV)
    return md_fail(context, MD_INPUT,
                   "--inner with --solver %s is the precision of --precondition chebyshev, got %s",
                   o->solver, o->precondition);
  if (o->degree == 0) o->degree = MD_SOLVER_DEGREE;
  return MD_OK;
}

const char *md_solver_help(const char *before, const char *after, char text[MD_SOLVER_HELP_BYTES]) {
  snprintf(text, MD_SOLVER_HELP_BYTES, "%s", before);
  for (const md_solver *const *s = md_solvers(); *s; s++)
    md_append(text, MD_SOLVER_HELP_BYTES, "%-5s %s\n", (*s)->name, (*s)->help);
  md_append(text, MD_SOLVER_HELP_BYTES, "%s", after);
  return text;
}

void md_solver_options_report(cJSON *object, const md_solver_options *o) {
  if (!o->by || !(o->by->takes & MD_TAKES_PRECONDITION)) return;
  cJSON_AddStringToObject(object, "precondition", o->precondition);
  if (o->before == MD_PRECONDITION_CHEBYSHEV)
    cJSON_AddNumberToObject(object, "degree", (double)o->degree);
}

void md_solver_options_apply(const md_solver_options *o, md_solver_request *request) {
  request->solver = o->by;
  request->precondition = o->before;
  request->degree = (int)o->degree;
}
