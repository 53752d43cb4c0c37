#include "lattice/fields/sum.h"
#include "lattice/gauge/smear.h"

#include <math.h>

md_status md_link_measure(md_context *context, const md_gauge *gauge, char name,
                          md_link_means *means) {
  md_sum norm2 = {0};
  md_gauge_observables observables;
#pragma omp parallel
  {
    md_sum mine = {0};
    for (int k = 0; k < MD_PARITIES * MD_DIMS; k++) {
#pragma omp for schedule(static)
      for (int64_t i = 0; i < gauge->geometry->sites; i++) {
        double u[MD_LINK_REALS], sum = 0.0;
        md_gauge_get(gauge, k / MD_DIMS, k % MD_DIMS, i, u);
        for (int c = 0; c < MD_LINK_REALS; c++) sum += u[c] * u[c];
        md_sum_add(&mine, sum);
      }
    }
#pragma omp critical
    md_sum_merge(&norm2, &mine);
  }
  *means = (md_link_means){.name = name};
  MD_TRY(md_sum_finish(context, &norm2, 1, &means->norm2));
  MD_TRY(md_gauge_observe(context, gauge, &observables));
  means->norm2 /= 3.0 * MD_DIMS * (double)gauge->geometry->volume;
  means->plaquette = name == 'L' ? NAN : observables.plaquette;
  means->link_trace = observables.link_trace;
  return MD_OK;
}
