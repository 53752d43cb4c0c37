#pragma once

#include "support.h"

/* One backend with one request. */
typedef struct backend_case {
  const md_backend *backend;
  md_backend_request request;
} backend_case;

/* Calls `run` for every combination of backend, precision, reconstruct, packing and the given
 * right-hand-side counts that this build serves (which those must be: test_served.c), of the naive
 * action without a twist. Backends for
 * a device that is not there are passed over; with MINIDIRAC_TEST_BACKEND set in the environment,
 * all other backends are, and the program ends with 77 (skipped) when nothing is left. */
void each_backend_case(md_context *context, const int *n_rhs, int n_rhs_count,
                       void (*run)(md_context *context, const backend_case *c));

/* The same also of an action with two link fields and of twists: links from md_test_random_links.
 */
void each_physics_case(md_context *context, const int *n_rhs, int n_rhs_count,
                       void (*run)(md_context *context, const backend_case *c));

/* The same of that action alone. With MINIDIRAC_TEST_BACKEND naming a backend that does not serve
 * it, nothing is run and a line says so. */
void each_improved_case(md_context *context, const int *n_rhs, int n_rhs_count,
                        void (*run)(md_context *context, const backend_case *c));

/* Emulated Tensor Cores take longer than all other backends together. Where a test is about what is
 * done with an operator, true for half of their cases, so that every packing and every precision is
 * met, if not each with each; test_conformance and test_properties take all. */
bool case_is_spared(const backend_case *c);

/* "cpu_simd half 12 stacked rhs 16" */
const char *case_name(const backend_case *c, char *text, size_t bytes);

/* A tolerance for relative L2 errors of one hop: a few roundings of the storage type. */
double case_tolerance(const backend_case *c);

/* Operator for the case on link fields of its action, and a field of its shape with the values of a
 * host double field. */
void case_dirac(md_context *context, const backend_case *c, const md_gauge *gauge, md_dirac *dirac);
void case_field(md_context *context, const md_dirac *dirac, const md_field *from, md_field *field);
/* The values of a field of any space in a new host field in double. */
void host_copy(md_context *context, const md_field *from, md_field *copy);
