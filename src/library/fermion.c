/* Fermion fields on both parities, their sources and sums. */
#include "base/device.h"
#include "dirac/wilson/wilson.h"
#include "io/attribute.h"
#include "io/propagator.h"
#include "io/vectors.h"
#include "lattice/fields/linear.h"
#include "lattice/fields/observables.h"
#include "lattice/fields/spaces.h"
#include "library/library.h"
#include "sources/sources.h"

#include <stdlib.h>

void md_fermion_release(md_fermion *field) {
  for (int p = 0; p < MD_PARITIES; p++) md_field_destroy(&field->of[p]);
}

/* Fields without a handle. */
static md_status allocate(md_context *context, const md_geometry *geometry,
                          const md_field_shape *shape, md_fermion *field) {
  md_status status = MD_OK;
  field->context = context;
  for (int p = 0; p < MD_PARITIES && status == MD_OK; p++)
    status = md_field_create(context, geometry, shape, p, &field->of[p]);
  status = md_agree(context, status);
  if (status != MD_OK) md_fermion_release(field);
  return status;
}

md_status md_fermion_make(md_context *context, const md_geometry *geometry,
                          const md_field_shape *shape, md_fermion **field) {
  *field = NULL;
  if (shape->n_rhs < 1 || shape->n_rhs > MD_MAX_RHS)
    return md_fail(context, MD_INPUT, "right-hand sides of a field must be within 1..%d, got %d",
                   MD_MAX_RHS, shape->n_rhs);
  if (!(*field = md_handle(context, sizeof **field))) return MD_ENVIRONMENT;
  const md_status status = allocate(context, geometry, shape, *field);
  if (status == MD_OK) return MD_OK;
  free(*field);
  *field = NULL;
  return status;
}

/* Zeros of quarks with that many spins. */
static md_status create(md_lattice *lattice, int spins, int n_rhs, const char *precision,
                        const char *space, md_fermion **field) {
  md_field_shape shape = {.components = spins * MD_FERMION_REALS, .n_rhs = n_rhs, .scaled = true};
  int place;
  *field = NULL;
  MD_TRY(md_word(lattice->context, "precision", &(MD_PRECISION_WORDS)[1], precision, &place));
  shape.precision = (md_precision)place;
  MD_TRY(md_space_word(lattice->context, space, &shape.space));
  shape.together = spins > 1 && shape.space == MD_DEVICE; /* as those of an operator */
  return md_fermion_make(lattice->context, lattice->geometry, &shape, field);
}

md_status md_fermion_create(md_lattice *lattice, int n_rhs, const char *precision,
                            const char *space, md_fermion **field) {
  return create(lattice, 1, n_rhs, precision, space, field);
}

md_status md_spinor_create(md_lattice *lattice, int n_rhs, const char *precision, const char *space,
                           md_fermion **field) {
  return create(lattice, 4, n_rhs, precision, space, field);
}

void md_fermion_destroy(md_fermion *field) {
  if (!field) return;
  md_fermion_release(field);
  free(field);
}

int md_fermion_n_rhs(const md_fermion *field) {
  return field->of[0].n_rhs;
}

md_status md_fermion_alike(md_context *context, const md_fermion *a, const md_fermion *b,
                           bool shape) {
  const md_field *x = a->of, *y = b->of;
  if (x->geometry != y->geometry || x->n_rhs != y->n_rhs)
    return md_fail(context, MD_INPUT,
                   "fields must be of one lattice and number of right-hand sides, got %d and %d%s",
                   x->n_rhs, y->n_rhs, x->geometry != y->geometry ? ", and two lattices" : "");
  if (x->components != y->components)
    return md_fail(context, MD_INPUT,
                   "fields must have the same spins and slices, got %d and %d reals a site",
                   x->components, y->components);
  if (shape && (x->precision != y->precision || x->space != y->space))
    return md_fail(context, MD_INPUT,
                   "fields must be of one precision and space, got %s on the %s and %s on the %s; "
                   "copy one",
                   md_precision_name(x->precision), x->space == MD_HOST ? "host" : "device",
                   md_precision_name(y->precision), y->space == MD_HOST ? "host" : "device");
  return MD_OK;
}

