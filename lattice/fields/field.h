#pragma once

#include "base/precision.h"
#include "lattice/geometry/geometry.h"

MD_C_BEGIN

typedef enum md_space { MD_HOST, MD_DEVICE } md_space;

/* A field of one parity: reals on sites, halo behind them.
 *
 * n_rhs == 1: structure of arrays. Plane c (0 .. components-1) starts at data + c*stride elements,
 *   holds `sites` local values, then `halo` values; stride >= sites + halo, every plane 64-byte
 *   aligned. Components of a staggered fermion: colour*2 + (0 re, 1 im); of a link:
 *   (row*3 + column)*2 + ...
 * n_rhs > 1, or `together`, as quarks with four spins are on a device: one plane of
 *   [site][pair][rhs] complex numbers (re, im), rhs fastest; element (site, pair, rhs, part) at
 *   ((site*components/2 + pair)*n_rhs + rhs)*2 + part, the pairs of a staggered fermion being its
 *   colours, else dirac/action.h tells of them; halo sites follow.
 *
 * MD_HALF: value = stored * scale[site] with one power-of-two float a site (also over the halo),
 *   chosen so that the site's largest |stored| over colours and rhs, rounded, lies in [2^14,
 *   MD_HALF_MOST], where the sum of two is finite, and the values of a site tell its scale; fp16
 *   keeps its relative accuracy for parts down to 2^-28 of that. A site of zeros has the scale
 *   MD_SCALE_OF_ZERO. Links are stored unscaled (|U| <= 1): scale is NULL, as for other types.
 * MD_FIXED: value = steps * scale[site] likewise, scale the largest component / MD_FIXED_STEPS and
 *   no less than MD_SCALE_OF_ZERO; NaN or infinite where the site holds such a value. Unscaled:
 *   value = steps / MD_FIXED_STEPS, saturating at 1. */
typedef struct md_field {
  md_precision precision;
  md_space space;
  int parity;
  int components; /* reals of a site and right-hand side, an even number: (re, im) pairs */
  int n_rhs;
  bool together;               /* one plane also with one right-hand side */
  int64_t sites, halo, stride; /* stride in elements of a plane; of one plane: in sites */
  void *data;
  float *scale;
  const md_geometry *geometry;
} md_field;

enum { MD_MAX_RHS = 128 };        /* of one field; more are solved in several fields */
enum { MD_MAX_COMPONENTS = 768 }; /* of one site and right-hand side: 32 slices of four spins */
#define MD_SCALE_OF_ZERO 0x1p-126f
typedef struct md_field_shape {
  md_precision precision;
  md_space space;
  int components;
  int n_rhs;
  bool scaled; /* fermions: true; takes effect where md_precision_scaled */
  bool together;
} md_field_shape;

/* Allocates; host memory is zeroed by the threads that will use it (first touch, static schedule
 * over sites). 64 bytes behind the last element may be read, so that vectors may be whole.
 * MD_DEVICE asks the device file, MD_ENVIRONMENT where the build has none. Local. */
md_status md_field_create(md_context *context, const md_geometry *geometry,
                          const md_field_shape *shape, int parity, md_field *field);
/* Bytes that md_field_create allocates for this shape. Needs no tables of the geometry. */
int64_t md_field_bytes(const md_geometry *geometry, const md_field_shape *shape);
/* Frees and clears; a zeroed descriptor is fine. */
void md_field_destroy(md_field *field);
/* Of each, in C. */
#define MD_FIELDS_DESTROY(...)                                                                     \
  md_fields_destroy((md_field *[]){__VA_ARGS__},                                                   \
                    sizeof(md_field *[]){__VA_ARGS__} / sizeof(md_field *))
void md_fields_destroy(md_field *const *fields, size_t count);

/* Each becomes the other, without their data. */
static inline void md_field_swap(md_field *a, md_field *b) {
  const md_field held = *a;
  *a = *b;
  *b = held;
}
/* Whether each component has a plane of its own. */
static inline bool md_field_planar(const md_field *f) {
  return f->n_rhs == 1 && !f->together;
}
static inline bool md_shape_planar(const md_field_shape *s) {
  return s->n_rhs == 1 && !s->together;
}
/* Planes of the field, elements of one site in a plane. */
static inline int md_field_planes(const md_field *f) {
  return md_field_planar(f) ? f->components : 1;
}
static inline int md_field_entry(const md_field *f) {
  return md_field_planar(f) ? 1 : f->components * f->n_rhs;
}
/* Element index of a real: component c of right-hand side r at a site. */
static inline int64_t md_field_at(const md_field *f, int64_t site, int c, int r) {
  return md_field_planar(f) ? c * f->stride + site
                            : ((site * (f->components / 2) + c / 2) * f->n_rhs + r) * 2 + c % 2;
}

/* out[c], c < components, of one site and right-hand side as doubles, scale applied. Host only;
 * site may lie in the halo. For set-up, input and output and tests, not for kernels. */
void md_field_get(const md_field *f, int64_t site, int rhs, double *out);
/* Stores all right-hand sides of a site: in[r*components + c]; sets the scale. Host only. */
void md_field_set(md_field *f, int64_t site, const double *in);

/* Assigns out = in over the local sites, converting precision, between fields of the same
 * components, n_rhs and geometry in any two spaces. out's halo is left without meaning. Local. */
md_status md_field_convert(md_context *context, md_field *out, const md_field *in);
/* md_field_convert from a field of fewer right-hand sides, in MD_DOUBLE, to one with more, of which
 * the last are set to zero; and back, to the first ones. With the same number it is
 * md_field_convert. Local. */
md_status md_field_resize(md_context *context, md_field *out, const md_field *in);
/* The same of factor[rhs] * in, multiplied in double before it is rounded; NULL: ones. */
md_status md_field_convert_times(md_context *context, md_field *out, const double *factor,
                                 const md_field *in);
/* out += factor[rhs] * in over the local sites, out MD_DOUBLE, in MD_SINGLE of one shape and space
 * with it: one pass where a conversion and an axpy take two. Local. */
md_status md_field_add_single(md_context *context, md_field *out, const double *factor,
                              const md_field *in);
/* Assigns what a field of out's precision once held, and `in` holds since, on the host both and in
 * MD_DOUBLE `in`: the same bits, also of scales, where md_field_convert chooses that of a site in
 * MD_FIXED anew, to the last bit but one. Local. */
md_status md_field_restore(md_context *context, md_field *out, const md_field *in);
/* Between fields of one right-hand side each and one field that has them side by side, which is
 * what an operator of many right-hand sides takes: two at least. All are MD_DOUBLE fields of one
 * space, parity and geometry; local sites only, halos are left as they are. Numbers are copied bit
 * by bit. On a device the copy is queued only. */
/* Right-hand side r of `block` becomes columns[r] for r < count, zero for count <= r < n_rhs.
 * Local. */
md_status md_columns_join(md_context *context, int count, const md_field *columns, md_field *block);
/* columns[r] becomes right-hand side r of `block` for r < count, n_rhs at most. Local. */
md_status md_columns_split(md_context *context, const md_field *block, int count,
                           md_field *columns);
/* Copies right-hand side `from` of `in` to right-hand side `to` of `out`; host, both MD_DOUBLE. */
void md_field_copy_rhs(md_field *out, int to, const md_field *in, int from);

MD_C_END
