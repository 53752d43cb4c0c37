#include "lattice/gauge/recipes.h"

#include <stdio.h>
#include <string.h>

/* Staples of one, three, five, seven links with weights 1/8, 1/16, 1/64, 1/384 (fat7) remove the
 * coupling of quarks to gluons of momentum pi/a in one, two and three transverse directions. The
 * Lepage term takes off the error of order a^2 that they bring in at low momentum; the product of
 * three links (Naik) improves the dispersion relation, and 1/8 more of the one link makes up for
 * its weight at zero momentum (HISQ: 1/8 + 1/8 + 3/4 = 1). */
static const md_recipe recipes[] = {
    {.name = "asqtad",
     .takes = " u0 ",
     .level_count = 1,
     .levels = {{.weights = {5.0 / 8, 1.0 / 16, 1.0 / 64, 1.0 / 384, -1.0 / 16}, .sum_name = 'X'}},
     .naik = -1.0 / 24},
    {.name = "hisq",
     .takes = " naik-epsilon ",
     .level_count = 2,
     .levels = {{.weights = {1.0 / 8, 1.0 / 16, 1.0 / 64, 1.0 / 384, 0.0},
                 .end = MD_END_U3,
                 .sum_name = 'V',
                 .end_name = 'W'},
                {.weights = {1.0, 1.0 / 16, 1.0 / 64, 1.0 / 384, -1.0 / 8}, .sum_name = 'X'}},
     .naik = -1.0 / 24,
     .epsilon_one = 1.0 / 8,
     .epsilon_naik = 1.0},
    {.name = "fat7",
     .takes = " u0 ",
     .level_count = 1,
     .levels = {{.weights = {1.0 / 8, 1.0 / 16, 1.0 / 64, 1.0 / 384, 0.0}, .sum_name = 'V'}}},
    {.name = "ape",
     .takes = " alpha steps ",
     .level_count = 1,
     .levels = {{.weights = {.one = 1.0},
                 .slope = {.one = -1.0, .three = 1.0 / 6},
                 .end = MD_END_SU3,
                 .sum_name = 'V',
                 .end_name = 'W'}}},
    {.name = "stout",
     .takes = " rho steps ",
     .level_count = 1,
     .levels = {{.slope = {.three = 1.0}, .end = MD_END_STOUT, .end_name = 'W'}}},
};
enum { RECIPES = sizeof recipes / sizeof *recipes };

const char md_recipe_names[] = "asqtad|hisq|fat7|ape|stout";

const md_recipe *md_recipe_find(const char *name) {
  for (int i = 0; i < RECIPES; i++)
    if (strcmp(recipes[i].name, name) == 0) return &recipes[i];
  return NULL;
}

const char *md_recipe_name(const md_recipe *recipe) {
  return recipe->name;
}

bool md_recipe_has_long(const md_recipe *recipe) {
  return recipe->naik != 0.0;
}

bool md_recipe_takes(const md_recipe *recipe, const char *parameter) {
  char word[32];
  snprintf(word, sizeof word, " %s ", parameter);
  return strstr(recipe->takes, word) != NULL;
}

md_smear_request md_smear_defaults(const md_recipe *recipe) {
  return (md_smear_request){.recipe = recipe, .u0 = 1.0, .alpha = 0.5, .rho = 0.1, .steps = 1};
}

const char *md_smear_parameter(const md_smear_request *r, int i, double *value) {
  const struct {
    const char *name;
    double value;
  } all[] = {{"u0", r->u0},       {"naik-epsilon", r->naik_epsilon},
             {"alpha", r->alpha}, {"rho", r->rho},
             {"steps", r->steps}, {NULL, 0.0}};
  *value = all[i].value;
  return all[i].name;
}

int md_smear_steps(const md_smear_request *r) {
  return md_recipe_takes(r->recipe, "steps") ? r->steps : r->recipe->level_count;
}

static double u0_squared(const md_smear_request *r) {
  return md_recipe_takes(r->recipe, "u0") ? r->u0 * r->u0 : 1.0;
}

md_path_weights md_smear_weights(const md_smear_request *r, const md_level *level) {
  const md_path_weights *w = &level->weights, *s = &level->slope;
  const double x = md_recipe_takes(r->recipe, "rho") ? r->rho : r->alpha;
  const double u2 = u0_squared(r), u4 = u2 * u2;
  return (md_path_weights){.one = w->one + x * s->one,
                           .three = (w->three + x * s->three) / u2,
                           .five = (w->five + x * s->five) / u4,
                           .seven = (w->seven + x * s->seven) / (u4 * u2),
                           .lepage = (w->lepage + x * s->lepage) / u4};
}

double md_smear_naik_weight(const md_smear_request *r) {
  return r->recipe->naik * (1.0 + r->recipe->epsilon_naik * r->naik_epsilon) / u0_squared(r);
}
