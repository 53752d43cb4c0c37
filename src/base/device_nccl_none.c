#include "base/device_nccl.h"

/* Builds without NCCL have nothing to end. */
void md_nccl_close(md_context *context) {
  (void)context;
}

md_status md_nccl_sum(md_context *context, double *values, int count) {
  (void)values, (void)count;
  return md_fail(context, MD_ENVIRONMENT, "this build has no NCCL; install libnccl-dev");
}
