#include "lattice/gauge/reunitarize.h"
#include "lattice/gauge/project.h"
#include "lattice/gauge/smear.h"

#include <math.h>

/* One link; the largest change of an element, or infinity where there is no projection. */
static double project(md_gauge *gauge, int parity, int mu, int64_t site) {
  double u[MD_LINK_REALS], w[MD_LINK_REALS], square = 0.0;
  md_gauge_get(gauge, parity, mu, site, u);
  if (md_project_u3(u, w) == MD_PROJECT_SINGULAR) return HUGE_VAL;
  md_project_su3_phase(w);
  for (int c = 0; c < MD_LINK_REALS; c += 2) {
    const double re = w[c] - u[c], im = w[c + 1] - u[c + 1];
    square = fmax(square, re * re + im * im);
  }
  md_gauge_set(gauge, parity, mu, site, w);
  return sqrt(square);
}

md_status md_gauge_reunitarize(md_context *context, const char *path, md_gauge *gauge,
                               double *change) {
  double most = 0.0;
  for (int p = 0; p < MD_PARITIES; p++)
    for (int mu = 0; mu < MD_DIMS; mu++)
#pragma omp parallel for schedule(static) reduction(max : most) num_threads(context->threads)
      for (int64_t i = 0; i < gauge->geometry->sites; i++)
        most = fmax(most, project(gauge, p, mu, i));
  md_maximum(context, &most, 1);
  *change = most;
  if (most <= MD_THIN_TOLERANCE) return md_gauge_exchange(context, gauge);
  return md_fail(context, MD_INPUT,
                 "%s: --reunitarize is for SU(3) links that were rounded, off by %g at most, these "
                 "are off by %.3g; are they damaged, or fat links?",
                 path, MD_THIN_TOLERANCE, most);
}
