#pragma once

#include "base/instruction_set.h"
#include "lattice/gauge/gauge.h"
#include "lattice/gauge/project.h"

/* Inside of smearing: the steps that every smeared link is made of, each one pass over the local
 * sites of both parities (lower: of one), for links on the host or on the device.
 *
 * No step reads farther than one site: what lies farther off is brought nearer step by step, each
 * result having its halo exchanged before the next step reads it. So a local extent of 2 is like
 * any other, and each number is computed from the same numbers in the same order on every rank
 * grid. The fields are MD_DOUBLE with MD_LINK_REALS components in the space of the kernels. */

/* A matrix at every site: one field per parity, often those of one direction of an md_gauge. */
typedef struct md_matrices {
  md_field at[MD_PARITIES];
} md_matrices;

/* Neighbours as md_geometry.neighbour, in the space of the kernels; counters only on the device. */
typedef struct md_staple_tables {
  const int32_t *to[MD_PARITIES][MD_DIRECTIONS];
  unsigned long long *counters;
} md_staple_tables;
enum { MD_STAPLE_COUNTERS = 5 };

/* Those of the host: borrowed from the geometry. */
static inline md_staple_tables md_staple_tables_of(const md_geometry *geometry) {
  md_staple_tables tables;
  for (int p = 0; p < MD_PARITIES; p++)
    for (int d = 0; d < MD_DIRECTIONS; d++) tables.to[p][d] = geometry->neighbour[p][d];
  tables.counters = NULL;
  return tables;
}

typedef struct md_staple_kernels {
  /* out(y) = u(y)^dag a(y) u(y+mu) at the sites y of out->parity: the staple on the far side of
   * u's direction nu, to be read by the site y+nu. Reads u one site forward in mu. out is none of
   * the inputs. */
  void (*lower)(const md_staple_tables *tables, md_field *out, const md_matrices *u,
                const md_matrices *a, int mu);
  /* out(x) = base(x) + u(x) a(x+nu) u(x+mu)^dag + lower(x-nu). base NULL: zero; base may be out.
   * lower NULL: left out. */
  void (*staple)(const md_staple_tables *tables, md_matrices *out, const md_matrices *base,
                 const md_matrices *u, const md_matrices *a, const md_matrices *lower, int mu,
                 int nu);
  /* out(x) = in(x + direction), direction as in md_geometry.neighbour. */
  void (*shift)(const md_staple_tables *tables, md_matrices *out, const md_matrices *in,
                int direction);
  /* out(x) = a x(x) + b (y(x) + z(x)); y or z NULL: zero. out may be an input. */
  void (*combine)(md_matrices *out, double a, const md_matrices *x, double b, const md_matrices *y,
                  const md_matrices *z);
  /* out(x) = u(x) v(x+mu); out is neither. */
  void (*multiply)(const md_staple_tables *tables, md_matrices *out, const md_matrices *u,
                   const md_matrices *v, int mu);
  /* v(x) = its projection to U(3), `special`: to SU(3); adds this rank's to
   * *counts. Local; MD_ENVIRONMENT from the device. */
  md_status (*project)(md_context *context, const md_staple_tables *tables, md_matrices *v,
                       bool special, md_projection_counts *counts);
  /* out(x) = exp(i Q(x)) u(x), i Q the traceless anti-Hermitian part of sum(x) u(x)^dag; out may
   * be sum. */
  void (*stout)(md_matrices *out, const md_matrices *sum, const md_matrices *u);
} md_staple_kernels;

/* Those of the host that are compiled once for each instruction set, the same bits on all: all but
 * project and stout, which are NULL. */
MD_DECLARE_EVERY_ISA(const md_staple_kernels, md_staple_rows);

/* The kernels of the host, for the CPU that this is. */
md_staple_kernels md_staple_kernels_host(void);

/* The kernels of smearing for links on the device. They are queued; what goes wrong in them is met
 * by the next call that returns a status. */
md_staple_kernels md_staple_kernels_device(void);
/* Neighbours and counters on the device. MD_ENVIRONMENT for memory or no GPU. Local. */
md_status md_staple_tables_create_device(md_context *context, const md_geometry *geometry,
                                         md_staple_tables *tables);
void md_staple_tables_destroy_device(md_staple_tables *tables);
