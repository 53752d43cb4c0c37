#ifndef MD_LATTICE_FIELDS_LINEAR_TABLE_H
#define MD_LATTICE_FIELDS_LINEAR_TABLE_H

#include "base/instruction_set.h"
#include "lattice/fields/linear.h"

/* The operations of linear.h for one storage type in one space; same contracts. guess: NULL, or
 * what the functions that end in _near are given. */
typedef struct md_linear_table {
  void (*zero)(md_field *x);
  void (*copy)(md_field *out, const md_field *in);
  void (*axpy)(const double *a, const md_field *x, md_field *y);
  void (*xpby)(const md_field *x, const double *b, md_field *y);
  void (*axpby)(const double *a, const md_field *x, const double *b, md_field *y);
  md_status (*norm2)(md_context *context, const md_field *x, const double *guess, double *norms);
  md_status (*dot)(md_context *context, const md_field *x, const md_field *y, const double *guess,
                   double *dots);
  md_status (*axpy_norm2)(md_context *context, const double *a, const md_field *x, md_field *y,
                          const double *guess, double *norms);
  void (*cg_update)(const double *a, const double *b, const md_field *r, md_field *p, md_field *x);
  void (*cg_updates)(int count, int steps, const double *const *a, const double *const *b,
                     const md_field *const *r, md_field *const *p, md_field *const *x);
  md_status (*dots)(md_context *context, int count, const md_field *x, const md_field *y,
                    double *dots);
  void (*axpy_complex)(const double *re, const double *im, const md_field *x, md_field *y);
} md_linear_table;

MD_DECLARE_EVERY_ISA(const md_linear_table, md_linear_host_double);
MD_DECLARE_EVERY_ISA(const md_linear_table, md_linear_host_single);
MD_DECLARE_EVERY_ISA(const md_linear_table, md_linear_host_half);
MD_DECLARE_EVERY_ISA(const md_linear_table, md_linear_host_bf16);
MD_DECLARE_EVERY_ISA(const md_linear_table, md_linear_host_fixed);
/* Those of one instruction set, by precision. */
const md_linear_table *md_linear_host(md_isa isa, md_precision precision);
/* By precision. */
extern const md_linear_table md_linear_device[MD_PRECISIONS];

#endif