/* md_fermion_blank in a space. */
static md_status blank_in(md_space space, const md_fermion *f, md_fermion *copy,
                          md_field **fields) {
  const md_field *of = f->of;
  const md_field_shape shape = {MD_DOUBLE, space, of->components,
                                of->n_rhs, true,  of->together && space == of->space};
  *copy = (md_fermion){0};
  *fields = (md_field *)of;
  if (of->precision == MD_DOUBLE && of->space == space) return MD_OK;
  *fields = copy->of;
  return allocate(f->context, of->geometry, &shape, copy);
}

md_status md_fermion_blank(const md_fermion *f, md_fermion *copy, md_field **fields) {
  return blank_in(MD_HOST, f, copy, fields);
}

static md_status convert(md_field *to, const md_field *from, md_context *context) {
  md_status status = MD_OK;
  for (int p = 0; p < MD_PARITIES && status == MD_OK; p++)
    status = md_field_convert(context, &to[p], &from[p]);
  return md_agree(context, status);
}

md_status md_fermion_doubles(const md_fermion *f, md_fermion *copy, md_field **fields) {
  MD_TRY(md_fermion_blank(f, copy, fields));
  return copy->context ? convert(*fields, f->of, f->context) : MD_OK;
}

md_status md_fermion_finish(md_fermion *f, md_fermion *copy) {
  const md_status status = copy->context ? convert(f->of, copy->of, f->context) : MD_OK;
  md_fermion_release(copy);
  return status;
}

md_status md_fermion_copy(md_fermion *to, const md_fermion *from) {
  MD_TRY(md_fermion_alike(to->context, to, from, false));
  return convert(to->of, from->of, to->context);
}

/* Between double fields on the host and an array [rhs][t][z][y][x][3] ([4][3]), of which one is
 * assigned. */
static void move_values(md_field *of, double *array, bool out) {
  const md_geometry *g = of->geometry;
  const int n_rhs = of->n_rhs;
  for (int p = 0; p < MD_PARITIES; p++) {
#pragma omp parallel for schedule(static)
    for (int64_t site = 0; site < g->sites; site++) {
      int x[MD_DIMS];
      md_coordinates(g, p, site, x);
      const int64_t place =
          2 * md_site(g, x) + x[0] % 2; /* pairs along x: one site of each parity */
      for (int r = 0; r < n_rhs; r++)
        for (int c = 0; c < of[p].components; c++) {
          double *there = array + (r * g->local_volume + place) * of[p].components + c;
          double *here = (double *)of[p].data + md_field_at(&of[p], site, c, r);
          *(out ? there : here) = *(out ? here : there);
        }
    }
  }
}

md_status md_fermion_set(md_fermion *field, const double *values) {
  md_fermion copy;
  md_field *of;
  MD_TRY(md_fermion_blank(field, &copy, &of));
  move_values(of, (double *)values, false);
  return md_fermion_finish(field, &copy);
}

md_status md_fermion_get(const md_fermion *field, double *values) {
  md_fermion copy;
  md_field *of;
  const md_status status = md_fermion_doubles(field, &copy, &of);
  if (status == MD_OK) move_values(of, values, true);
  md_fermion_release(&copy);
  return status;
}

/* Between a field and an array on the GPU, of which one is assigned. */
static md_status move_on_device(const md_fermion *f, double *array, bool out) {
  md_context *context = f->context;
  md_fermion copy;
  md_field *of;
  MD_TRY(blank_in(MD_DEVICE, f, &copy, &of));
  md_status status = out && copy.context ? convert(of, f->of, context) : MD_OK;
  if (MINIDIRAC_HAVE_CUDA && status == MD_OK)
    status = md_agree(context, md_device_array(context, of, array, out));
  if (status == MD_OK && !out) return md_fermion_finish((md_fermion *)f, &copy);
  md_fermion_release(&copy);
  return status;
}

