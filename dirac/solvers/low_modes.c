#include "dirac/solvers/low_modes.h"
#include "dirac/solvers/reliable_update.h"
#include "lattice/fields/panel.h"

#include <math.h>
#include <stdlib.h>

md_status md_low_modes_project(md_context *context, const md_modes *modes, double least_of_a,
                               const md_field *r, const double *least, md_field *x, double *part2,
                               bool *added) {
  const int n = r->n_rhs;
  const size_t bytes = 2 * (size_t)modes->count * (size_t)n * sizeof(double);
  double *c = malloc(bytes);
  *added = false;
  md_status status = md_agree(context, c ? MD_OK : md_fail_memory(context, bytes, "projection"));
  if (status == MD_OK) status = md_panel_dots(context, modes->count, modes->vectors, r, c);
  for (int i = 0; i < n; i++) part2[i] = 0.0;
  for (int i = 0; status == MD_OK && i < modes->count * n; i++) {
    const double inverse = 1.0 / (least_of_a + modes->values[i / n]);
    part2[i % n] += c[2 * i] * c[2 * i] + c[2 * i + 1] * c[2 * i + 1];
    c[2 * i] *= inverse;
    c[2 * i + 1] *= inverse;
  }
  for (int i = 0; i < n; i++) *added = *added || !least || part2[i] > least[i];
  if (status == MD_OK && *added)
    status = md_agree(context, md_panel_add(context, modes->count, modes->vectors, c, x));
  free(c);
  return status;
}

double md_low_modes_kappa(const md_modes *modes, double least, double most) {
  const double last = modes && modes->count > 0 ? fmax(modes->values[modes->count - 1], 0.0) : 0.0;
  return md_update_kappa(least + last, most - least);
}

double md_low_modes_noise(const md_modes *modes, double kappa, double spread, double roundoff) {
  double error = modes->roundoff;
  for (int i = 0; i < modes->count; i++) error = fmax(error, modes->residuals[i] / spread);
  return kappa * fmax(error, roundoff);
}
