#include "backend_cases.h"
#include "base/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a backend serves it must load (test_served.c), wherever it has its device. */
static bool usable(md_context *context, const md_backend *b) {
  return b->space == MD_HOST || md_agree(context, md_device_open(context)) == MD_OK;
}

/* What D is, beside the links: PLAIN with one link field first. */
typedef struct physics {
  md_action action;
  md_twist twist;
} physics;
static const physics all_physics[] = {{.action = MD_ACTION_NAIVE},
                                      {MD_ACTION_NAIVE, {.imaginary_mu = 0.3, .flux = 2}},
                                      {MD_ACTION_HISQ, {.imaginary_mu = -0.2, .flux = -1}}};

enum { PLAIN = 2 };

/* Returns how many cases ran. */
static int each_request(md_context *context, const md_backend *b, const physics *what, int n_rhs,
                        void (*run)(md_context *context, const backend_case *c)) {
  int ran = 0;
  for (int precision = 0; precision < MD_PRECISIONS; precision++)
    for (int reconstruct = MD_RECONSTRUCT_18; reconstruct <= MD_RECONSTRUCT_8; reconstruct++)
      for (int packing = MD_PACKING_NONE; packing < MD_PACKINGS; packing++) {
        const backend_case c = {b,
                                {.precision = (md_precision)precision,
                                 .reconstruct = (md_reconstruct)reconstruct,
                                 .packing = (md_packing)packing,
                                 .n_rhs = n_rhs,
                                 .antiperiodic = true,
                                 .action = what->action,
                                 .twist = what->twist}};
        const md_backend *found;
        if (md_backend_find(context, b->name, &c.request, &found) == MD_OK && usable(context, b)) {
          run(context, &c);
          ran++;
        }
      }
  return ran;
}

/* Returns how many cases of the kinds first..last-1 of physics ran. */
static int count_cases(md_context *context, size_t first, size_t last, const int *n_rhs,
                       int n_rhs_count, void (*run)(md_context *context, const backend_case *c)) {
  const char *only = getenv("MINIDIRAC_TEST_BACKEND");
  int ran = 0;
  for (const md_backend *const *b = md_backends(); *b; b++) {
    if ((*b)->unavailable || (only && strcmp(only, (*b)->name) != 0)) continue;
    for (int i = 0; i < n_rhs_count; i++)
      for (size_t k = first; k < last; k++)
        ran += each_request(context, *b, &all_physics[k], n_rhs[i], run);
  }
  if (ran == 0 && !only) fail_msg("no backend served any case");
  return ran;
}

static void each_case(md_context *context, size_t kinds, const int *n_rhs, int n_rhs_count,
                      void (*run)(md_context *context, const backend_case *c)) {
  if (count_cases(context, 0, kinds, n_rhs, n_rhs_count, run) > 0) return;
  md_test_end(context, 0); /* the backend that was asked for has no device here */
  exit(77);
}

void each_backend_case(md_context *context, const int *n_rhs, int n_rhs_count,
                       void (*run)(md_context *context, const backend_case *c)) {
  each_case(context, 1, n_rhs, n_rhs_count, run);
}

void each_physics_case(md_context *context, const int *n_rhs, int n_rhs_count,
                       void (*run)(md_context *context, const backend_case *c)) {
  each_case(context, sizeof all_physics / sizeof *all_physics, n_rhs, n_rhs_count, run);
}

void each_improved_case(md_context *context, const int *n_rhs, int n_rhs_count,
                        void (*run)(md_context *context, const backend_case *c)) {
  if (count_cases(context, PLAIN, sizeof all_physics / sizeof *all_physics, n_rhs, n_rhs_count,
                  run) == 0)
    print_message("%s does not serve two link fields\n", getenv("MINIDIRAC_TEST_BACKEND"));
}

bool case_is_spared(const backend_case *c) {
  const md_backend_request *r = &c->request;
  return r->packing != MD_PACKING_NONE && c->backend->space == MD_HOST &&
         ((int)r->precision + (int)r->packing) % 2 != 0;
}

const char *case_name(const backend_case *c, char *text, size_t bytes) {
  snprintf(text, bytes, "%s %s%s %s %s %s rhs %d", c->backend->name,
           md_action_name(c->request.action), md_links_twisted(&c->request.twist) ? " twisted" : "",
           md_precision_name(c->request.precision), md_reconstruct_name(c->request.reconstruct),
           md_packing_name(c->request.packing), c->request.n_rhs);
  return text;
}

/* Links, source and result are rounded once each; sums of 24 products in the arithmetic type. */
double case_tolerance(const backend_case *c) {
  return 6.0 * md_precision_roundoff(c->request.precision);
}

void case_dirac(md_context *context, const backend_case *c, const md_gauge *gauge,
                md_dirac *dirac) {
  MD_REQUIRE(context, md_dirac_create(context, gauge, c->backend->name, &c->request, dirac));
}

void case_field(md_context *context, const md_dirac *dirac, const md_field *from, md_field *field) {
  MD_REQUIRE(context, md_dirac_field(context, dirac, from->parity, field));
  MD_REQUIRE(context, md_field_convert(context, field, from));
}

void host_copy(md_context *context, const md_field *from, md_field *copy) {
  const md_field_shape shape = {MD_DOUBLE, MD_HOST, from->components, from->n_rhs, true, false};
  MD_REQUIRE(context, md_field_create(context, from->geometry, &shape, from->parity, copy));
  MD_REQUIRE(context, md_field_convert(context, copy, from));
}