md_status md_fermion_set_device(md_fermion *field, const double *values) {
  return move_on_device(field, (double *)values, false);
}

md_status md_fermion_get_device(const md_fermion *field, double *values) {
  return move_on_device(field, values, true);
}

md_status md_device_array_create(md_context *context, size_t bytes, void **array) {
  *array = NULL;
  md_status status = md_device_allocate(context, bytes, "an array", array);
  if (status == MD_OK) status = md_device_synchronise(context);
  status = md_agree(context, status);
  if (status == MD_OK) return MD_OK;
  md_device_array_destroy(*array);
  *array = NULL;
  return status;
}

void md_device_array_destroy(void *array) {
  md_device_free(array);
}

/* As many right-hand sides as the source takes. */
static md_status check_source(md_fermion *f, const md_source *source) {
  const int n_rhs = f->of[0].n_rhs, count = md_source_count(source, n_rhs);
  MD_TRY(md_source_refuse_file(f->context, source, "md_fermion_source", "md_fermion_read"));
  MD_TRY(md_source_check(f->context, source, f->of[0].geometry->global));
  if (count == n_rhs) return MD_OK;
  return md_fail(f->context, MD_INPUT,
                 "source %.200s takes %d right-hand sides, %s for each point, got a field of %d",
                 source->text, count, source->spins == 4 ? "twelve" : "three", n_rhs);
}

md_status md_fermion_source(md_fermion *field, const char *text) {
  md_source source = {0};
  md_source_vector vectors[MD_MAX_RHS];
  md_fermion copy = {0};
  md_field *of;
  if (!text) return md_fail(field->context, MD_INPUT, "a source must have a word, got NULL");
  if (field->of->components > MD_SPINOR_REALS)
    return md_fail(field->context, MD_INPUT,
                   "sources are of four dimensions, got a field of %d reals a site; "
                   "md_spinor_create makes fields for them",
                   field->of->components);
  md_status status = md_source_parse(field->context, "source", text, &source);
  source.spins = field->of->components == MD_FERMION_REALS ? 1 : 4;
  if (status == MD_OK) status = check_source(field, &source);
  status = md_agree(field->context, status);
  if (status == MD_OK) status = md_fermion_blank(field, &copy, &of);
  if (status == MD_OK) {
    md_source_expand(&source, of->geometry->global, of->n_rhs, vectors);
    md_source_fill(of, vectors);
    status = md_fermion_finish(field, &copy);
  }
  free((char *)source.text);
  return status;
}

/* sums += those of the other parity */
static void add(double *sums, const double *more, int count) {
  for (int i = 0; i < count; i++) sums[i] += more[i];
}

md_status md_fermion_norm2(const md_fermion *x, double *norms) {
  double odd[MD_MAX_RHS];
  MD_TRY(md_linear_norm2(x->context, &x->of[MD_EVEN], NULL, norms));
  MD_TRY(md_linear_norm2(x->context, &x->of[MD_ODD], NULL, odd));
  add(norms, odd, x->of[0].n_rhs);
  return MD_OK;
}

md_status md_fermion_dot(const md_fermion *x, const md_fermion *y, double *dots) {
  const int n_rhs = x->of[0].n_rhs;
  double part[2 * MD_MAX_RHS], sum[2 * MD_MAX_RHS];
  MD_TRY(md_fermion_alike(x->context, x, y, true));
  MD_TRY(md_linear_dots(x->context, 1, &x->of[MD_EVEN], &y->of[MD_EVEN], NULL, sum));
  MD_TRY(md_linear_dots(x->context, 1, &x->of[MD_ODD], &y->of[MD_ODD], NULL, part));
  add(sum, part, 2 * n_rhs);
  for (int r = 0; r < n_rhs; r++) {
    dots[2 * r] = sum[r];
    dots[2 * r + 1] = sum[n_rhs + r];
  }
  return MD_OK;
}

