#pragma once

#include "dirac/operator.h"

MD_C_BEGIN

/* A linear map on fields of one shape, as a solver sees it: out = A in. md_dirac (operator.h) is
 * the stencil D between the parities; these are the maps that are made of it, or of anything else.
 * The kind is a constant table in the file of its operator, the state is what it makes of it. */
typedef struct md_operator md_operator;
struct md_system; /* dirac/system.h */

/* Optional end of an apply: out = a x + b A in, of which a is not read where x is NULL. x has the
 * shape of out, is not out and may be in. */
typedef struct md_operator_end {
  const md_field *x;
  double a, b;
} md_operator_end;

typedef struct md_operator_kind {
  const char *name;
  /* out = A in; in's halo is overwritten. `end` is NULL, or an end whose x is NULL or in, where
   * `ends` says that this function serves those. */
  md_status (*apply)(md_context *context, md_operator *a, md_field *out, md_field *in,
                     const md_operator_end *end);
  bool ends;
  void (*destroy)(md_operator *a); /* of the state, which may be partly made or NULL */
} md_operator_kind;

/* m^2 - Deo Doe by a stencil, as operators of this form show it to solvers that go into it: block
 * CG, which knows <p, A p> after the first stencil, and the iterations of a device, which fuse. */
typedef struct md_normal {
  md_dirac *dirac; /* borrowed */
  double mass;
  md_field odd; /* what an apply works with */
} md_normal;

/* What CG takes of A = F F^dag, a pass each; norms as md_linear_norm2. Collective. */
typedef struct md_operator_factors {
  /* F^dag p stays within, norms[rhs] = |F^dag p|^2; p's halo is overwritten. */
  md_status (*first)(md_context *context, md_operator *a, md_field *p, const double *guess,
                     double *norms);
  /* r += by[rhs] F of what is within, norms[rhs] = |r|^2, of r before it is rounded. */
  md_status (*second)(md_context *context, md_operator *a, const double *by, md_field *r,
                      const double *guess, double *norms);
} md_operator_factors;

struct md_operator {
  const md_operator_kind *kind;
  const md_geometry *geometry;
  md_field_shape shape;
  int parity;             /* of the fields; MD_PARITIES: in and out are arrays [even, odd] */
  md_precision precision; /* in which it works, which may be narrower than its fields */
  bool hermitian, positive;
  double least, most; /* bounds of the spectrum where Hermitian; else of singular values */
  double modes_from;  /* modes of a request are those of A less this */
  double flops,
      bytes;         /* of an apply, all right-hand sides and ranks; bytes as compulsory traffic */
  md_normal *normal; /* NULL: it is not of this form */
  /* Of another A = F F^dag: what an apply leaves of F^dag in. NULL: it has none such. */
  const md_field *factor;
  const md_operator_factors *factors; /* for an r of its precision; NULL: not served */
  /* Of an M on both parities: what md_system_even_odd calls for it. NULL: that of the staggered
   * family. */
  md_status (*even_odd)(md_context *context, md_operator *full, bool direct,
                        const md_field b[MD_PARITIES], struct md_system *s);
  void *state;
};

/* Collective. With an end other than the kind serves, that is done after it. */
md_status md_operator_apply(md_context *context, md_operator *a, md_field *out, md_field *in,
                            const md_operator_end *end);
/* A field that it works on, zeroed; of the parity where it works on one. Local. */
md_status md_operator_field(md_context *context, const md_operator *a, md_field *field);
/* The base of a new one: all but state and bounds, of fields like a's. */
md_operator md_operator_like(const md_operator *a, const md_operator_kind *kind);
/* A zeroed one is fine. */
void md_operator_destroy(md_operator *a);

/* The base of a new one of a stencil, `hops` of it in an apply: all but state and bounds. */
md_operator md_operator_of_dirac(const md_dirac *dirac, const md_operator_kind *kind, int parity,
                                 int hops);

/* m^2 - Deo Doe on even sites, Hermitian and positive, or what stands for it with another action
 * (dirac/wilson/wilson.h): dirac outlives it. Destroy also after a failure. Local. */
md_status md_normal_create(md_context *context, md_dirac *dirac, double mass, md_operator *a);
/* The same operator, m^2 - Deo Doe, for another mass. Local. */
void md_normal_set_mass(md_operator *a, double mass);
/* S of x_e alone (dirac/wilson/wilson.h): MD_INPUT where the action has none that iterations
 * without a normal equation converge for. As md_normal_create. */
md_status md_schur_create(md_context *context, md_dirac *dirac, double mass, md_operator *a);
/* Whether iterations on the device serve it with residuals in precision `r` (md_dirac_fuses). */
bool md_normal_fuses(const md_operator *a, md_precision r);

/* A + sigma of any A, which outlives it. Destroy also after a failure. Local. */
md_status md_shifted_create(md_context *context, md_operator *of, double sigma, md_operator *a);
/* The same operator for another sigma. Local. */
void md_shifted_set(md_operator *a, double sigma);

/* M of the action on both parities, m + D for the staggered family: dirac outlives it. Destroy also
 * after a failure. Local. */
md_status md_full_create(md_context *context, md_dirac *dirac, double mass, md_operator *a);
/* The stencil of one that is m + D; the same operator for another mass. Local. */
md_dirac *md_full_dirac(const md_operator *a);
void md_full_set_mass(md_operator *a, double mass);

MD_C_END
