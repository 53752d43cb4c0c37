#include "dirac/action.h"
#include "base/options.h"

static const md_action_data actions[MD_ACTIONS] = {
    [MD_ACTION_NAIVE] = {"naive", 1, {{"gauge", 1}}, true, 1, false},
    [MD_ACTION_ASQTAD] = {"asqtad", 2, {{"fat", 1}, {"long", 3}}, false, 1, false},
    [MD_ACTION_HISQ] = {"hisq", 2, {{"fat", 1}, {"long", 3}}, false, 1, false},
    [MD_ACTION_WILSON] = {"wilson", 1, {{"gauge", 1}}, true, 4, false},
    [MD_ACTION_DOMAINWALL] = {"domainwall", 1, {{"gauge", 1}}, true, 4, true},
    [MD_ACTION_MOBIUS] = {"mobius", 1, {{"gauge", 1}}, true, 4, true},
};

const char md_action_words[] = "naive|asqtad|hisq|wilson|domainwall|mobius";

const md_action_data *md_action_get(md_action action) {
  return &actions[action];
}

const char *md_action_name(md_action action) {
  return actions[action].name;
}

int md_action_of(const char *name) {
  return md_choice_of(md_action_words, name);
}

int md_action_depth(md_action action) {
  int depth = 0;
  for (int f = 0; f < actions[action].fields; f++)
    if (actions[action].field[f].hop > depth) depth = actions[action].field[f].hop;
  return depth;
}
