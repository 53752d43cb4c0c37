#include "base/memory.h"

#include <stdlib.h>

md_status md_allocate(md_context *context, size_t bytes, const char *what, void **memory) {
  *memory = NULL;
  if (bytes == 0) return MD_OK;
  if (bytes > (size_t)1 << 47) return md_fail_memory(context, bytes, what);
  const size_t rounded = (bytes + MD_ALIGNMENT - 1) / MD_ALIGNMENT * MD_ALIGNMENT;
  *memory = aligned_alloc(MD_ALIGNMENT, rounded);
  return *memory ? MD_OK : md_fail_memory(context, bytes, what);
}
