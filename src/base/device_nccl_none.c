#include "base/device_nccl.h"

/* Builds without NCCL have nothing to end. */
void md_nccl_close(md_context *context) {
  (void)context;
}
