#include "bench/operators.h"
#include "links/action_links.h"

#include <stdio.h>
#include <string.h>

/* BACKEND[:PACKING[:REALS]] */
static md_status read_operator(md_context *context, const char *label, const char *word,
                               md_bench_operators *o) {
  char backends[MD_BACKEND_WORDS_BYTES], *backend = o->of[o->count].backend;
  snprintf(backend, MD_BENCH_OPERATOR_BYTES, "%s", word);
  char *packing = strchr(backend, ':'), *reals = packing ? strchr(packing + 1, ':') : NULL;
  if (packing) *packing++ = '\0';
  if (reals) *reals++ = '\0';
  const int p = packing ? md_packing_of(packing) : MD_PACKING_NONE;
  const int r = reals ? md_reconstruct_of(reals) : MD_RECONSTRUCT_18;
  if (md_choice_of(md_backend_words("auto", backends), backend) < 0)
    return md_fail_choice(context, label, backends, backend);
  if (p < 0) return md_fail_choice(context, label, &(MD_PACKING_WORDS)[1], packing);
  if (r < 0) return md_fail_choice(context, label, &(MD_RECONSTRUCT_WORDS)[1], reals);
  o->of[o->count].packing = (md_packing)p;
  o->of[o->count++].reconstruct = (md_reconstruct)r;
  return MD_OK;
}

md_status md_bench_operators_read(md_context *context, const char *label, const char *text,
                                  void *target) {
  char copy[MD_BENCH_OPERATOR_BYTES];
  const char *words[MD_BENCH_OPERATORS];
  const int count = md_words(text, copy, sizeof copy, words, MD_BENCH_OPERATORS);
  md_bench_operators *o = target;
  o->count = 0;
  if (count < 0)
    return md_fail(context, MD_INPUT,
                   "%s must be a list of at most %d BACKEND, BACKEND:PACKING or "
                   "BACKEND:PACKING:REALS, got '%.200s'",
                   label, MD_BENCH_OPERATORS, text);
  for (int i = 0; i < count; i++) MD_TRY(read_operator(context, label, words[i], o));
  return MD_OK;
}

md_space md_bench_operators_space(md_context *context, const md_bench_operators *operators,
                                  const md_physics_options *physics) {
  for (int o = 0; o < operators->count; o++)
    if (md_action_links_space(context, operators->of[o].backend, physics) == MD_DEVICE)
      return MD_DEVICE;
  return MD_HOST;
}
