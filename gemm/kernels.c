#include "gemm/kernels.h"
#include "base/suggest.h"

#include <stdio.h>
#include <string.h>

static const md_gemm_kernel *const KERNELS[] = {
    &md_gemm_naive,
    &md_gemm_cpu_tiled,
    &md_gemm_openblas,
    &md_gemm_k0,
    &md_gemm_k1,
    &md_gemm_k2,
    &md_gemm_k3,
    &md_gemm_k4,
    &md_gemm_k5,
    &md_gemm_k6,
    &md_gemm_k7,
    &md_gemm_wmma_simple,
    &md_gemm_wmma_tiled,
    &md_gemm_wgmma,
    &md_gemm_dmma,
    &md_gemm_cublas,
    NULL,
};

const md_gemm_kernel *const *md_gemm_kernels(void) {
  return KERNELS;
}

static md_status unknown_variant(md_context *context, const md_gemm_kernel *kernel,
                                 const char *variant) {
  char text[256] = "none";
  int used = 0;
  for (int v = 0; kernel->variants && kernel->variants[v] && used < (int)sizeof text - 32; v++)
    used += snprintf(text + used, sizeof text - (size_t)used, "%s%s", used ? ", " : "",
                     kernel->variants[v]);
  return md_fail(context, MD_INPUT, "GEMM kernel %s has no variant '%s'; its variants: %s",
                 kernel->name, variant, text);
}

md_status md_gemm_find(md_context *context, const char *name, const md_gemm_kernel **kernel,
                       int *variant) {
  const size_t length = strcspn(name, ":");
  const char *wanted = name[length] == ':' ? name + length + 1 : NULL;
  *variant = 0;
  for (int i = 0; KERNELS[i]; i++) {
    *kernel = KERNELS[i];
    if (strlen(KERNELS[i]->name) != length || strncmp(KERNELS[i]->name, name, length) != 0)
      continue;
    if (!wanted || KERNELS[i]->unavailable) return MD_OK;
    for (int v = 0; KERNELS[i]->variants && KERNELS[i]->variants[v]; v++)
      if (strcmp(KERNELS[i]->variants[v], wanted) == 0) {
        *variant = v;
        return MD_OK;
      }
    return unknown_variant(context, KERNELS[i], wanted);
  }
  *kernel = NULL;
  md_suggestion nearest = md_suggest(name);
  for (int i = 0; KERNELS[i]; i++)
    md_suggest_name(&nearest, KERNELS[i]->name, strlen(KERNELS[i]->name));
  char text[512];
  int used = 0;
  for (int i = 0; KERNELS[i] && used < (int)sizeof text - 32; i++)
    used +=
        snprintf(text + used, sizeof text - (size_t)used, "%s%s", i ? ", " : "", KERNELS[i]->name);
  return md_fail(context, MD_INPUT, "GEMM kernel must be one of %s, got '%.100s'%s", text, name,
                 nearest.text);
}
