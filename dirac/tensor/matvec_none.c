#include "dirac/tensor/matvec.h"

md_status md_matvec_device(md_context *context, md_packing packing, int passes,
                           const md_matvec *work) {
  (void)passes, (void)work;
  return md_fail(
      context, MD_ENVIRONMENT,
      "products by packing %s need a build with CUDA; configure with -DMINIDIRAC_CUDA=ON",
      md_packing_name(packing));
}
