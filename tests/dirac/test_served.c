/* What each backend must serve, said once more and apart from the backends themselves: the tests
 * that go over all of them pass over what a backend refuses, so that none of those would miss what
 * is gone from its flags. Requests are compared one by one, without a GPU too; those of the host
 * are also loaded. */
#include "backend_cases.h"
#include "base/device.h"

#include <stdio.h>
#include <string.h>

typedef struct promise {
  const char *backend, *precisions, *reconstructs, *packings; /* words with blanks between */
  bool tiles;                                                 /* see serves_tiles */
  const char *spins; /* precisions of actions with four spins */
} promise;

static const char tile_packings[] = "single diagonal block8 stacked";
static const promise promises[] = {
    {"cpu_ref", "double", "18", "none", false, "double"},
    {"cpu_simd", "double single half bf16 fixed", "18 12", "none", false,
     "double single half bf16 fixed"},
    {"cuda", "double single half bf16 fixed", "18 12 8 13 9", "none", false,
     "double single half bf16"},
    {"tensor", "double half bf16", "18", tile_packings, true, "double half bf16"},
    {"tensor_emu", "double half bf16", "18", tile_packings, true, "double half bf16"}};
enum { BACKENDS = sizeof promises / sizeof *promises };

/* Every backend serves every staggered action, whose links these are. */
static const struct {
  const char *name;
  bool unitary; /* 12 and 8 reals hold them; else 13 and 9 do */
  bool spins;
} actions[] = {{"naive", true, false}, {"asqtad", false, false},   {"hisq", false, false},
               {"wilson", true, true}, {"domainwall", true, true}, {"mobius", true, true}};
enum { ACTIONS = sizeof actions / sizeof *actions };

static const int counts_of_rhs[] = {1, 2, 3, 8, 16, MD_MAX_RHS};
enum { COUNTS = sizeof counts_of_rhs / sizeof *counts_of_rhs };

static bool has(const char *words, const char *word) {
  const size_t length = strlen(word);
  for (const char *at = words; (at = strstr(at, word)); at++)
    if ((at == words || at[-1] == ' ') && (at[length] == 0 || at[length] == ' ')) return true;
  return false;
}

/* Right-hand sides are rows of a tile when stacked, with the spins and slices of quarks that have
 * them; the others multiply one vector in half. */
static bool serves_tiles(const md_backend_request *r) {
  const bool spins = actions[r->action].spins;
  if (r->packing == MD_PACKING_STACKED) return r->n_rhs >= 2 || spins;
  return r->precision == MD_HALF && r->n_rhs == 1 && !spins;
}

static bool is_promised(const promise *p, const md_backend_request *r) {
  const char *reals = md_reconstruct_name(r->reconstruct);
  const bool fits =
      r->reconstruct == MD_RECONSTRUCT_18 ||
      (has(actions[r->action].unitary ? "12 8" : "13 9", reals) && !md_links_twisted(&r->twist));
  return fits && has(p->reconstructs, reals) &&
         has(actions[r->action].spins ? p->spins : p->precisions,
             md_precision_name(r->precision)) &&
         has(p->packings, md_packing_name(r->packing)) && (!p->tiles || serves_tiles(r));
}

static md_backend_request request_of(int i) {
  md_backend_request r = {.antiperiodic = true};
  r.twist.flux = i % 2, i /= 2;
  r.n_rhs = counts_of_rhs[i % COUNTS], i /= COUNTS;
  r.precision = (md_precision)(i % MD_PRECISIONS), i /= MD_PRECISIONS;
  r.reconstruct = (md_reconstruct)(i % MD_RECONSTRUCTS), i /= MD_RECONSTRUCTS;
  r.packing = (md_packing)(i % MD_PACKINGS), i /= MD_PACKINGS;
  r.action = (md_action)i;
  r.walls.slices = 2;
  return r;
}
enum { REQUESTS = 2 * COUNTS * MD_PRECISIONS * MD_RECONSTRUCTS * MD_PACKINGS * ACTIONS };

