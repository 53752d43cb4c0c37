#include "io/bundle.h"

#include <math.h>

enum { SLAB_BYTES = 16 << 20 };

md_h5_shape md_bundle_shape(const md_bundle_sites *s) {
  return (md_h5_shape){.lead = s->field[0]->n_rhs,
                       .one_parity = md_bundle_one_parity(s),
                       .inner = {s->field[0]->components / 2},
                       .real_bytes = 8};
}

md_slab_plan md_bundle_plan(const md_bundle_sites *s, size_t *slab_bytes) {
  const size_t site_bytes = (size_t)s->field[0]->components * sizeof(double);
  const md_slab_plan plan = md_slab_plan_make(s->field[0]->geometry, site_bytes, SLAB_BYTES, 1);
  *slab_bytes = md_slab_bytes(s->field[0]->geometry, &plan, site_bytes);
  return plan;
}

bool md_bundle_copy_slab(const md_bundle_sites *s, const md_slab *slab, int r, double *raw,
                         bool store) {
  const md_geometry *geometry = s->field[0]->geometry;
  const int *local = geometry->local, components = s->field[0]->components;
  const int length = md_bundle_one_parity(s) ? local[0] / 2 : local[0];
  const int64_t rows = (int64_t)slab->nt * slab->nz * local[1];
  bool finite = true;
#pragma omp parallel for schedule(static) reduction(&& : finite)
  for (int64_t i = 0; i < rows; i++) {
    const int x[MD_DIMS] = {0, (int)(i % local[1]), (int)(i / local[1] % slab->nz) + slab->z,
                            (int)(i / local[1] / slab->nz) + slab->t};
    const int parity = md_parity(x);
    const int64_t first = md_site(geometry, x);
    for (int k = 0; k < length; k++) {
      const md_field *f = s->field[md_bundle_one_parity(s) ? 0 : (parity + k) & 1];
      const int64_t site = first + (md_bundle_one_parity(s) ? k : k / 2);
      double *at = raw + (i * length + k) * components;
      if (f->precision != MD_DOUBLE) {
        md_field_get(f, site, r, at);
        continue;
      }
      for (int c = 0; c < components; c++) {
        double *value = (double *)f->data + md_field_at(f, site, c, r);
        if (store) {
          *value = at[c];
          finite = finite && isfinite(at[c]);
        } else
          at[c] = *value;
      }
    }
  }
  return finite;
}