md_status md_fermion_axpy(double a, const md_fermion *x, md_fermion *y) {
  double factor[MD_MAX_RHS];
  MD_TRY(md_fermion_alike(x->context, x, y, true));
  for (int r = 0; r < x->of[0].n_rhs; r++) factor[r] = a;
  for (int p = 0; p < MD_PARITIES; p++) md_linear_axpy(factor, &x->of[p], &y->of[p]);
  return MD_OK;
}

/* In the format of the suffix. */
static md_status write_as(md_context *context, const char *path, bool replace, const md_field *of,
                          const md_attribute *attributes, int count) {
  MD_TRY(md_vectors_check_suffix(context, path));
  const md_lattice_format *format = md_vectors_format_of(path, NULL);
  return md_solution_write(context, path, format, md_vectors_precision(format), !replace, of, NULL,
                           attributes, count);
}

md_status md_fermion_write(const md_fermion *field, const char *path, bool replace) {
  md_context *context = field->context;
  md_attribute attributes[MD_PROVENANCE_ATTRIBUTES];
  md_provenance from;
  md_fermion copy;
  md_field *of;
  MD_TRY(md_given(context, "the path", path));
  MD_TRY(md_output_path(context, path, replace));
  md_status status = md_fermion_doubles(field, &copy, &of);
  md_provenance_of_run(context, &from);
  if (status == MD_OK)
    status = write_as(context, path, replace, of, attributes,
                      md_provenance_append(&from, attributes, 0));
  md_fermion_release(&copy);
  return status;
}

md_status md_fermion_read(md_fermion *field, const char *path) {
  md_fermion copy;
  md_field *of;
  MD_TRY(md_given(field->context, "the path", path));
  MD_TRY(md_fermion_blank(field, &copy, &of));
  const md_status status = md_propagator_read(field->context, path, of, NULL, 0);
  if (status == MD_OK) return md_fermion_finish(field, &copy);
  md_fermion_release(&copy);
  return status;
}

md_status md_fermion_pion(const md_fermion *x, double *correlator) {
  md_fermion copy;
  md_field *of;
  md_status status = md_fermion_doubles(x, &copy, &of);
  if (status == MD_OK) status = md_pion_correlator(x->context, of, correlator);
  md_fermion_release(&copy);
  return status;
}

md_status md_fermion_pions(const md_fermion *x, const int (*origin)[4], int count,
                           const int (*momenta)[3], double *correlators) {
  const md_momenta list = {count, momenta};
  const int *dims = x->of[0].geometry->global;
  md_fermion copy;
  md_field *of;
  if (count < 0)
    return md_fail(x->context, MD_INPUT, "there must be 0 or more momenta, got %d", count);
  for (int r = 0; r < x->of[0].n_rhs; r++)
    for (int d = 0; d < MD_DIMS; d++)
      if (origin[r][d] < 0 || origin[r][d] >= dims[d])
        return md_fail(x->context, MD_INPUT,
                       "an origin must lie on the lattice, 0..%d in direction %c, got %d of "
                       "right-hand side %d",
                       dims[d] - 1, "xyzt"[d], origin[r][d], r);
  md_status status = md_fermion_doubles(x, &copy, &of);
  if (status == MD_OK) status = md_pion_correlators(x->context, of, origin, &list, correlators);
  md_fermion_release(&copy);
  return status;
}

md_status md_fermion_condensate(const md_fermion *b, const md_fermion *x, double *estimates) {
  md_fermion copies[2] = {0};
  md_field *b_of, *x_of = NULL;
  MD_TRY(md_fermion_alike(b->context, b, x, false));
  md_status status = md_fermion_doubles(b, &copies[0], &b_of);
  if (status == MD_OK) status = md_fermion_doubles(x, &copies[1], &x_of);
  if (status == MD_OK) status = md_chiral_condensate(b->context, b_of, x_of, estimates);
  for (int i = 0; i < 2; i++) md_fermion_release(&copies[i]);
  return status;
}
