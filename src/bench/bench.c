#include "bench/bench.h"
#include "base/device.h"
#include "base/interrupt.h"
#include "base/progress.h"
#include "base/text.h"
#include "commands.h"
#include "dirac/operator.h"
#include "lattice/gauge/gauge.h"
#include "lattice/gauge/heatbath.h"
#include "lattice/halo/halo.h"
#include "links/action_links.h"

#include <stdio.h>
#include <string.h>

static const struct {
  const char *name, *summary;
  md_status (*run)(md_context *context, int argc, char **argv);
} KINDS[] = {
    {"suite", "all parts on a fixed problem, checked, with one figure of merit", md_bench_suite},
    {"dirac", "the stencil of each backend, against the memory bandwidth", md_bench_dirac},
    {"solver", "time to a true residual: precisions, many right-hand sides, shifts",
     md_bench_solver},
    {"copy", "memory bandwidth by working set", md_bench_copy},
    {"gemm", "C <- alpha A B + beta C by every kernel, on one rank or many", md_bench_gemm},
    {"transpose", "out of place transpose, by block shape", md_bench_small},
    {"shift", "out[x, y] = in[x, y] + in[x + 4, y], by block shape", md_bench_small},
    {"gemv", "matrix times vector, integers and floats", md_bench_small},
};
enum { KIND_COUNT = sizeof KINDS / sizeof KINDS[0] };

md_status md_command_bench(md_context *context, int argc, char **argv) {
  const char *name = argc > 1 ? argv[1] : "";
  md_interrupt_catch(context);
  for (int k = 0; k < KIND_COUNT; k++)
    if (strcmp(KINDS[k].name, name) == 0) return KINDS[k].run(context, argc - 1, argv + 1);
  if (strcmp(name, "--help") != 0 && strcmp(name, "-h") != 0) {
    md_suggestion nearest = md_suggest(name);
    for (int k = 0; k < KIND_COUNT; k++)
      md_suggest_name(&nearest, KINDS[k].name, strlen(KINDS[k].name));
    return md_fail(context, MD_INPUT,
                   "bench needs a kind, got '%.200s'; see minidirac bench --help%s", name,
                   nearest.text);
  }
  if (context->rank == 0) printf("usage: minidirac bench KIND [options]\n\n");
  for (int k = 0; k < KIND_COUNT && context->rank == 0; k++)
    printf("  %-10s %s\n", KINDS[k].name, KINDS[k].summary);
  return MD_OK;
}

/* A sweep and its updates; done when it returns, so that an interrupt is met between sweeps. */
static md_status sweep_once(md_context *context, const md_bench_links_request *r,
                            md_heatbath *heatbath, long long k) {
  MD_TRY(md_heatbath_sweep(heatbath, r->beta, r->seed, (uint64_t)k));
  for (int o = 0; o < r->overrelax; o++) MD_TRY(md_overrelaxation_sweep(heatbath));
  MD_TRY(md_heatbath_wait(heatbath));
  return md_interrupt_check(context, r->command);
}

static md_status start_links(md_context *context, const md_bench_links_request *r, md_gauge *thin) {
  if (r->sweeps == 0) return md_gauge_start_hot(context, thin, r->seed);
  md_heatbath *heatbath = NULL;
  MD_TRY(md_gauge_start_cold(context, thin));
  MD_TRY(md_heatbath_create(context, thin, r->sweeps_in, &heatbath));
  md_progress progress = md_progress_start(context, "heatbath");
  md_status status = MD_OK;
  for (long long k = 0; k < r->sweeps && status == MD_OK; k++) {
    status = sweep_once(context, r, heatbath, k);
    md_progress_update(&progress, (double)(k + 1) / (double)r->sweeps, "sweep %lld of %lld", k + 1,
                       r->sweeps);
  }
  md_progress_stop(&progress);
  if (status == MD_OK) status = md_heatbath_give(heatbath);
  md_heatbath_destroy(heatbath);
  md_device_release(context);
  return status;
}

typedef struct planned {
  const md_bench_links_request *request;
  md_geometry geometry; /* without tables */
} planned;

static md_status dry_run(md_context *context, void *user) {
  planned *p = user;
  const md_bench_links_request *r = p->request;
  const md_geometry *g = &p->geometry;
  md_backend_request exact = {.precision = MD_DOUBLE, .n_rhs = r->n_rhs};
  md_action_links made = {.geometry = &p->geometry, .action = md_physics_action(r->physics)};
  md_memory_need least = {0};
  md_physics_apply(r->physics, &exact);
  md_count_memory(context, (md_memory_need){.host = md_geometry_bytes(g)});
  for (int f = 0; f < md_action_get(exact.action)->fields; f++)
    MD_TRY(md_gauge_create(context, g, &made.field[f]));
  const md_memory_need links = md_memory_mark(context);
  if (r->sweeps > 0)
    md_count_memory(context, r->sweeps_in == MD_HOST
                                 ? (md_memory_need){.host = md_heatbath_bytes(g)}
                                 : (md_memory_need){.device = md_heatbath_device_bytes(g)});
  md_memory_return_to(context, links);
  for (int k = 0; k < 2 && r->n_rhs > 0; k++) {
    md_dirac oracle;
    md_field unused;
    MD_TRY(md_dirac_create(context, made.field, "cpu_ref", &exact, &oracle));
    for (int f = 0; f < 2 * MD_PARITIES; f++)
      MD_TRY(md_dirac_field(context, &oracle, f % MD_PARITIES, &unused));
    md_dirac_destroy(&oracle);
  }
  if (r->least) MD_TRY(r->least(&made, r->user, &least));
  md_count_memory(context, least);
  return MD_OK;
}