/* What this build cannot have: it has all or nothing of CUDA. */
static bool is_missing(const md_backend *b) {
  return !MINIDIRAC_HAVE_CUDA && (b->space == MD_DEVICE || strcmp(b->name, "cuda") == 0);
}

static void every_backend_is_promised(void **state) {
  int count = 0;
  (void)state;
  assert_int_equal(ACTIONS, MD_ACTIONS);
  for (int i = 0; i < ACTIONS; i++)
    assert_string_equal(actions[i].name, md_action_name((md_action)i));
  for (; md_backends()[count]; count++) {
    assert_true(count < BACKENDS);
    assert_string_equal(md_backends()[count]->name, promises[count].backend);
    assert_int_equal(md_backends()[count]->unavailable != NULL, is_missing(md_backends()[count]));
  }
  assert_int_equal(count, BACKENDS);
}

static void every_request_is_served_or_refused(void **state) {
  md_context *context = *state;
  for (int k = 0; k < BACKENDS * REQUESTS; k++) {
    const md_backend *b = md_backends()[k / REQUESTS], *found = NULL;
    const backend_case c = {b, request_of(k % REQUESTS)};
    const md_status expected = b->unavailable                                     ? MD_ENVIRONMENT
                               : is_promised(&promises[k / REQUESTS], &c.request) ? MD_OK
                                                                                  : MD_INPUT;
    const md_status status = md_backend_find(context, b->name, &c.request, &found);
    char text[128];
    if (status != expected)
      fail_msg("%s: status %d, must be %d: %s", case_name(&c, text, sizeof text), (int)status,
               (int)expected, status == MD_OK ? "it is served" : context->message);
  }
}

/* "auto" finds something wherever some backend serves the request here. */
static void whatever_is_served_is_found(void **state) {
  md_context *context = *state;
  const bool device = md_device_open(context) == MD_OK;
  for (int k = 0; k < REQUESTS; k++) {
    const md_backend_request r = request_of(k);
    const md_backend *found = NULL;
    bool expected = false;
    for (int i = 0; i < BACKENDS; i++)
      expected = expected || (!md_backends()[i]->unavailable && is_promised(&promises[i], &r) &&
                              (device || md_backends()[i]->space == MD_HOST));
    const md_status status = md_backend_find(context, "auto", &r, &found);
    const backend_case c = {found ? found : md_backends()[0], r};
    char text[128];
    if ((status == MD_OK) != expected)
      fail_msg("auto for %s: status %d", case_name(&c, text, sizeof text), (int)status);
  }
}

/* Operators of four sites in each direction. */
static void what_is_promised_can_be_loaded(void **state) {
  md_context *context = *state;
  const int dims[MD_DIMS] = {4, 4, 4, 4};
  for (int action = 0; action < ACTIONS; action++) {
    md_gauge fields[MD_MOST_LINK_FIELDS];
    md_geometry *g = md_test_action_geometry(context, (md_action)action, dims, false);
    md_test_random_links(context, g, (md_action)action, 1, fields);
    for (int k = 0; k < BACKENDS * REQUESTS; k++) {
      const backend_case c = {md_backends()[k / REQUESTS], request_of(k % REQUESTS)};
      md_dirac dirac;
      if (c.backend->space != MD_HOST || c.backend->unavailable ||
          (int)c.request.action != action || c.request.n_rhs > 2 ||
          !is_promised(&promises[k / REQUESTS], &c.request))
        continue;
      case_dirac(context, &c, fields, &dirac);
      md_dirac_destroy(&dirac);
    }
    md_test_destroy_links((md_action)action, fields);
    md_geometry_destroy(g);
  }
}

static struct CMUnitTest tests[] = {cmocka_unit_test(every_backend_is_promised),
                                    cmocka_unit_test(every_request_is_served_or_refused),
                                    cmocka_unit_test(whatever_is_served_is_found),
                                    cmocka_unit_test(what_is_promised_can_be_loaded)};
MD_RUN_TESTS(tests)