static md_layout_request layout_of(const md_bench_links_request *r) {
  const int depth = md_action_depth(md_physics_action(r->physics));
  return md_layout_of(r->dims, r->grid, depth, md_halo_face_costs(r->space));
}

md_space md_bench_links_space(md_context *context, const md_bench_links_request *r) {
  const md_layout_request layout = layout_of(r);
  const md_smear_request smear = md_physics_smear(r->physics, MD_DEVICE);
  md_memory_need need = {0};
  md_geometry plan;
  if (md_agree(context, md_device_open(context)) != MD_OK ||
      md_geometry_plan(context, &layout, &plan) != MD_OK)
    return MD_HOST;
  if (smear.recipe) md_smear_need(&plan, &smear, &need);
  if (need.device < md_heatbath_device_bytes(&plan)) need.device = md_heatbath_device_bytes(&plan);
  const md_status fits = md_device_require(context, (size_t)need.device, r->command);
  return md_agree(context, fits) == MD_OK ? MD_DEVICE : MD_HOST;
}

md_status md_bench_links_make(md_context *context, const md_bench_links_request *r,
                              md_action_links *links) {
  const md_action_links_request files = {.physics = r->physics,
                                         .lattice = r->lattice,
                                         .ignore_checksum = r->ignore_checksum,
                                         .grid = r->grid,
                                         .space = r->space};
  const bool reads = r->lattice || r->physics->fat_file;
  const md_space made_in = r->space == MD_HOST ? r->sweeps_in : r->space;
  const md_layout_request layout = layout_of(r);
  planned p = {.request = r};
  md_memory_need need;
  md_geometry *geometry;
  md_gauge thin;
  MD_TRY(reads ? md_action_links_plan(context, &files, &p.geometry)
               : md_geometry_plan(context, &layout, &p.geometry));
  MD_TRY(md_memory_foresee(context, dry_run, &p, &need));
  MD_TRY(md_memory_require(context, &need, r->command));
  if (reads) return md_action_links_load(context, &files, links);
  MD_TRY(md_geometry_create(context, &layout, &geometry));
  md_status status = md_agree(context, md_gauge_create(context, geometry, &thin));
  if (status == MD_OK) status = start_links(context, r, &thin);
  if (status == MD_OK)
    return md_action_links_make(context, r->physics, made_in, geometry, &thin, links);
  md_gauge_destroy(&thin);
  md_geometry_destroy(geometry);
  return status;
}

void md_bench_say_transport(cJSON *root, const cJSON *rows) {
  char names[128] = "";
  for (const cJSON *row = rows->child; row; row = row->next) {
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItem(row, "transport"));
    if (name && !strstr(names, name))
      md_append(names, sizeof names, "%s%s", *names ? "," : "", name);
  }
  if (*names) cJSON_AddStringToObject(root, "transport", names);
}

md_status md_bench_timed_nothing(md_context *context, const char *command, const cJSON *skipped) {
  const char *reason = md_rows_skipped(skipped);
  return md_fail(context, MD_ENVIRONMENT, "%s timed nothing: %s", command,
                 reason ? reason : "no backend serves what was asked for");
}

/* BACKEND[:PACKING[:REALS]] */
static md_status read_operator(md_context *context, const char *label, const char *word,
                               md_bench_operators *o) {
  char backends[MD_BACKEND_WORDS_BYTES], *backend = o->of[o->count].backend;
  snprintf(backend, MD_BENCH_OPERATOR_BYTES, "%s", word);
  char *packing = strchr(backend, ':'), *reals = packing ? strchr(packing + 1, ':') : NULL;
  if (packing) *packing++ = '\0';
  if (reals) *reals++ = '\0';
  const int p = packing ? md_packing_of(packing) : MD_PACKING_AUTO;
  const int r = reals ? md_reconstruct_of(reals) : MD_RECONSTRUCT_18;
  if (md_choice_of(md_backend_words("auto", backends), backend) < 0)
    return md_fail_choice(context, label, backends, backend);
  if (packing && !*packing)
    return md_fail(context, MD_INPUT,
                   "%s must have a packing behind a colon, got '%s'; auto leaves it open", label,
                   word);
  if (p < 0) return md_fail_choice(context, label, MD_PACKING_OR_AUTO_WORDS, packing);
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
